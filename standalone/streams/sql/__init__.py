"""SQL statements: ksqlDB's syntax around Spark's SELECT."""
