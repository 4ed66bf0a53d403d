"""Avro with a schema registry.

converter.py     AvroConverter: config keys, choice of schema, row and columnar form
write_schema.py  the Avro schema of a Connect schema; read_schema.py the reverse; tree.py parses Avro schemas; names.py has shared names
write.py         values to Avro data; read.py the reverse; binary.py encodes bytes by fastavro; misfit.py errors for values that do not fit
anything.py      values without a schema
encode.py        columns to messages; decode.py the reverse; kernels.py the loops over bytes
rows.py          the same without registry framing, for files
"""
