"""JSON with JSON Schemas in a schema registry.

converter.py  JsonSchemaConverter: config keys, choice of schema, row and columnar form
write.py      the JSON Schema of a Connect schema; read.py the reverse
values.py     values to JSON and back
"""
