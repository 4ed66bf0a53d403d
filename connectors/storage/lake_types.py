"""Convert Connect's columns to the types of lake file formats.

| Connect | Arrow in a batch | in Parquet and ORC |
|---|---|---|
| Decimal | struct {unscaled, scale} | decimal(precision, scale): the precision is the schema's connect.decimal.precision, or 38 |
| Date | int64, milliseconds | date |
| Time | int64, milliseconds | time of milliseconds; ORC has none: int32 |
| Timestamp | int64, milliseconds | timestamp of milliseconds, in UTC; ORC: one without a zone, which is Hive's `timestamp` |
| all others | the same | the same; required fields are not nullable |
"""

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone import DataError

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
_MOMENTS = (DATE, TIME, TIMESTAMP)
DAY_MS = 86_400_000
MOST_DIGITS = 38
_PLAIN = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32(), "float64": pa.float64(),
    "boolean": pa.bool_(), "string": pa.string(), "bytes": pa.binary(),
}  # fmt: skip


@dataclass(frozen=True)
class Clock:
    """A format's types for time of day and point in time."""

    time: pa.DataType
    timestamp: pa.DataType


WITH_TIMES = Clock(pa.time32("ms"), pa.timestamp("ms", "UTC"))
WITHOUT_TIMES = Clock(pa.int32(), pa.timestamp("ms", "UTC"))
WITHOUT_ZONES = Clock(pa.int32(), pa.timestamp("ms"))


@functools.lru_cache(1000)
def lake_schema(schema, clock=WITH_TIMES):
    """Return the Arrow schema of a file of structs with that Schema."""
    return pa.schema(list(lake_type(schema, clock)))


def lake_type(schema, clock=WITH_TIMES, within_null=False):
    """Return the Arrow type. `within_null`: inside a struct that may be null, everything must be nullable, or Parquet's writer would fail."""
    if schema.name == DECIMAL:
        return pa.decimal128(*digits_of(schema))
    if schema.name in _MOMENTS:
        return {DATE: pa.date32(), TIME: clock.time, TIMESTAMP: clock.timestamp}[schema.name]
    if schema.type == "struct":
        if not schema.fields:
            raise DataError("Columnar files cannot store a struct without fields: drop it, or write JSON or Avro.")
        return pa.struct([_member(each.name, each.schema, clock, within_null) for each in schema.fields])
    if schema.type == "array":
        return pa.list_(_member("element", schema.value_schema, clock))
    if schema.type == "map":
        key = pa.field("key", lake_type(schema.key_schema, clock), nullable=False)
        return pa.map_(key, _member("value", schema.value_schema, clock))
    return _PLAIN[schema.type]


def _member(name, schema, clock, within_null=False):
    may_be_null = schema.optional or within_null
    return pa.field(name, lake_type(schema, clock, may_be_null), nullable=may_be_null)


def digits_of(schema):
    """Return (precision, scale) of a Decimal's schema."""
    parameters = schema.parameters or {}
    scale = int(parameters.get("scale", 0))
    precision = int(parameters.get("connect.decimal.precision", MOST_DIGITS))
    if scale > MOST_DIGITS or scale < 0:
        raise DataError(f"Columnar files cannot store a Decimal of scale {scale}: they support scales 0 to {MOST_DIGITS}.")
    return max(min(precision, MOST_DIGITS), scale, 1), scale


def to_lake(array, schema, clock=WITH_TIMES):
    """Convert an Arrow array of Connect's type to the lake's type. Raise DataError if a value does not fit."""
    return _converted(array, schema, lake_type(schema, clock))


def rows_to_lake(array, schema, clock=WITH_TIMES):
    """Like `to_lake`, returning (array, {row: DataError}): bad rows are found by bisection and become null."""
    kind = lake_type(schema, clock)  # an error here applies to every row
    pieces, bad = [], {}

    def take(low, high):
        try:
            pieces.append(_converted(array.slice(low, high - low), schema, kind))
        except DataError as error:
            if high - low > 1:
                take(low, (low + high) // 2)
                take((low + high) // 2, high)
            else:
                bad[low] = error
                pieces.append(pa.nulls(1, kind))

    take(0, len(array))
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces), bad


def _converted(array, schema, kind):
    if schema.name == DECIMAL:
        return _decimals(array, schema, kind)
    if schema.name in _MOMENTS:
        return _moments(array, schema, kind)
    if schema.type == "struct":
        parts = [_converted(_field(array, at), each.schema, kind.field(at).type) for at, each in enumerate(schema.fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null() if array.null_count else None)
    if schema.type == "array":
        mask = array.is_null() if array.null_count else None
        low, high = _extent(array)
        items = _converted(array.values[low:high], schema.value_schema, kind.value_type)
        return pa.ListArray.from_arrays(_offsets(array, low), items, type=kind, mask=mask)
    if schema.type == "map":
        mask = array.is_null() if array.null_count else None
        low, high = _extent(array)
        keys = _converted(array.keys[low:high], schema.key_schema, kind.key_type)
        items = _converted(array.items[low:high], schema.value_schema, kind.item_type)
        return pa.MapArray.from_arrays(_offsets(array, low), keys, items, type=kind, mask=mask)
    return array


def _field(array, at):
    """Return a field's values; null where the struct is null."""
    return pc.struct_field(array, [at]) if array.null_count else array.field(at)


def _offsets(array, low):
    offsets = array.offsets
    return offsets if not low else pc.subtract(offsets, pa.scalar(low, offsets.type))


def _extent(array):
    if not len(array):
        return 0, 0
    return array.offsets[0].as_py(), array.offsets[len(array)].as_py()


def _moments(array, schema, kind):
    if schema.name == DATE:
        days = pa.array(np.floor_divide(_numbers(array), DAY_MS), pa.int64(), mask=_mask(array))
        return days.cast(pa.int32()).cast(kind)
    if schema.name == TIME:
        short = array.cast(pa.int32())
        return short if kind == pa.int32() else short.cast(kind)
    if kind == WITHOUT_ZONES.timestamp:
        _check_orc_range(array)
    return array.cast(kind)


def _check_orc_range(array):
    """Reject fractional seconds before 1970: pyarrow's ORC writer (26.0) rounds them towards 1970, and Java's readers then fail on the file."""
    millis = _numbers(array)
    wrong = np.flatnonzero((millis < 0) & (millis % 1000 != 0))
    if len(wrong):
        raise DataError(
            f"A Timestamp of {millis[wrong[0]]} ms, before 1970 and with a fraction of a second, cannot be written to ORC in a form that Java reads. "
            "Write Parquet or Avro, or drop the field."
        )


def _numbers(array):
    return pc.fill_null(array, 0).to_numpy(zero_copy_only=False)


def _mask(array):
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


def _decimals(array, schema, kind):
    """Convert big-endian bytes of any length to 16 little-endian bytes."""
    scales, unscaled = pc.struct_field(array, [1]), pc.struct_field(array, [0])
    count, valid = len(array), unscaled.is_valid().to_numpy(zero_copy_only=False)
    if len(pc.unique(pc.drop_null(scales))) > 1 or (valid.any() and pc.drop_null(scales)[0].as_py() != kind.scale):
        found = sorted(set(pc.drop_null(scales).to_pylist()) - {kind.scale})
        raise DataError(f"A Decimal has scale {found[0]}, but its schema has scale {kind.scale}.")
    lengths = pc.fill_null(pc.binary_length(unscaled), 0).to_numpy(zero_copy_only=False)
    wide = np.zeros((count, 16), np.uint8)
    _, offsets, data = unscaled.buffers()
    if data is not None and count:
        starts = np.frombuffer(offsets, np.int32)[unscaled.offset : unscaled.offset + count].astype(np.int64)
        source = np.frombuffer(data, np.uint8)
        for length in np.unique(lengths[valid]).tolist():
            if not length:
                continue
            rows = np.flatnonzero(valid & (lengths == length))
            taken = source[starts[rows, None] + (length - 1 - np.arange(min(length, 16)))]
            sign = np.where(source[starts[rows]] >= 0x80, np.uint8(0xFF), np.uint8(0))
            if length > 16:
                raise DataError(_too_wide(kind))
            wide[rows, :length] = taken
            wide[rows, length:] = sign[:, None]
    nulls = count - int(valid.sum())
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    made = pa.Array.from_buffers(kind, count, [bits, pa.py_buffer(wide)], nulls)
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:
        raise DataError(_too_wide(kind)) from None
    return made


def _too_wide(kind):
    return f"A Decimal has more than the {kind.precision} digits that decimal({kind.precision}, {kind.scale}) holds."
