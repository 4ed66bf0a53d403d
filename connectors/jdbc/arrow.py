"""Convert values of columns (column.py) to values of records and back, as whole Arrow arrays; only unusual values are converted one by one.

In a record a Decimal is {unscaled, scale}, and Date, Time and Timestamp are int64 milliseconds.
"""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import column as c
from standalone import ConnectError

DECIMALS = pa.struct([pa.field("unscaled", pa.binary()), pa.field("scale", pa.int32())])
DAY_MS = 86_400_000
MICROS = 1_000_000
_WIDTHS = {c.INT8: pa.int8(), c.INT16: pa.int16(), c.INT32: pa.int32(), c.INT64: pa.int64()}
_PLAIN = {**_WIDTHS, c.FLOAT32: pa.float32(), c.FLOAT64: pa.float64(), c.BOOLEAN: pa.bool_(), c.STRING: pa.string(), c.BYTES: pa.binary()}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)

# --- To records ----------------------------------------------------------------------------------------------------


def struct_array(schema, columns, arrays, mapping):
    """Return the rows of a result as an Arrow array of structs."""
    parts = [field_array(column, array, mapping) for column, array in zip(columns, arrays)]
    return pa.StructArray.from_arrays(parts, fields=[pa.field(column.name, part.type) for column, part in zip(columns, parts)])


def field_array(column, array, mapping):
    """Convert one column's values for records."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    kind = mapping.kind(column)
    if column.kind == c.DECIMAL:
        return decimals(array, column.scale, column.name) if kind == c.DECIMAL else numbers(array, kind)
    if column.kind == c.DATE:
        return pc.multiply(array.cast(pa.int64()), DAY_MS)
    if column.kind == c.TIME:
        return floor(array, 1000)
    if column.kind == c.TIMESTAMP:
        return _timestamps(array, mapping)
    if column.kind == c.ARRAY:
        items = field_array(column.item, array.values, mapping)
        return pa.ListArray.from_arrays(array.offsets, items, mask=array.is_null() if array.null_count else None)
    return array if array.type == _PLAIN[column.kind] else array.cast(_PLAIN[column.kind])


def numbers(texts, kind):
    """Convert decimal strings to numbers; for a column without scale keep the strings."""
    if kind == c.STRING:
        return texts.cast(pa.string())
    if kind == c.FLOAT64:
        return pc.cast(texts, pa.float64())
    return pc.cast(pc.replace_substring_regex(texts, r"\.0*$", ""), _WIDTHS[kind])


def decimals(texts, scale, name=""):
    """Convert decimal strings to Connect's Decimal with that scale."""
    try:
        if scale == 0:
            return _unscaled(pc.cast(texts, pa.int64()), 0)
        if scale > 0 and _have_digits(texts, scale):
            return _unscaled(pc.cast(pc.replace_substring(texts, ".", ""), pa.int64()), scale)
    except pa.ArrowInvalid:
        pass  # too many digits for int64, or not a number
    return pa.array([None if text is None else _decimal(text, scale, name) for text in texts.to_pylist()], DECIMALS)


def _have_digits(texts, count):
    """Return whether all strings have exactly `count` digits after the decimal point."""
    point = pc.find_substring(texts, ".")
    return pc.all(pc.and_(pc.greater_equal(point, 0), pc.equal(pc.add(point, count + 1), pc.binary_length(texts)))).as_py() is not False


def _decimal(text, scale, name):
    try:
        with decimal.localcontext() as context:
            context.prec = decimal.MAX_PREC
            context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
            context.traps[decimal.Inexact] = True
            number = int(decimal.Decimal(text).scaleb(scale).to_integral_exact())
    except (decimal.DecimalException, ValueError) as error:
        raise ConnectError(
            f"Column '{name}' holds {text}, which is not a decimal of scale {scale}. Select it as text in `query`, or correct it."
        ) from error
    return {"unscaled": number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True), "scale": scale}


def _unscaled(whole, scale):
    count, nulls = len(whole), whole.null_count
    numbers = whole.fill_null(0).to_numpy(zero_copy_only=False)
    size = np.where(numbers >= 0, numbers, ~numbers)
    lengths = np.ones(count, np.int32)
    for bits in range(7, 63, 8):
        lengths += size >= 1 << bits
    if nulls:
        lengths[whole.is_null().to_numpy(zero_copy_only=False)] = 0
    raw = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    data = raw[np.arange(8) >= (8 - lengths)[:, None]]
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    mask = whole.is_null() if nulls else None
    unscaled = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data))])
    return pa.StructArray.from_arrays([unscaled, pa.array(np.full(count, scale, np.int32))], fields=list(DECIMALS), mask=mask)


def floor(array, by):
    """Divide and round down, also for times before the epoch."""
    whole = array.cast(pa.int64())
    numbers = whole.fill_null(0).to_numpy(zero_copy_only=False) // by
    return pa.array(numbers, mask=whole.is_null().to_numpy(zero_copy_only=False) if whole.null_count else None)


def _timestamps(array, mapping):
    granularity = mapping.granularity
    if granularity == c.CONNECT_LOGICAL:
        return floor(array, 1000)
    if granularity.endswith("_iso_datetime_string"):
        wall = to_wall(array, mapping.zone)
        texts = pc.strftime(wall.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")
        return pc.binary_join_element_wise(texts, "000", "") if granularity.startswith("nanos") else texts
    whole = pc.multiply_checked(array, 1000) if granularity.startswith("nanos") else array
    return whole if granularity.endswith("_long") else whole.cast(pa.string())


# --- Local time and UTC: int64, microseconds since the epoch --------------------------------------------------------


def to_instant(array, zone):
    """Convert local times of the zone to UTC. An ambiguous time is the earlier one, a skipped time the next valid one."""
    if zone == "UTC":
        return array
    return pc.assume_timezone(array.cast(pa.timestamp("us")), zone, ambiguous="earliest", nonexistent="latest").cast(pa.int64())


def to_wall(array, zone):
    """Convert UTC to local times of the zone."""
    if zone == "UTC":
        return array
    return pc.local_timestamp(array.cast(pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us", tz=zone))).cast(pa.int64())


def micros_of(moment):
    """Convert a datetime without time zone to microseconds since the epoch."""
    return (moment - _EPOCH) // _MICROSECOND


def wall_text(micros):
    """Format microseconds since the epoch as 2020-01-31 23:59:59.123456."""
    return str(np.datetime64(micros, "us")).replace("T", " ")


def zone_micros(micros, zone):
    """Convert one time from UTC to local time of the zone."""
    return to_wall(pa.array([micros], pa.int64()), zone)[0].as_py()


# --- From records ----------------------------------------------------------------------------------------------------


def decimal_texts(array):
    """Convert Connect's Decimals to plain decimal strings."""
    unscaled = array.field(0)
    valid = array.drop_null() if array.null_count else array
    one = valid.field(1)[0].as_py() if len(valid) else None
    widest = pc.max(pc.binary_length(unscaled)).as_py() if len(valid) else 0
    if one is not None and 0 <= one <= 6 and (widest or 0) <= 8 and pc.all(pc.equal(valid.field(1), one)).as_py() is not False:
        return _quick_texts(array, unscaled, one)
    return pa.array([None if each is None else _text_of(each) for each in array.to_pylist()], pa.string())


def _quick_texts(array, unscaled, scale):
    unscaled = unscaled.fill_null(b"")
    ends = np.frombuffer(unscaled.buffers()[1], np.int32)[unscaled.offset : unscaled.offset + len(unscaled) + 1].astype(np.int64)
    data = np.frombuffer(unscaled.buffers()[2] or b"", np.uint8)
    lengths = np.diff(ends)
    numbers = np.zeros(len(unscaled), np.int64)
    for place in range(8):
        has = lengths > place
        digits = data[ends[:-1][has] + place].astype(np.int64)
        if place == 0:
            digits = np.where(digits >= 128, digits - 256, digits)
        numbers[has] = (numbers[has] << 8) | digits if place else digits
    wide = np.empty((len(numbers), 2), np.int64)
    wide[:, 0], wide[:, 1] = numbers, numbers >> 63
    valid = None
    if array.null_count:
        valid = pa.py_buffer(np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(numbers), [valid, pa.py_buffer(wide)]).cast(pa.string())


def _text_of(value):
    """Format without an exponent, which not all databases accept."""
    number, scale = int.from_bytes(value["unscaled"], "big", signed=True), value["scale"]
    if scale <= 0:
        return str(number) + "0" * (-scale if number else 0)
    digits = str(abs(number)).rjust(scale + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def hex_texts(array):
    """Convert bytes to hexadecimal strings."""
    array = array.cast(pa.binary())
    ends, data = _slices(array)
    text = data[ends[0] : ends[-1]].tobytes().hex().encode()
    return pa.Array.from_buffers(
        pa.string(), len(array), [_validity(array), pa.py_buffer(((ends - ends[0]) * 2).astype(np.int32)), pa.py_buffer(text)]
    )


def from_hex(array):
    """Convert hexadecimal strings to bytes."""
    ends, data = _slices(array)
    raw = bytes.fromhex(data[ends[0] : ends[-1]].tobytes().decode())
    return pa.Array.from_buffers(
        pa.binary(), len(array), [_validity(array), pa.py_buffer(((ends - ends[0]) // 2).astype(np.int32)), pa.py_buffer(raw)]
    )


def _slices(array):
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return ends, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)


def _validity(array):
    return pa.py_buffer(np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little")) if array.null_count else None
