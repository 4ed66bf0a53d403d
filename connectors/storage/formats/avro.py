"""Avro's container files: a header with the schema, then blocks of records, each followed by the file's sync marker."""

import bz2
import os
import zlib

import numpy as np
import pyarrow as pa

from connectors.storage.formats.base import Format, Writer
from standalone import SinkBatch
from standalone.converters.avro.rows import AvroRows

_MAGIC = b"Obj\x01"
BLOCK_BYTES = 1 << 20  # of uncompressed records; readers split files at blocks
_KEPT = 100


def _deflate(data):
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


def _snappy(data):
    return pa.compress(data, codec="snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big")


CODECS = {"null": bytes, "deflate": _deflate, "snappy": _snappy, "bzip2": bz2.compress}


class AvroFormat(Format):
    extension = ".avro"
    needs_schema = True

    def __init__(self, settings):
        super().__init__(settings)
        self._options = {name: settings[name] for name in ("connect.meta.data", "enhanced.avro.schema.support", "allow.optional.map.keys")}
        self._known = {}

    def encode(self, topic, schema, values, count):
        rows = self._rows(schema)
        done = rows.encode(values, count)
        if done is not None and done[1] is None:
            return done[0], {}
        return rows.encode_rows([record.value for record in SinkBatch(count, topic, values, schema, partition=0, offsets=np.arange(count)).records()])

    def open(self, schema, spool):
        return AvroFile(self._rows(schema).text, spool, self.settings["avro.codec"])

    def text_of(self, schema):
        """Return the schema text for a file's header."""
        return self._rows(schema).text

    def _rows(self, schema):
        known = self._known.get(schema)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            # A file only holds non-null records, so its schema is not nullable.
            known = self._known[schema] = AvroRows(schema.with_(optional=False), self._options)
        return known


class AvroFile(Writer):
    def __init__(self, schema, spool, codec):
        self._spool, self._compress = spool, CODECS[codec]
        self._mark = os.urandom(16)
        self._parts, self._count, self.memory = [], 0, 0
        header = {"avro.schema": schema.encode(), "avro.codec": codec.encode()}
        meta = b"".join(_sized(name.encode()) + _sized(value) for name, value in header.items())
        spool.write(_MAGIC + _long(len(header)) + meta + _long(0) + self._mark)

    def append(self, column):
        packed = column.compact()
        self._parts.append(packed.data.tobytes())
        self._count += len(packed)
        self.memory += len(packed.data)
        if self.memory >= BLOCK_BYTES:
            self.settle()

    def settle(self):
        if self._count:
            data = self._compress(b"".join(self._parts))
            self._spool.write(_long(self._count) + _sized(data) + self._mark)
            self._parts, self._count, self.memory = [], 0, 0


def _sized(data):
    return _long(len(data)) + data


def _long(number):
    """Encode an integer like Avro: zigzag, seven bits per byte."""
    left = number << 1 ^ number >> 63
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])
