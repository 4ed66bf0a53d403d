"""Tasks that run on the executors of a Spark cluster, and their line to the worker."""
