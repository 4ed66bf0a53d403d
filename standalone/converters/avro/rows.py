"""Encode and decode values of one schema as Avro data without the registry's message prefix, as in the blocks of Avro
files."""

import io

from standalone import ByteColumn, DataError
from standalone.converters.avro import tree
from standalone.converters.avro.binary import Binary
from standalone.converters.avro.encode import Encoding
from standalone.converters.avro.read import reader_of
from standalone.converters.avro.read_schema import connect_schema
from standalone.converters.avro.write import writer_of
from standalone.converters.avro.write_schema import SchemaOptions, avro_text

_OTHERS = {  # options of AvroConverter that do not apply to files
    "generalized.sum.type.support": False,
    "scrub.invalid.names": False,
    "discard.type.doc.default": False,
    "flatten.singleton.unions": True,
    "ignore.default.for.nullables": False,
}


class AvroRows:
    """`text` is the Schema's Avro schema. `options`: connect.meta.data, enhanced.avro.schema.support, allow.optional.map.keys."""

    def __init__(self, schema, options):
        seen = SchemaOptions({**_OTHERS, **options})
        self.text = avro_text(schema, seen)
        node = tree.parse(self.text)
        self._binary = Binary(node)
        self._write = writer_of(schema, node, seen, self._binary.name_in_union)
        self._columns = Encoding.of(schema, node, seen, b"")

    def encode(self, column, count):
        """Return (ByteColumn, failed rows or None), or None if rows must encode it. `column` is a column as in data/column.py."""
        return self._columns and self._columns.encode(column, count)

    def encode_rows(self, values):
        """Return (ByteColumn, {row: DataError} of the values that do not fit, which are null in it)."""
        found, bad = [], {}
        for row, value in enumerate(values):
            try:
                out = io.BytesIO()
                self._binary.write(out, self._write(value))
                found.append(out.getvalue())
            except DataError as error:
                bad[row] = error
                found.append(None)
        return ByteColumn.of(found), bad


class AvroReader:
    """`schema` is the Connect schema of the Avro schema; `read` decodes that many consecutive values."""

    def __init__(self, text):
        options = SchemaOptions({**_OTHERS, "connect.meta.data": True, "enhanced.avro.schema.support": True, "allow.optional.map.keys": False})
        node = tree.parse(text)
        self.schema = connect_schema(node, options, None)
        self._binary, self._read = Binary(node), reader_of(self.schema, node)

    def read(self, data, count):
        source = io.BytesIO(data)
        for _ in range(count):
            datum = self._binary.read_from(source)
            yield datum if self._read is None else self._read(datum)
