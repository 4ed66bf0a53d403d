"""Convert MySQL's strings to Arrow, and Arrow to CSV for LOAD DATA."""

import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import arrow
from connectors.jdbc import column as c
from standalone import ConnectError

_DAY_MICROS = 86_400 * arrow.MICROS
_NUMBERS = {c.INT8: pa.int64(), c.INT16: pa.int64(), c.INT32: pa.int64(), c.INT64: pa.int64(), c.FLOAT32: pa.float64(), c.FLOAT64: pa.float64()}


def values(column, strings, zone, zero):
    """Convert a ByteColumn to the types in column.py. `zero` is zeroDateTimeBehavior, for dates such as 0000-00-00."""
    kind = column.kind
    try:
        if kind == c.BYTES:
            return strings.to_arrow().cast(pa.binary())
        if column.type_name == "bit":
            return pa.array([None if item is None else int.from_bytes(item, "big") for item in strings], pa.int64())
        texts = strings.to_arrow().cast(pa.string())
        if kind in _NUMBERS:
            return texts.cast(_NUMBERS[kind])
        if column.type_name == "year":
            return _days(pc.binary_join_element_wise(texts, "01-01", "-"))
        if kind == c.DATE:
            return _days(_without_zeros(column, texts, zero))
        if kind == c.TIMESTAMP:
            micros = _without_zeros(column, texts, zero).cast(pa.timestamp("us")).cast(pa.int64())
            return micros if column.is_zoned else arrow.to_instant(micros, zone)
        if kind == c.TIME:
            return pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("us")).cast(pa.int64())
        return texts
    except pa.ArrowException as error:
        raise ConnectError(
            f"Column '{column.name}' ({column.type_name}) contains a value that its field type cannot hold: {error}. Select it in `query` with CAST "
            "as text or DECIMAL."
        ) from error


def _days(texts):
    return arrow.floor(texts.cast(pa.timestamp("us")).cast(pa.int64()), _DAY_MICROS)


def _without_zeros(column, texts, zero):
    """Handle zero dates by zeroDateTimeBehavior, as Java's driver does."""
    wrong = pc.match_substring_regex(texts, "^(0000-|[0-9]{4}-00|[0-9]{4}-[0-9]{2}-00)")
    if not pc.any(wrong).as_py():
        return texts
    if zero in ("CONVERT_TO_NULL", "CONVERTTONULL") and column.nullable:
        return pc.if_else(wrong, pa.scalar(None, pa.string()), texts)
    if zero == "ROUND":
        return pc.if_else(wrong, "0001-01-01", texts)
    raise ConnectError(
        f"Column '{column.name}' contains an invalid date such as 0000-00-00. Add zeroDateTimeBehavior=CONVERT_TO_NULL to connection.url to read it "
        "as null (if the column is nullable), or =ROUND to read it as 0001-01-01."
    )


def csv(arrays):
    """Return rows as CSV: nulls are an unquoted NULL, strings are quoted, bytes are hexadecimal strings."""
    parts = [_texts(array) for array in arrays]
    lines = pc.binary_join_element_wise(*[part.cast(pa.large_string()) for part in parts], pa.scalar(",", pa.large_string()))
    lines = pc.binary_join_element_wise(lines, pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string()))
    lines = lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines
    return b"".join(lines.cast(pa.large_binary()).to_pylist()) if lines.offset else lines.buffers()[2] or b""


def _texts(array):
    if pa.types.is_binary(array.type):
        array = arrow.hex_texts(array)
    elif not pa.types.is_string(array.type):
        return array.cast(pa.string()).fill_null("NULL")
    return pc.binary_join_element_wise('"', pc.replace_substring(array, '"', '""'), '"', "").fill_null("NULL")
