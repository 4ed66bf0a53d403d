"""Streams on Spark: topics as Spark's tables, and queries that run on."""
