"""Structs of parsed lines: a schema, and the fields as Arrow columns."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.logs.formats.parsed import Parsed
from standalone import Schema, SchemaBuilder, timestamp_schema

TEXT, INT, LONG, TIME = "text", "int", "long", "time"
UNPARSED = "unparsed"

_SCHEMAS = {TEXT: Schema.OPTIONAL_STRING, INT: Schema.OPTIONAL_INT32, LONG: Schema.OPTIONAL_INT64, TIME: timestamp_schema(optional=True)}
_TYPES = {TEXT: pa.string(), INT: pa.int32(), LONG: pa.int64(), TIME: pa.int64()}


class Fields:
    """Names and types. A line that does not match the format goes to an extra field."""

    def __init__(self, name, /, **kinds):
        self.kinds = kinds
        builder = SchemaBuilder.struct().name(name)
        for field, kind in (*kinds.items(), (UNPARSED, TEXT)):
            builder = builder.field(field, _SCHEMAS[kind])
        self.schema = builder.build()
        self._names = [*kinds, UNPARSED]

    def parsed(self, lines, columns, is_parsed, times=None):
        """`lines`: the strings, for lines that do not match the format; `columns`: an Arrow array for each field; `is_parsed`: numpy booleans."""
        count = len(is_parsed)
        if is_parsed.all():
            unparsed = pa.nulls(count, pa.string())
        else:
            mask = pa.array(is_parsed)
            unparsed = pc.if_else(mask, pa.scalar(None, pa.string()), lines().cast(pa.string()))
            columns = [pc.if_else(mask, column, pa.scalar(None, column.type)) for column in columns]
        columns = [column if column.type == _TYPES[kind] else column.cast(_TYPES[kind]) for column, kind in zip(columns, self.kinds.values())]
        return Parsed(pa.StructArray.from_arrays([*columns, unparsed], self._names), self.schema, times, None, ~is_parsed)


def time_column(times):
    """Milliseconds as a column, null where they are -1."""
    return pa.array(times, pa.int64(), mask=np.asarray(times) < 0)
