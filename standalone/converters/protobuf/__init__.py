"""Protobuf with a schema registry.

converter.py     ProtobufConverter: config keys, choice of schema, row and columnar form
write_schema.py  the .proto text of a Connect schema; read_schema.py the Connect schema of a message; names.py has shared names
files.py         parses a .proto file into descriptors
values.py        values to messages and back
encode.py        columns to messages, level by level; decode.py the reverse; kernels.py the loops over bytes
"""
