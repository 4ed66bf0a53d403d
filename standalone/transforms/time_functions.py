"""Conversions of points in time, by row and by column: parsers to milliseconds since the epoch, and formatters from milliseconds.

Each is a class with `row` and `column`, and a line in `reader` or `writer`. By row a time zone in a string is passed on.
"""

from standalone import ConnectError, DataError, F, Instant, Int64, NoColumns
from standalone.data.java_calendar import DAY_MS
from standalone.data.java_numbers import wrapped
from standalone.data.struct import MOMENTS
from standalone.transforms import date_columns

TEXT, UNIX, DATE, TIME, TIMESTAMP = "string", "unix", "Date", "Time", "Timestamp"
LONG_MAX = (1 << 63) - 1


def reader(form, per_second, format):
    return ReadText(format) if form == TEXT else ReadCount(per_second) if form == UNIX else ReadPoint(form)


def writer(form, per_second, format):
    if form == TEXT:
        return WriteText(format)
    return WriteCount(per_second) if form == UNIX else {DATE: WriteDate, TIME: WriteTime, TIMESTAMP: WritePoint}[form]()


# --- Integers ------------------------------------------------------------------------------------------------------


class Times:
    """Multiplication that saturates at the limits of a long."""

    def __init__(self, factor):
        self.factor = factor

    def row(self, number):
        return max(-LONG_MAX - 1, min(number * self.factor, LONG_MAX))

    def column(self, number):
        if self.factor == 1:
            return number
        limit = LONG_MAX // self.factor
        product = number * F.lit(self.factor).cast("long")
        return F.when(number > limit, F.lit(LONG_MAX)).when(number < -limit, F.lit(-LONG_MAX - 1)).otherwise(product)


class DividedBy:
    """Division that truncates towards zero, as in Java."""

    def __init__(self, by):
        self.by = by

    def row(self, number):
        return number // self.by if number >= 0 else -(-number // self.by)

    def column(self, number):
        return number if self.by == 1 else date_columns.cut_div(number, self.by)


# --- Reading: a value -> (milliseconds, the zone or None); a column -> (milliseconds, rows unread or None) ---------


class ReadText:
    def __init__(self, format):
        self.format = format

    def row(self, text):
        if not isinstance(text, str):
            raise DataError(f"TimestampConverter expected a text; found a {type(text).__name__}.")
        if self.format is None:
            raise ConnectError("TimestampConverter cannot read texts: it was not told 'format'. Set it to a pattern such as yyyy-MM-dd.")
        try:
            return self.format.parse(text)
        except ValueError as error:
            raise DataError(f"TimestampConverter cannot read '{text}' by the format '{self.format.pattern}': {error}.") from None

    def column(self, column):
        if self.format is None:
            raise NoColumns("it was not told the format of texts")
        return date_columns.millis_of(column, self.format)


class ReadCount:
    """A Unix time in the configured precision."""

    def __init__(self, per_second):
        self._scale = Times(1000 // per_second) if per_second <= 1000 else DividedBy(per_second // 1000)

    def row(self, count):
        if not is_long(count):
            raise DataError(f"TimestampConverter reads an int64 as a number since the epoch; found a {type(count).__name__}.")
        return self._scale.row(count), None

    def column(self, column):
        return self._scale.column(column), None


class ReadPoint:
    def __init__(self, form):
        self.form = form

    def row(self, value):
        if not isinstance(value, MOMENTS):
            raise DataError(f"TimestampConverter expected a {self.form}; found a {type(value).__name__}.")
        return Instant.of(value).ms, None

    def column(self, column):
        return column, None


# --- Writing: milliseconds and a zone -> a value; a column of milliseconds -> (a column, rows unwritten or None) ---


class WriteText:
    def __init__(self, format):
        self.format = format

    def row(self, ms, zone):
        return self.format.format(ms, zone)

    def column(self, ms):
        return date_columns.text_of(ms, self.format)


class WriteCount:
    def __init__(self, per_second):
        self._scale = DividedBy(1000 // per_second) if per_second <= 1000 else Times(per_second // 1000)

    def row(self, ms, zone):
        return Int64(self._scale.row(ms))

    def column(self, ms):
        return self._scale.column(ms), None


class WriteDate:
    def row(self, ms, zone):
        return Instant(wrapped(ms - ms % DAY_MS, 64))

    def column(self, ms):
        return ms - date_columns.floor_mod(ms, DAY_MS), None


class WriteTime:
    def row(self, ms, zone):
        return Instant(ms % DAY_MS)

    def column(self, ms):
        return date_columns.floor_mod(ms, DAY_MS), None


class WritePoint:
    def row(self, ms, zone):
        return Instant(ms)

    def column(self, ms):
        return ms, None


def is_long(value):
    return type(value) in (int, Int64)
