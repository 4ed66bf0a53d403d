"""Avro, with its schemas in a registry.

converter.py     AvroConverter: keys, which schema, the two forms
write_schema.py  the Avro schema of a Connect schema; read_schema.py the other way; tree.py parses the text, names.py are the words
write.py         values to Avro data; read.py back; binary.py its bytes, by fastavro; misfit.py what to say of one that does not fit
anything.py      values without a schema
encode.py        columns to messages; decode.py back; kernels.py what goes through the bytes
rows.py          the same without a registry's framing, for files
"""
