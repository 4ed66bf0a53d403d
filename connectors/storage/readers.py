"""Read files as batches: each reader yields (schema, values) in pieces; the schema of schemaless values is None.

Parquet and ORC rows become structs, Avro is read like by AvroConverter, CSV rows become structs of strings, JSON lines schemaless values, text
lines strings. JSON, CSV and text may be compressed by gzip (.gz).
"""

import gzip
import itertools
import json
import os

import pyarrow as pa

from connectors.storage.arrow_values import schema_of, structs_of
from connectors.storage.avro_container import blocks
from standalone import DataError, Schema

EXTENSIONS = {
    "parquet": "Parquet", "orc": "Orc", "avro": "Avro", "json": "Json", "jsonl": "Json", "ndjson": "Json", "csv": "Csv", "txt": "Text", "log": "Text",
}  # fmt: skip


def format_of(path):
    """Return the format by the name's extension; None if unknown."""
    return EXTENSIONS.get(path.removesuffix(".gz").rpartition(".")[2].lower())


class Progress:
    """The fraction of a file that has been read, by rows or bytes."""

    def __init__(self):
        self.share = 0.0


def pieces(path, format, rows, progress=None):
    """Yield (schema, values) of a file, `rows` at a time. Raise DataError if it does not match the format, OSError if it is not readable."""
    try:
        yield from _READERS[format](path, rows, progress or Progress())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, gzip.BadGzipFile, EOFError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise DataError(f"{error}") from error


def _parquet(path, rows, progress):
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        schema = schema_of(file.schema_arrow)
        done = 0
        for batch in file.iter_batches(rows):
            done += len(batch)
            progress.share = done / file.metadata.num_rows
            yield schema, structs_of(batch, schema)


def _orc(path, rows, progress):
    from pyarrow import orc

    file = orc.ORCFile(path)
    schema = schema_of(file.schema)
    for number in range(file.nstripes):
        stripe = file.read_stripe(number)
        progress.share = (number + 1) / file.nstripes
        for low in range(0, len(stripe), rows):
            yield schema, structs_of(stripe.slice(low, rows), schema)


def _avro(path, rows, progress):
    with open(path, "rb") as file:
        for schema, values in blocks(file):
            progress.share = _position(file, path)
            for low in range(0, len(values), rows):
                yield schema, values[low : low + rows]


def _csv(path, rows, progress):
    from pyarrow import csv

    stream = None

    def opened(**convert):
        nonlocal stream
        stream = _opened(path)
        return csv.open_csv(pa.PythonFile(stream, mode="r"), convert_options=csv.ConvertOptions(strings_can_be_null=True, **convert))

    with opened() as first:
        names = first.schema.names
    # All columns are strings: inferred types could differ between blocks.
    with opened(column_types={name: pa.string() for name in names}) as file:
        schema = schema_of(file.schema)
        for batch in file:
            progress.share = _position(stream, path)
            for low in range(0, len(batch), rows):
                yield schema, structs_of(batch.slice(low, rows), schema)


def _json(path, rows, progress):
    for lines in _lines(path, rows, progress):
        yield None, [json.loads(line) for line in lines if line.strip()]


def _text(path, rows, progress):
    for lines in _lines(path, rows, progress):
        yield Schema.STRING, [line.decode("utf-8", "replace") for line in lines]


def _lines(path, rows, progress):
    with _opened(path) as file:
        while lines := list(itertools.islice(file, rows)):
            progress.share = _position(file, path)
            yield [line.rstrip(b"\r\n") for line in lines]


def _position(file, path):
    """Return an open file's position as a fraction; for a compressed one, of the compressed bytes."""
    raw = file.fileobj if isinstance(file, gzip.GzipFile) else file
    return min(1.0, raw.tell() / max(1, os.path.getsize(path)))


def _opened(path):
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


_READERS = {"Parquet": _parquet, "Orc": _orc, "Avro": _avro, "Csv": _csv, "Json": _json, "Text": _text}
FORMATS = tuple(_READERS)
