"""The converters of single numbers: one value, big end first, in as many bytes as its type has."""

import struct

from standalone import ConfigDef, Converter, DataError, HeaderConverter, Schema
from standalone.converters.part import PART
from standalone.data.struct import fits


class _NumberConverter(Converter, HeaderConverter):
    """One number in the log, big end first. Read is a number, or null."""

    config_def = ConfigDef(PART)
    schema = None
    packing = None  # of struct

    def from_connect(self, topic, schema, value):
        if schema is not None and schema.type != self.schema.type:
            raise DataError(f"{type(self).__name__} writes {self.schema.type}; the schema says {schema.name or schema.type}.")
        if value is None:
            return None
        plain = schema is None and type(value) in (int, float) and self.schema.type not in ("int64", "float64")
        if plain or not fits(self.schema, value):
            raise DataError(f"{type(self).__name__} writes {self.schema.type}; the value is a {type(value).__name__}.")
        return struct.pack(self.packing, value)

    def to_connect(self, topic, data):
        if data is None:
            return self.schema, None
        size = struct.calcsize(self.packing)
        if len(data) != size:
            raise DataError(f"{type(self).__name__} reads {size} bytes; found {len(data)}.")
        return self.schema, struct.unpack(self.packing, data)[0]

    def from_header(self, topic, name, schema, value):
        return self.from_connect(topic, schema, value)

    def to_header(self, topic, name, data):
        return self.to_connect(topic, data)


class ShortConverter(_NumberConverter):
    java_name = "org.apache.kafka.connect.converters.ShortConverter"
    schema, packing = Schema.OPTIONAL_INT16, ">h"


class IntegerConverter(_NumberConverter):
    java_name = "org.apache.kafka.connect.converters.IntegerConverter"
    schema, packing = Schema.OPTIONAL_INT32, ">i"


class LongConverter(_NumberConverter):
    java_name = "org.apache.kafka.connect.converters.LongConverter"
    schema, packing = Schema.OPTIONAL_INT64, ">q"


class FloatConverter(_NumberConverter):
    java_name = "org.apache.kafka.connect.converters.FloatConverter"
    schema, packing = Schema.OPTIONAL_FLOAT32, ">f"


class DoubleConverter(_NumberConverter):
    java_name = "org.apache.kafka.connect.converters.DoubleConverter"
    schema, packing = Schema.OPTIONAL_FLOAT64, ">d"


class BooleanConverter(_NumberConverter):
    java_name = "org.apache.kafka.connect.converters.BooleanConverter"
    schema, packing = Schema.OPTIONAL_BOOLEAN, ">?"

    def to_connect(self, topic, data):
        if data is not None and data not in (b"\x00", b"\x01"):
            raise DataError(f"BooleanConverter reads one byte, 0 or 1; found {len(data)} bytes: {bytes(data[:8]).hex(' ')}.")
        return super().to_connect(topic, data)
