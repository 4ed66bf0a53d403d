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
import orjson
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from standalone.data.column import columnar, values_of
from standalone.data.scalars import Instant
from standalone.data.schema import SchemaBuilder
from standalone.data.sql_types import from_sql
from standalone.data.struct import Struct
from standalone.data.struct_column import StructColumn
from standalone.errors import ConnectError, DataError
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
        """Convert wire.Records to a RecordBatch. Raise DataError naming the first bad record, unless bad records are skipped."""
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
        columns = [self._column(field, topic, partition, records, keys, values, windows, bad) for field in self._schema]
        made = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if not bad:
            return made
        bad = np.unique(bad)
        self.skipped += len(bad)
        return made.take(pa.array(np.delete(np.arange(len(records)), bad)))

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

    def _column(self, field, topic, partition, records, keys, values, windows, bad):
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
        found = keys if name == KEY else values if name == VALUE else [field_of(value, name) for value in values]
        fit_one, fitted = self._fits[name], []
        for row, each in enumerate(found):
            try:
                fitted.append(None if each is None else fit_one(each))
            except (ValueError, TypeError, ArithmeticError) as error:
                problem = DataError(f"{_short(each)} is not a {field.type} ({error})")
                self._refuse(f"The column '{name}'", topic, partition, records, row, problem, bad)
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
                problem = DataError(f"{_short(each)} is not a {field.type} ({error})")
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


def field_of(value, name):
    if isinstance(value, Struct):
        field = value.schema.field(name)
        if field is not None:
            return value.get(name)
        value = value.to_dict()
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    folded = name.casefold()
    return next((each for key, each in value.items() if isinstance(key, str) and key.casefold() == folded), None)


def fit(kind):
    """Return a function that converts a non-null record value to what Arrow accepts for that type."""
    if pa.types.is_struct(kind):
        parts = [(field.name, fit(field.type)) for field in kind]

        def fit_struct(value):
            if not isinstance(value, (dict, Struct)):
                raise TypeError(f"a {type(value).__name__}")
            found = ((name, fit_part, field_of(value, name)) for name, fit_part in parts)
            return {name: None if each is None else fit_part(each) for name, fit_part, each in found}

        return fit_struct
    if pa.types.is_map(kind):
        fit_key, fit_item = fit(kind.key_type), fit(kind.item_type)

        def fit_map(value):
            items = value.to_dict() if isinstance(value, Struct) else value
            return [(fit_key(key), None if item is None else fit_item(item)) for key, item in items.items()]

        return fit_map
    if pa.types.is_list(kind):
        fit_item = fit(kind.value_type)
        return lambda value: [None if item is None else fit_item(item) for item in _listed(value)]
    if pa.types.is_string(kind):
        return lambda value: value if type(value) is str else _text(value)
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_integer(kind):
        return lambda value: value if type(value) is int else _whole(value)
    if pa.types.is_floating(kind):
        return lambda value: float(value)
    if pa.types.is_decimal(kind):
        import decimal

        quantum = decimal.Decimal(1).scaleb(-kind.scale)
        return lambda value: decimal.Decimal(str(value)).quantize(quantum, rounding=decimal.ROUND_HALF_UP)
    if pa.types.is_timestamp(kind):
        return lambda value: _instant(value) * 1000
    if pa.types.is_date(kind):
        return lambda value: _days(value)
    if pa.types.is_binary(kind):
        return lambda value: value.encode() if isinstance(value, str) else bytes(value)
    raise ValueError(f"records cannot hold a {kind}")


def _listed(value):
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__}")
    return value


def _text(value):
    """Convert another value for a text column: its JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Instant):
        return str(value.ms)
    return orjson.dumps(_plain(value), default=str).decode() if isinstance(value, (dict, list, Struct)) else str(value)


def _plain(value):
    if isinstance(value, Struct):
        return {name: _plain(item) for name, item in value.to_dict().items()}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Instant):
        return value.ms
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _boolean(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise TypeError(f"a {type(value).__name__}")


def _whole(value):
    if isinstance(value, bool):
        raise TypeError("a bool")
    if isinstance(value, Instant):
        return value.ms
    return int(value)


def _instant(value):
    if isinstance(value, Instant):
        return value.ms
    if isinstance(value, str):
        import datetime

        moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        return Instant.of(moment).ms
    return _whole(value)


def _days(value):
    import datetime

    if isinstance(value, Instant):
        return value.ms // 86_400_000
    if isinstance(value, str):
        return (datetime.date.fromisoformat(value) - datetime.date(1970, 1, 1)).days
    return _whole(value)


def _short(value):
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


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
        keys = self._part(topic, self._key, *columns[KEY], count, headers) if KEY in columns else [None] * count
        if self._windows:
            starts, ends = (columns[name][0].to_pylist() for name in (WINDOW_START, WINDOW_END))
            keys = [windowed(*each) for each in zip(keys, itertools.repeat(self._windows), starts, ends)]
        values = self._values(topic, columns, count, headers)
        if TOMBSTONE in columns:
            values = [None if gone else value for gone, value in zip(columns[TOMBSTONE][0].to_pylist(), values)]
        times = None
        if TIMESTAMP in columns:
            times = columns[TIMESTAMP][0].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).fill_null(-1000).to_numpy() // 1000
        partitions = columns[PARTITION][0].to_pylist() if PARTITION in columns else None
        return Records(count, ByteColumn.of(keys), ByteColumn.of(values), times, headers), partitions

    def _values(self, topic, columns, count, headers):
        if VALUE in columns:
            return self._part(topic, self._value, *columns[VALUE], count, headers)
        fields = [(array, field) for name, (array, field) in columns.items() if name not in PARTS]
        if not fields:
            return [None] * count
        if self._delimiter is not None:
            rows = zip(*(array.to_pylist() for array, _ in fields))
            return [self._value.from_connect(topic, None, _delimited(row, self._delimiter)) for row in rows]
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
            return []
        if not converter.writes_headers:
            found = converter.encode(topic, schema, columnar(column, schema, count), count)
            if found is not None and (found[1] is None or not len(found[1])):
                return [None] * count if found[0] is None else list(found[0])
        values = values_of(column, schema, count)
        return [converter.written(topic, schema, value, headers and headers[row]) for row, value in enumerate(values)]

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
