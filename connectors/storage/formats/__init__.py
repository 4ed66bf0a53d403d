"""File formats (format.class): short names, Java's class names, and modules."""

import importlib

_FORMATS = {  # short name -> (module, class, Java's class names)
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
    """Import and return a format's class by its short name: each needs its own library."""
    module, name, _ = _FORMATS[short]
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
