"""TableSink: write topics to Iceberg and Delta tables."""
