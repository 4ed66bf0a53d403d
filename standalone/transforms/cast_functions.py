"""Casts in both forms: by row as in Java, and as an equivalent expression that marks the rows where it differs.

To add a cast, add a class with `row` and `column`, and a line in `function`.
"""

from standalone import DataError, F, Float32, Function, NoColumns, Schema, float_text
from standalone.data import schema as s
from standalone.data.java_calendar import DAY_MS
from standalone.data.java_numbers import narrowed, parse_floating, parse_whole, to_single
from standalone.data.scalars import CLASSES, WIDTHS
from standalone.data.values import convert, to_text
from standalone.transforms.date_columns import END_MS, cut_div, written
from standalone.transforms.date_format import DateFormat

WHOLE = (s.INT8, s.INT16, s.INT32, s.INT64)
FLOATING = (s.FLOAT32, s.FLOAT64)
TARGETS = (*WHOLE, *FLOATING, s.BOOLEAN, s.STRING)
SOURCES = (*TARGETS, s.BYTES)
_POINTS = (s.DATE, s.TIME, s.TIMESTAMP)
_SPARK = {s.INT8: "tinyint", s.INT16: "smallint", s.INT32: "int", s.INT64: "bigint", s.FLOAT32: "float", s.FLOAT64: "double"}


def function(schema, kind):
    """The cast of values of a schema to a type."""
    if schema.type not in SOURCES:
        return Refused(schema, kind)
    if schema.name == s.DECIMAL:
        return TextOfDecimal(schema, kind) if kind == s.STRING else NumberOfDecimal(schema, kind)
    if schema.name in _POINTS:
        return TextOfPoint(schema, kind) if kind == s.STRING else NumberOfPoint(schema, kind)
    if kind == s.STRING:
        texts = {s.STRING: TextOfText, s.BYTES: TextOfBytes, s.BOOLEAN: TextOfBoolean, **dict.fromkeys(FLOATING, TextOfFloat)}
        return texts.get(schema.type, TextOfWhole)(schema, kind)
    numbers = {s.STRING: NumberOfText, s.BYTES: NumberOfBytes}
    return numbers.get(schema.type, NumberOfNumber)(schema, kind)


class CastFunction(Function):
    def __init__(self, schema, kind):
        self.source = schema
        self.kind = kind


class Refused(CastFunction):
    """The cast of a list, a map or a struct: always an error."""

    def row(self, value):
        found = self.source.name or self.source.type
        raise DataError(f"Cast cannot cast a {found}. Types that can be cast: {', '.join(SOURCES)}.")

    def column(self, column):
        raise NoColumns(f"a {self.source.type} as {self.kind} is an error")


# --- Numbers -------------------------------------------------------------------------------------------------------


class NumberOfNumber(CastFunction):
    """The cast of a number or boolean. Integers wrap; floats are first clamped to an int (or a long), then wrap."""

    def __init__(self, schema, kind):
        super().__init__(schema, kind)
        self.row = _MAKERS[kind]

    def column(self, column):
        return number_column(column, self.source.type, self.kind), None


def number_column(column, source, kind):
    if kind == s.BOOLEAN:
        return column if source == s.BOOLEAN else column.cast("bigint") != 0
    if source in FLOATING and kind in (s.INT8, s.INT16):
        column = column.cast("int")
    return column.cast(_SPARK[kind])


def _whole_maker(kind):
    made, half = CLASSES[kind], 1 << WIDTHS[kind] - 1

    def whole(value):
        return made(value) if -half <= value < half else narrowed(value, kind)

    return whole


def _double_of(value):
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


_MAKERS = {
    **{kind: _whole_maker(kind) for kind in WHOLE},
    s.FLOAT64: _double_of,
    s.FLOAT32: lambda value: value if isinstance(value, Float32) else to_single(value),
    s.BOOLEAN: lambda value: bool(narrowed(value, s.INT64)),
}


class NumberOfText(CastFunction):
    """The cast of a string, parsed as in Java; any text except "true" is false."""

    # Spark parses floats with Java's parser, but also accepts inf and nan in any case.
    _WORD = "[iInN]"
    _JAVA_WORD = "^[\\x00-\\x20]*[+-]?(?:NaN|Infinity)[\\x00-\\x20]*\\z"
    _WHOLE_TEXT = "^[+-]?[0-9]{1,18}\\z"

    def row(self, value):
        if self.kind == s.BOOLEAN:
            return value.lower() == "true"
        try:
            return (parse_whole if self.kind in WIDTHS else parse_floating)(value, self.kind)
        except ValueError as error:
            raise DataError(f"Cast cannot read '{value}' as {self.kind}: {error}.") from None

    def column(self, column):
        if self.kind == s.BOOLEAN:
            return F.lower(column) == "true", None
        if self.kind in FLOATING:
            number = column.cast(_SPARK[self.kind])
            return number, number.isNull() | column.rlike(self._WORD) & ~column.rlike(self._JAVA_WORD)
        whole, half = column.cast("bigint"), 1 << WIDTHS[self.kind] - 1
        read = F.coalesce(column.rlike(self._WHOLE_TEXT) & whole.between(-half, half - 1), F.lit(False))
        return whole.cast(_SPARK[self.kind]), ~read


class NumberOfBytes(CastFunction):
    def row(self, value):
        raise DataError(f"Cast cannot make {self.kind} of a {type(value).__name__}: only of numbers, booleans and texts.")

    def column(self, column):
        raise NoColumns(f"a {self.source.type} as {self.kind} is an error")


class NumberOfPoint(CastFunction):
    """The cast of a Date, Time or Timestamp: its underlying number."""

    def __init__(self, schema, kind):
        super().__init__(schema, kind)
        self._number = Schema(s.LOGICAL[schema.name])
        self._made = _MAKERS[kind]

    def row(self, value):
        return self._made(convert(self._number, self.source, value))

    def column(self, column):
        number, failed = column, None
        if self.source.name == s.DATE:
            number, failed = cut_div(column, DAY_MS).cast("int"), F.pmod(column, F.lit(DAY_MS).cast("long")) != 0
        elif self.source.name == s.TIME:
            number, failed = column.cast("int"), ~column.between(0, DAY_MS)
        return number_column(number, s.INT64, self.kind), failed


class NumberOfDecimal(CastFunction):
    """The cast of a Decimal. The column form supports unscaled values of at most eight bytes."""

    _EXACT = {s.FLOAT32: (1 << 24, 10), s.FLOAT64: (1 << 53, 22)}  # the largest integer and power of ten that are exact in the type

    def row(self, value):
        return (narrowed(value, self.kind) if self.kind in WIDTHS else _MAKERS[self.kind](value))

    def column(self, column):
        unscaled, scale, power, fits = _decimal_parts(column)
        if self.kind in FLOATING:
            # The quotient of two exact numbers is rounded only once.
            largest, most = self._EXACT[self.kind]
            exact = fits & unscaled.between(-largest, largest) & (scale <= most)
            quotient = unscaled.cast("double") / power.cast("double")
            return F.when(unscaled == 0, F.lit(0.0)).otherwise(quotient).cast(_SPARK[self.kind]), ~exact
        return number_column(F.call_function("div", unscaled, power), s.INT64, self.kind), ~fits


# --- Strings ---------------------------------------------------------------------------------------------------------


class TextOfText(CastFunction):
    row = staticmethod(str)

    def column(self, column):
        return column, None


class TextOfWhole(CastFunction):
    row = staticmethod(int.__repr__)

    def column(self, column):
        return column.cast("string"), None


class _ByToText(CastFunction):
    def row(self, value):
        return to_text(value, self.source)


class TextOfBoolean(_ByToText):
    def column(self, column):
        return column.cast("string"), None


class TextOfFloat(_ByToText):
    """The text of a float. By column it is formatted outside of the JVM, because JVM versions print different digits."""

    keeps_nulls = True  # float_text cannot be used inside a condition

    def column(self, column):
        return float_text(column, self.source.type), None


class TextOfBytes(_ByToText):
    def column(self, column):
        return F.replace(F.base64(column), F.lit("\r\n"), F.lit("")), None  # Spark inserts line breaks


class TextOfPoint(_ByToText):
    """The time only on the epoch day (or before it), the date only at midnight, otherwise both."""

    _CLOCK, _DATE = DateFormat("HH:mm:ss.SSS'Z'"), DateFormat("yyyy-MM-dd")

    def column(self, column):
        clock, date = written(column, self._CLOCK), written(column, self._DATE)
        is_midnight = F.pmod(column, F.lit(DAY_MS).cast("long")) == 0
        text = F.when(column < DAY_MS, clock).when(is_midnight, date).otherwise(F.concat(date, F.lit("T"), clock))
        return text, column >= END_MS


class TextOfDecimal(_ByToText):
    def column(self, column):
        unscaled, scale, power, fits = _decimal_parts(column)
        return _text_of_decimal(unscaled, scale, power), ~(fits & (scale <= 6))  # small numbers may be printed with an exponent


# --- The parts of a Decimal ----------------------------------------------------------------------------------------

_MOST_DIGITS = 18  # the largest scale whose power of ten fits a long


def _decimal_parts(column):
    """(the unscaled number, the scale, ten to the power of the scale, whether all of them fit a long)."""
    scale = column.getField("scale")
    unscaled, fits = _long_of_bytes(column.getField("unscaled"))
    powers = F.array(*(F.lit(10**n).cast("long") for n in range(_MOST_DIGITS + 1)))
    fits = fits & scale.between(0, _MOST_DIGITS)
    return unscaled, scale, F.element_at(powers, F.when(fits, scale + 1).otherwise(1)), fits


def _long_of_bytes(unscaled):
    """(the long in big-endian bytes, whether there are at most eight bytes)."""
    is_negative = F.hex(F.substring(unscaled, 1, 1)) >= "80"
    digits = F.hex(unscaled)
    signed = F.when(is_negative, F.lpad(digits, 16, "F")).otherwise(F.lpad(digits, 16, "0"))
    return F.conv(signed, 16, -10).cast("bigint"), F.length(unscaled).between(1, 8)


def _text_of_decimal(unscaled, scale, power):
    sign = F.when(unscaled < 0, F.lit("-")).otherwise(F.lit(""))
    # The smallest long has no positive counterpart; its text has the right digits.
    digits = F.regexp_replace(unscaled.cast("string"), "-", "")
    filled = F.when(F.length(digits) <= scale, F.lpad(digits, scale + 1, F.lit("0"))).otherwise(digits)
    whole = F.substring(filled, F.lit(1), F.length(filled) - scale)
    fraction = F.substring(filled, F.length(filled) - scale + 1, scale)
    return F.when(scale == 0, F.concat(sign, filled)).otherwise(F.concat(sign, whole, F.lit("."), fraction))
