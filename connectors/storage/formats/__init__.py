"""Formats of files: format.class. What each is called in Java and here, and where it is."""

import importlib

_FORMATS = {  # short name -> (module, class, the names of Java's classes)
    "Parquet": ("parquet", "ParquetFormat", ("hdfs.parquet.ParquetFormat", "s3.format.parquet.ParquetFormat")),
    "Avro": ("avro", "AvroFormat", ("hdfs.avro.AvroFormat", "s3.format.avro.AvroFormat")),
    "Orc": ("orc", "OrcFormat", ("hdfs.orc.OrcFormat",)),
    "Json": ("json", "JsonFormat", ("hdfs.json.JsonFormat", "s3.format.json.JsonFormat")),
    "Csv": ("csv", "CsvFormat", ()),
    "String": ("text", "StringFormat", ("hdfs.string.StringFormat", "s3.format.string.StringFormat")),
    "Bytes": ("text", "BytesFormat", ("s3.format.bytearray.ByteArrayFormat",)),
}
JAVA = "io.confluent.connect."
NAMES = {name: short for short, (_, _, java) in _FORMATS.items() for name in (short, *(JAVA + each for each in java))}


def load(short):
    """The class of a format by its short name. Nothing is imported before: each has its own library."""
    module, name, _ = _FORMATS[short]
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
