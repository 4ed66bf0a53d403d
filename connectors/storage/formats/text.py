"""Row formats: values as text (StringFormat) or bytes (BytesFormat), and their base."""

import os
import zlib

import numpy as np

from connectors.storage.formats.base import Format, Writer
from standalone import ByteColumn, DataError, SinkBatch, java_text

_GZIP = 16 + zlib.MAX_WBITS


class Lines(Writer):
    """Writes each record and its separator, optionally compressed. `head` is the beginning of the file."""

    def __init__(self, spool, ending=b"\n", null=b"null", gzip_level=None, head=b""):
        self._spool, self._ending, self._null = spool, ending, null
        self._gzip = None if gzip_level is None else zlib.compressobj(gzip_level, zlib.DEFLATED, _GZIP)
        if head:
            self.put(head)

    def append(self, column):
        self.put(column.join(self._ending, self._null))

    def put(self, data):
        self._spool.write(self._gzip.compress(data) if self._gzip else data)

    def finish(self):
        if self._gzip:
            self._spool.write(self._gzip.flush())


class LinesFormat(Format):
    takes_nulls = True
    _extension = ".txt"

    def __init__(self, settings):
        super().__init__(settings)
        self._level = settings["compression.level"] if settings["compression"] == "gzip" else None
        self.extension = self._extension + ("" if self._level is None else ".gz")

    def open(self, schema, spool):
        return Lines(spool, gzip_level=self._level)


class StringFormat(LinesFormat):
    """Each value as a line, in Java's toString format."""

    def encode(self, topic, schema, values, count):
        batch = SinkBatch(count, topic, values, schema, partition=0, offsets=np.arange(count))
        texts = batch.texts()
        if texts is None:
            texts = ByteColumn.of([_text(record.value, schema) for record in batch.records()])
        return texts, {}


def _text(value, schema):
    if value is None:
        return None
    return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else java_text(value, schema).encode("utf-8", "replace")


class BytesFormat(LinesFormat):
    """Values that are bytes, each followed by a separator."""

    takes_nulls = False

    def __init__(self, settings):
        self._extension = settings["format.bytearray.extension"]
        super().__init__(settings)
        separator = settings["format.bytearray.separator"]
        self._separator = os.linesep.encode() if separator is None else separator.encode()

    def encode(self, topic, schema, values, count):
        if isinstance(values, ByteColumn) and (schema is None or schema.type == "bytes"):
            return values, {}
        if schema is not None and schema.type != "bytes":
            raise DataError(_not_bytes(schema.type))
        records = SinkBatch(count, topic, values, schema, partition=0, offsets=np.arange(count)).records()
        kinds = (bytes, bytearray, memoryview)
        bad = {row: DataError(_not_bytes(type(each.value).__name__)) for row, each in enumerate(records) if not isinstance(each.value, kinds)}
        return ByteColumn.of([None if row in bad else bytes(record.value) for row, record in enumerate(records)]), bad

    def open(self, schema, spool):
        return Lines(spool, self._separator, b"", self._level)


def _not_bytes(kind):
    return f"BytesFormat writes bytes, but this value is a {kind}. Set value.converter to ByteArrayConverter."
