"""Cast's column meaning: one type as another, as Spark expressions that do what Java does, or say which rows they do not do.

Floating-point numbers become text outside of the JVM, whose digits differ from version to version.
"""

from standalone import F, NoColumns, float_text
from standalone.data import schema as s
from standalone.data.java_calendar import DAY_MS
from standalone.transforms.date_columns import END_MS, cut_div, written
from standalone.transforms.date_format import DateFormat

_SPARK = {s.INT8: "tinyint", s.INT16: "smallint", s.INT32: "int", s.INT64: "bigint", s.FLOAT32: "float", s.FLOAT64: "double"}
_BITS = {s.INT8: 8, s.INT16: 16, s.INT32: 32, s.INT64: 64}
_FLOATING = (s.FLOAT32, s.FLOAT64)
_WHOLE_TEXT = "^[+-]?[0-9]{1,18}\\z"
# Spark reads floats by Java's own parser, but takes inf and nan, too, in any case.
_WORD = "[iInN]"
_JAVA_WORD = "^[\\x00-\\x20]*[+-]?(?:NaN|Infinity)[\\x00-\\x20]*\\z"
_CLOCK, _DATE = DateFormat("HH:mm:ss.SSS'Z'"), DateFormat("yyyy-MM-dd")


def cast(column, schema, kind):
    """(the column as that type, rows that the rows engine must do or None). Raises NoColumns."""
    if schema.name == s.DECIMAL:
        return _of_decimal(column, kind)
    if schema.logical:
        return _text_of_point(column) if kind == s.STRING else _of_point(column, schema, kind)
    if schema.type == s.STRING:
        return (column, None) if kind == s.STRING else _of_text(column, kind)
    if schema.type == s.BYTES and kind == s.STRING:
        return _text_of_bytes(column)
    if schema.type not in _SPARK and schema.type != s.BOOLEAN:
        raise NoColumns(f"a {schema.type} as {kind} is an error")
    if kind == s.STRING and schema.type in _FLOATING:
        return float_text(column, schema.type), None
    if kind == s.STRING:
        return column.cast("string"), None
    return _of_number(column, schema.type, kind), None


def _of_number(column, source, kind):
    """Of a number or boolean. Whole numbers wrap; floats become an int (or a long) first, as near as there is one, and then wrap."""
    if kind == s.BOOLEAN:
        return column if source == s.BOOLEAN else column.cast("bigint") != 0
    if source in _FLOATING and kind in (s.INT8, s.INT16):
        column = column.cast("int")
    return column.cast(_SPARK[kind])


def _of_text(column, kind):
    if kind == s.BOOLEAN:
        return F.lower(column) == "true", None
    if kind in _FLOATING:
        number = column.cast(_SPARK[kind])
        unread = number.isNull() | column.rlike(_WORD) & ~column.rlike(_JAVA_WORD)
    else:
        whole, half = column.cast("bigint"), 1 << _BITS[kind] - 1
        number = whole.cast(_SPARK[kind])
        unread = ~F.coalesce(column.rlike(_WHOLE_TEXT) & whole.between(-half, half - 1), F.lit(False))
    return number, unread


def _text_of_bytes(column):
    return F.replace(F.base64(column), F.lit("\r\n"), F.lit("")), None  # Spark breaks it into lines


def _of_point(column, schema, kind):
    """Of Date, Time or Timestamp: the number that stands for it."""
    number, failed = column, None
    if schema.name == s.DATE:
        number, failed = cut_div(column, DAY_MS).cast("int"), F.pmod(column, F.lit(DAY_MS).cast("long")) != 0
    elif schema.name == s.TIME:
        number, failed = column.cast("int"), ~column.between(0, DAY_MS)
    return _of_number(number, s.INT64, kind), failed


def _text_of_point(column):
    """The clock of the first day (or before it), the date of a midnight, both of all else."""
    clock, date = written(column, _CLOCK), written(column, _DATE)
    is_midnight = F.pmod(column, F.lit(DAY_MS).cast("long")) == 0
    text = F.when(column < DAY_MS, clock).when(is_midnight, date).otherwise(F.concat(date, F.lit("T"), clock))
    return text, column >= END_MS


# --- Decimals ------------------------------------------------------------------------------------------------------

_MOST_DIGITS = 18  # of a scale that a long's power of ten has room for
_EXACT = {s.FLOAT32: (1 << 24, 10), s.FLOAT64: (1 << 53, 22)}  # numbers and powers of ten that the type holds exactly


def _of_decimal(column, kind):
    """Of an unscaled number of at most eight bytes and its scale."""
    scale = column.getField("scale")
    unscaled, fits = _long_of_bytes(column.getField("unscaled"))
    powers = F.array(*(F.lit(10**n).cast("long") for n in range(_MOST_DIGITS + 1)))
    fits = fits & scale.between(0, _MOST_DIGITS)
    power = F.element_at(powers, F.when(fits, scale + 1).otherwise(1))
    if kind == s.STRING:
        return _text_of_decimal(unscaled, scale, power), ~(fits & (scale <= 6))  # small ones may have an exponent
    if kind in _FLOATING:
        # Two numbers that the type holds exactly have a quotient that is rounded once.
        largest, most = _EXACT[kind]
        exact = fits & unscaled.between(-largest, largest) & (scale <= most)
        quotient = unscaled.cast("double") / power.cast("double")
        return F.when(unscaled == 0, F.lit(0.0)).otherwise(quotient).cast(_SPARK[kind]), ~exact
    return _of_number(F.call_function("div", unscaled, power), s.INT64, kind), ~fits


def _long_of_bytes(unscaled):
    """(the long that big-endian bytes are, whether they are at most eight)."""
    is_negative = F.hex(F.substring(unscaled, 1, 1)) >= "80"
    digits = F.hex(unscaled)
    signed = F.when(is_negative, F.lpad(digits, 16, "F")).otherwise(F.lpad(digits, 16, "0"))
    return F.conv(signed, 16, -10).cast("bigint"), F.length(unscaled).between(1, 8)


def _text_of_decimal(unscaled, scale, power):
    sign = F.when(unscaled < 0, F.lit("-")).otherwise(F.lit(""))
    # The smallest long has no positive counterpart, but its digits come out right from the text.
    digits = F.regexp_replace(unscaled.cast("string"), "-", "")
    filled = F.when(F.length(digits) <= scale, F.lpad(digits, scale + 1, F.lit("0"))).otherwise(digits)
    whole = F.substring(filled, F.lit(1), F.length(filled) - scale)
    fraction = F.substring(filled, F.length(filled) - scale + 1, scale)
    return F.when(scale == 0, F.concat(sign, filled)).otherwise(F.concat(sign, whole, F.lit("."), fraction))
