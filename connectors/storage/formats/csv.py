"""CSV: field names in the first line; nested values are JSON, bytes are base64."""

import base64
import io

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from connectors.storage.formats.base import Writer
from connectors.storage.formats.json import json_converter, json_rows
from connectors.storage.formats.parquet import must_be_structs
from connectors.storage.formats.text import Lines, LinesFormat
from connectors.storage.lake_types import to_lake

_NESTED = ("struct", "array", "map")


class CsvFormat(LinesFormat):
    takes_nulls = False
    needs_schema = True
    _extension = ".csv"

    def __init__(self, settings):
        super().__init__(settings)
        self._converter = json_converter("NUMERIC")

    def encode(self, topic, schema, values, count):
        must_be_structs(schema, "CSV")
        parts = [self._cells(field.schema, pc.struct_field(values, [field.index])) for field in schema.fields]
        return pa.StructArray.from_arrays(parts, [field.name for field in schema.fields]), {}

    def _cells(self, schema, array):
        if schema.type in _NESTED:
            texts = json_rows(self._converter, schema, array, len(array))[0].to_arrow(text=True)
            return pc.if_else(array.is_null(), pa.scalar(None, texts.type), texts)
        if schema.type == "bytes" and not schema.name:
            return pa.array([None if item is None else base64.b64encode(item).decode() for item in array.to_pylist()], pa.string())
        made = to_lake(array, schema)
        # Numbers are not quoted, which distinguishes them from strings.
        return made if pa.types.is_string(made.type) or pa.types.is_primitive(made.type) and not pa.types.is_temporal(made.type) else _plain(made)

    def open(self, schema, spool):
        return CsvFile(Lines(spool, gzip_level=self._level), [field.name for field in schema.fields])


def _plain(array):
    if pa.types.is_timestamp(array.type):
        return pc.strftime(array, format="%Y-%m-%dT%H:%M:%SZ")
    return array.cast(pa.string())


class CsvFile(Writer):
    def __init__(self, lines, names):
        self._lines = lines
        lines.put(",".join('"' + name.replace('"', '""') + '"' for name in names).encode() + b"\n")

    def append(self, column):
        table = pa.RecordBatch.from_arrays([column.field(at) for at in range(column.type.num_fields)], [field.name for field in column.type])
        out = io.BytesIO()
        csv.write_csv(table, out, csv.WriteOptions(include_header=False))
        self._lines.put(out.getvalue())

    def finish(self):
        self._lines.finish()
