"""Converters of single numbers: one value, big-endian, in as many bytes as its type has."""

import struct

import numpy as np
import pyarrow as pa

from standalone import ByteColumn, ConfigDef, Converter, DataError, HeaderConverter, Schema
from standalone.converters.part import PART
from standalone.data.arrow import arrow_type, buffer_of
from standalone.data.column import is_stored_as, nulls_of, one_piece, unshaped
from standalone.data.struct import fits


class _NumberConverter(Converter, HeaderConverter):
    """A single big-endian number in the log. Reads a number or null."""

    config_def = ConfigDef(PART)
    schema = None
    packing = None  # struct format

    # Row form: the reference.
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

    # Columnar form: swap the bytes of all numbers at once.
    def encode(self, topic, schema, column, count):
        column, schema = unshaped(column, schema)
        if schema is None and column is not None:
            return None  # depends on each value whether it is a number
        if schema is not None and (schema.type != self.schema.type or schema.logical):
            return None  # an error, or timestamps instead of numbers
        if column is None:
            return None, None
        if not is_stored_as(column, self.schema):
            return None
        column = one_piece(column)
        numbers = buffer_of(column).astype(self._wide)
        starts = np.arange(len(column)) * numbers.itemsize
        return ByteColumn(numbers.view(np.uint8), starts, np.where(nulls_of(column), -1, numbers.itemsize).astype(np.int32)), None

    def decode(self, topic, column):
        wide = self._wide
        good, nulls = column.lengths == wide.itemsize, column.lengths < 0
        found = (column if good.all() else column.take(np.flatnonzero(good))).compact().data.view(wide)
        numbers = np.zeros(len(column), found.dtype.newbyteorder("="))
        numbers[good] = found
        if self.schema.type == "float32":  # as in the row form: a signaling NaN is not a Python float
            numbers.view(np.uint32)[np.isnan(numbers)] |= 0x0040_0000
        if self.schema.type == "boolean":
            good &= numbers <= 1
        bad = np.flatnonzero(~good & ~nulls)
        array = pa.array(numbers, mask=~good if len(bad) or nulls.any() else None)
        return self.schema, array.cast(arrow_type(self.schema)), bad if len(bad) else None

    @property
    def _wide(self):
        """Return the numpy type of the bytes; for a boolean a byte, to detect values other than 0 and 1."""
        return np.dtype(self.packing.replace("?", "B"))


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
