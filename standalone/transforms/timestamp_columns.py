"""TimestampConverter's column meaning: points in time between their forms, as Spark expressions over milliseconds."""

from standalone import F, NoColumns
from standalone.data.java_calendar import DAY_MS
from standalone.transforms import expressions
from standalone.transforms.date_columns import cut_div, floor_mod, millis_of, text_of

LONG_MAX = (1 << 63) - 1


def convert(column, form, target, per_second, format):
    """(a column of the form `form` in the form `target`, rows that the rows engine must do or None). Raises NoColumns."""
    ms, unread = _millis(column, form, per_second, format)
    if target == "string":
        text, unwritten = text_of(ms, format)
        return text, expressions.any_of([unread, unwritten])
    if target == "unix":
        return _counted(ms, per_second), unread
    if target == "Timestamp":
        return ms, unread
    ms_of_day = floor_mod(ms, DAY_MS)
    return ms_of_day if target == "Time" else ms - ms_of_day, unread


def _millis(column, form, per_second, format):
    if form == "string":
        if format is None:
            raise NoColumns("it was not told the format of texts")
        return millis_of(column, format)
    if form != "unix":
        return column, None
    return (_times(column, 1000 // per_second) if per_second <= 1000 else cut_div(column, per_second // 1000)), None


def _counted(ms, per_second):
    if per_second == 1000:
        return ms
    return cut_div(ms, 1000 // per_second) if per_second < 1000 else _times(ms, per_second // 1000)


def _times(number, factor):
    """Multiplied; what is too large becomes the outermost long."""
    if factor == 1:
        return number
    limit = LONG_MAX // factor
    product = number * F.lit(factor).cast("long")
    return F.when(number > limit, F.lit(LONG_MAX)).when(number < -limit, F.lit(-LONG_MAX - 1)).otherwise(product)
