"""Convert between record bytes and DataFrame columns.

| column | content |
|---|---|
| `_key`, `_value` | the whole key or value, as converted by their converters |
| `_topic`, `_partition`, `_offset`, `_timestamp`, `_headers` | metadata of the record |
| `_window_start`, `_window_end` | the window of a windowed key, in milliseconds, as Kafka Streams writes it after the key |
| `_tombstone` | whether the value is null |
| any other | the value's field of this name; case-insensitive if there is no exact match |
"""

import csv
import io
import itertools
import struct

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from standalone import kernels
from standalone.data.column import columnar, values_of
from standalone.data.schema import SchemaBuilder
from standalone.data.sql_types import from_sql
from standalone.data.struct_column import StructColumn
from standalone.errors import ConnectError, DataError
from standalone.streams.fitting import field_of, fit, short
from standalone.streams.parts import FEWEST, Part, part
from standalone.wire import ByteColumn, Records

KEY, VALUE, TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS = "_key", "_value", "_topic", "_partition", "_offset", "_timestamp", "_headers"
WINDOW_START, WINDOW_END, TOMBSTONE = "_window_start", "_window_end", "_tombstone"
PARTS = (KEY, VALUE, TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS, WINDOW_START, WINDOW_END, TOMBSTONE)
META = {
    TOPIC: t.StringType(),
    PARTITION: t.IntegerType(),
    OFFSET: t.LongType(),
    TIMESTAMP: t.TimestampType(),
    HEADERS: t.ArrayType(t.StructType([t.StructField("name", t.StringType()), t.StructField("value", t.BinaryType())])),
}

TIME, SESSION = "time", "session"  # window types
_LONG = struct.Struct(">q")
_LONGS = struct.Struct(">qq")


class Decoder:
    """Decodes one stream's records. `delimiter`: values are strings with delimited fields in schema order. `windows` is TIME, SESSION or None."""

    def __init__(self, schema, key_converter, value_converter, *, skips=False, delimiter=None, windows=None, window_ms=None):
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._key, self._value = key_converter, value_converter
        self._skips = skips
        self._delimiter, self._windows, self._window_ms = delimiter, windows, window_ms
        self.skipped = 0
        names = self._schema.names
        self._fields = [field for field in self._schema if field.name not in PARTS]
        self._reads_key = any(name in names for name in (KEY, WINDOW_START, WINDOW_END))
        self._reads_value = VALUE in names or bool(self._fields)
        self._fits = {field.name: fit(field.type) for field in self._schema}

    def batch(self, topic, partition, records):
        """A RecordBatch of wire.Records. Raises DataError, naming the first record that is bad, unless such are skipped."""
        made = None
        if len(records) >= FEWEST and not self._windows and self._delimiter is None and kernels.ready():
            made = self._by_columns(topic, partition, records)
        return made if made is not None else self._by_rows(topic, partition, records)[0]

    def _by_columns(self, topic, partition, records):
        """The same by the converters' kernels; the records that these leave are done by rows. None where they cannot."""
        count, nothing = len(records), Part(len(records))
        keys = part(self._key, topic, records.keys, count, records.headers) if self._reads_key else nothing
        values = part(self._value, topic, records.values, count, records.headers) if self._reads_value else nothing
        if keys is None or values is None:
            return None
        left = np.union1d(keys.bad, values.bad).astype(np.int64)
        done, some = np.delete(np.arange(count), left), records
        if len(left):
            keys, values, some = keys.take(done), values.take(done), records.take(done)
        columns, bad = [], []
        for field in self._schema:
            column = self._about(field, topic, partition, some, None)
            columns.append(column if column is not None else self._of_part(field, keys, values, topic, partition, some, bad))
        made, kept = self._made(columns, len(some), bad)
        if not len(left):
            return made
        rest, also = self._by_rows(topic, partition, records.take(left))
        order = np.argsort(np.concatenate([done[kept], left[also]]))
        return pa.Table.from_batches([made, rest]).combine_chunks().to_batches()[0].take(pa.array(order)) if len(order) else made

    def _of_part(self, field, keys, values, topic, partition, records, bad):
        name = field.name
        found = keys if name == KEY else values if name == VALUE else values.field(name)
        array = found.array(field.type) if found is not None else None
        if array is not None:
            return array
        each = found.values() if found is not None else [field_of(value, name) for value in values.values()]
        return self._fitted(field, each, topic, partition, records, bad)

    def _by_rows(self, topic, partition, records):
        """(RecordBatch, which of the records are in it)"""
        keys, values, windows, bad = [None] * len(records), [None] * len(records), None, []
        if self._reads_key:
            data = list(records.keys) if records.keys is not None else keys
            if self._windows:
                data, windows = zip(*map(self._unwindowed, data)) if data else ((), ())
            keys = self._converted(self._key, "key", topic, partition, records, data, bad)
        if self._reads_value:
            data = list(records.values) if records.values is not None else values
            values = self._converted(self._value, "value", topic, partition, records, data, bad)
            if self._fields and self._delimiter is not None:
                values = [self._split(value) for value in values]
        columns = []
        for field in self._schema:
            column = self._about(field, topic, partition, records, windows)
            if column is None:
                name = field.name
                found = keys if name == KEY else values if name == VALUE else [field_of(value, name) for value in values]
                column = self._fitted(field, found, topic, partition, records, bad)
            columns.append(column)
        return self._made(columns, len(records), bad)

    def _made(self, columns, count, bad):
        """(RecordBatch without the bad rows, which rows it has)"""
        made, rows = pa.RecordBatch.from_arrays(columns, schema=self._schema), np.arange(count)
        if not bad:
            return made, rows
        bad = np.unique(bad)
        self.skipped += len(bad)
        kept = np.delete(rows, bad)
        return made.take(pa.array(kept)), kept

    def _converted(self, converter, part, topic, partition, records, data, bad):
        found = []
        headers = records.headers if converter.reads_headers else None
        for row, each in enumerate(data):
            try:
                found.append(converter.read(topic, each, headers and headers[row])[1])
            except ConnectError as error:
                self._refuse(f"The {part}", topic, partition, records, row, error, bad)
                found.append(None)
        return found

    def _refuse(self, what, topic, partition, records, row, error, bad):
        if not self._skips:
            raise DataError(
                f"{what} of {topic}-{partition} at offset {records.offsets[row]} cannot be read: {error} "
                "errors.tolerance=all skips such records."
            ) from error
        bad.append(row)

    def _about(self, field, topic, partition, records, windows):
        """The column of what is not in the key or the value; else None."""
        count, name = len(records), field.name
        if name == TOPIC:
            return pa.array([topic] * count, field.type)
        if name == PARTITION:
            return pa.array(np.full(count, partition), field.type)
        if name == OFFSET:
            return pa.array(records.offsets, field.type)
        if name == TIMESTAMP:
            return pa.array(records.timestamps * 1000).cast(field.type)
        if name == HEADERS:
            rows = records.headers or [None] * count
            return pa.array([[{"name": header, "value": value} for header, value in row or ()] for row in rows], field.type)
        if name == TOMBSTONE:
            gone = records.values.lengths < 0 if records.values is not None else np.ones(count, bool)
            return pa.array(gone, field.type)
        if name in (WINDOW_START, WINDOW_END):
            return pa.array([window and window[name == WINDOW_END] for window in windows or [None] * count], field.type)
        return None

    def _fitted(self, field, found, topic, partition, records, bad):
        fit_one, fitted = self._fits[field.name], []
        for row, each in enumerate(found):
            try:
                fitted.append(None if each is None else fit_one(each))
            except (ValueError, TypeError, ArithmeticError) as error:
                problem = DataError(f"{short(each)} is no {field.type} ({error})")
                self._refuse(f"The column '{field.name}'", topic, partition, records, row, problem, bad)
                fitted.append(None)
        try:
            return pa.array(fitted, field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return self._one_by_one(field, topic, partition, records, fitted, bad)

    def _one_by_one(self, field, topic, partition, records, fitted, bad):
        for row, each in enumerate(fitted):
            try:
                pa.scalar(each, field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                problem = DataError(f"{short(each)} is no {field.type} ({error})")
                self._refuse(f"The column '{field.name}'", topic, partition, records, row, problem, bad)
                fitted[row] = None
        return pa.array(fitted, field.type)

    def _split(self, text):
        if text is None:
            return None
        cells = next(csv.reader([text], delimiter=self._delimiter), [])
        return {field.name: cell if cell != "" else None for field, cell in zip(self._fields, cells)}

    def _unwindowed(self, key):
        if key is None:
            return None, None
        if self._windows == SESSION:
            end, start = _LONGS.unpack(key[-16:])
            return key[:-16], (start, end)
        (start,) = _LONG.unpack(key[-8:])
        return key[:-8], (start, start + self._window_ms)


def windowed(key, kind, start, end):
    """Return the bytes of a windowed key, as Kafka Streams' serializers write them."""
    key = key or b""
    return key + (_LONGS.pack(end, start) if kind == SESSION else _LONG.pack(start))


class Encoder:
    """Encodes one output stream: an Arrow table, with its columns' Spark types, as records."""

    def __init__(self, key_converter, value_converter, *, delimiter=None, windows=None):
        self._key, self._value = key_converter, value_converter
        self._delimiter, self._windows = delimiter, windows

    def records(self, topic, table, schema):
        """Return (wire.Records, partitions or None) of a pa.Table with the columns of `schema`, a StructType."""
        count, columns = table.num_rows, {}
        for field in schema.fields:
            columns[field.name] = table.column(field.name).combine_chunks(), field
        headers = self._headers(columns, count)
        keys = self._part(topic, self._key, *columns[KEY], count, headers) if KEY in columns else ByteColumn.repeat(None, count)
        if self._windows:
            starts, ends = (columns[name][0].to_pylist() for name in (WINDOW_START, WINDOW_END))
            keys = ByteColumn.of([windowed(*each) for each in zip(keys, itertools.repeat(self._windows), starts, ends)])
        values = self._values(topic, columns, count, headers)
        if TOMBSTONE in columns:
            gone = columns[TOMBSTONE][0].fill_null(False).to_numpy(zero_copy_only=False)
            values = ByteColumn(values.data, values.starts, np.where(gone, -1, values.lengths).astype(np.int32))
        times = None
        if TIMESTAMP in columns:
            times = columns[TIMESTAMP][0].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).fill_null(-1000).to_numpy() // 1000
        partitions = columns[PARTITION][0].to_pylist() if PARTITION in columns else None
        return Records(count, keys, values, times, headers), partitions

    def _values(self, topic, columns, count, headers):
        if VALUE in columns:
            return self._part(topic, self._value, *columns[VALUE], count, headers)
        fields = [(array, field) for name, (array, field) in columns.items() if name not in PARTS]
        if not fields:
            return ByteColumn.repeat(None, count)
        if self._delimiter is not None:
            rows = zip(*(array.to_pylist() for array, _ in fields))
            return ByteColumn.of([self._value.from_connect(topic, None, _delimited(row, self._delimiter)) for row in rows])
        builder, parts = SchemaBuilder.struct().optional(), []
        for array, field in fields:
            part, part_schema = from_sql(array, field.dataType, True)
            builder.field(field.name, part_schema)
            parts.append(part)
        schema = builder.build()
        column = StructColumn(schema, parts, count)
        return self._encoded(topic, self._value, schema, column, count, headers)

    def _part(self, topic, converter, array, field, count, headers):
        column, schema = from_sql(array, field.dataType, True)
        return self._encoded(topic, converter, schema, column, count, headers)

    def _encoded(self, topic, converter, schema, column, count, headers):
        if not count:
            return ByteColumn.of([])
        if not converter.writes_headers:
            found = converter.encode(topic, schema, columnar(column, schema, count), count)
            if found is not None and (found[1] is None or not len(found[1])):
                return ByteColumn.repeat(None, count) if found[0] is None else found[0]
        values = values_of(column, schema, count)
        return ByteColumn.of([converter.written(topic, schema, value, headers and headers[row]) for row, value in enumerate(values)])

    def _headers(self, columns, count):
        if HEADERS in columns:
            return [[(each["name"], each["value"]) for each in row or ()] for row in columns[HEADERS][0].to_pylist()]
        if self._key.writes_headers or self._value.writes_headers:
            return [[] for _ in range(count)]
        return None


def _delimited(row, delimiter):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="").writerow(["" if cell is None else cell for cell in row])
    return out.getvalue()


def spark_type(schema):
    """Return the Spark type of a Connect schema; None without a schema."""
    if schema is None:
        return None
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        return t.DecimalType(38, int((schema.parameters or {}).get("scale", 0)))
    if schema.name == "org.apache.kafka.connect.data.Timestamp":
        return t.TimestampType()
    if schema.name == "org.apache.kafka.connect.data.Date":
        return t.DateType()
    if schema.logical:
        return t.LongType()
    if schema.type == "struct":
        return t.StructType([t.StructField(field.name, spark_type(field.schema)) for field in schema.fields])
    if schema.type == "array":
        return t.ArrayType(spark_type(schema.value_schema))
    if schema.type == "map":
        return t.MapType(spark_type(schema.key_schema), spark_type(schema.value_schema))
    return _SPARK[schema.type]()


_SPARK = {
    "int8": t.ByteType, "int16": t.ShortType, "int32": t.IntegerType, "int64": t.LongType, "float32": t.FloatType,
    "float64": t.DoubleType, "boolean": t.BooleanType, "string": t.StringType, "bytes": t.BinaryType,
}  # fmt: skip
