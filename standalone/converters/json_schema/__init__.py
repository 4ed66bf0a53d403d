"""JSON behind JSON Schemas in a registry.

converter.py  JsonSchemaConverter: keys, which schema, the two forms
write.py      the JSON Schema of a Connect schema; read.py the other way
values.py     values as JSON, and back
"""
