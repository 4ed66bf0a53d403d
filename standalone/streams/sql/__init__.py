"""Statements of SQL that run on: ksqlDB's words around Spark's SELECT."""
