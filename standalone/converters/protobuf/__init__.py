"""Protobuf, with its .proto files in a registry.

converter.py     ProtobufConverter: keys, which schema, the two forms
write_schema.py  the .proto text of a Connect schema; read_schema.py the Connect schema of a message; names.py are the words
files.py         a .proto file as descriptors
values.py        values as messages, and back
encode.py        columns to messages, level by level; decode.py back; kernels.py what goes through the bytes
"""
