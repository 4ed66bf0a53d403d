"""TableSink: topics into tables of Iceberg and Delta."""
