"""Tasks on the executors of a Spark cluster, and their control channel to the worker."""
