"""Convert PostgreSQL's text of dates, times, timestamps and arrays to and from Arrow."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import arrow

# The microseconds for PostgreSQL's infinity: the values of Java's driver, which are in milliseconds.
INFINITY, MINUS_INFINITY = 9223372036825200000, -9223372036832400000
_FIRST_MICROS, _LAST_MICROS = (int(np.datetime64(year, "us").astype(np.int64)) for year in ("0001-01-01", "10000-01-01"))
_MOMENT = re.compile(r"(\d+)-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d+))?)?(?:\+00)?( BC)?")
_DAY_MICROS = 86_400 * arrow.MICROS


def parse_moments(texts, is_date=False, is_zoned=False):
    """Parse strings to microseconds since the epoch, or to days."""
    try:
        plain = pc.utf8_slice_codeunits(texts, 0, -3) if is_zoned else texts
        kind = pa.date32() if is_date else pa.timestamp("us")
        found = pc.cast(plain, kind)
        return found.cast(pa.int32()).cast(pa.int64()) if is_date else found.cast(pa.int64())
    except pa.ArrowInvalid:  # a year without four digits, or infinity
        values = [None if text is None else _micros(text) for text in texts.to_pylist()]
        return pa.array([value if value is None or not is_date else value // _DAY_MICROS for value in values], pa.int64())


def _micros(text):
    if text.endswith("infinity"):
        return MINUS_INFINITY if text.startswith("-") else INFINITY
    year, month, day, hour, minute, second, fraction, before_christ = _MOMENT.fullmatch(text).groups()
    year = 1 - int(year) if before_christ else int(year)
    days = (np.datetime64(f"{year:05d}" if year < 0 else f"{year:04d}", "Y").astype("M8[M]") + (int(month) - 1)).astype("M8[D]") + (int(day) - 1)
    seconds = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)
    return int(days.astype(np.int64)) * _DAY_MICROS + seconds * arrow.MICROS + int((fraction or "").ljust(6, "0"))


def parse_times(texts):
    """Parse strings to microseconds of the day, including 24:00:00."""
    try:
        return pc.cast(pc.binary_join_element_wise("1970-01-01", texts, " "), pa.timestamp("us")).cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.array([None if text is None else _time(text) for text in texts.to_pylist()], pa.int64())


def _time(text):
    hour, minute, second = text.split(":")
    whole, _, fraction = second.partition(".")
    return ((int(hour) * 60 + int(minute)) * 60 + int(whole)) * arrow.MICROS + int(fraction.ljust(6, "0") or 0)


def moment_texts(array, zone, only_date=False):
    """Format microseconds since the epoch as local time of the zone with its UTC offset, which columns without time zone ignore."""
    range_ = pc.min_max(array).as_py()
    if range_["min"] is not None and not _FIRST_MICROS <= range_["min"] <= range_["max"] < _LAST_MICROS:
        return pa.array([None if each is None else _text(each, only_date) for each in array.to_pylist()], pa.string())
    if only_date:
        return pc.divide(array, 1000).cast(pa.timestamp("ms")).cast(pa.date32()).cast(pa.string())
    if zone == "UTC":
        return pc.binary_join_element_wise(array.cast(pa.timestamp("us")).cast(pa.string()), "+00", "")
    return pc.strftime(array.cast(pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us", tz=zone)), format="%Y-%m-%d %H:%M:%S%z")


def _text(micros, only_date):
    if micros in (INFINITY, MINUS_INFINITY):
        return "infinity" if micros == INFINITY else "-infinity"
    text = str(np.datetime64(micros, "us")).replace("T", " ")
    year, _, rest = text.lstrip("-").partition("-")
    era = ""
    if text.startswith("-") or int(year) == 0:
        year, era = f"{int(year) + 1:04d}", " BC"
    return f"{year}-{rest[:5]}{era}" if only_date else f"{year}-{rest}+00{era}"


def time_texts(array):
    is_end = pc.equal(array, arrow.DAY_MS)  # 24:00:00, which Arrow's time type lacks
    texts = pc.if_else(is_end, 0, array).cast(pa.int32()).cast(pa.time32("ms")).cast(pa.string())
    return pc.if_else(is_end, "24:00:00", texts)


def array_texts(schema, array, target, prepared):
    """Format lists as PostgreSQL arrays."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    items = prepared(schema.value_schema, array.flatten(), target.item or target).to_pylist()
    texts, at = [], 0
    for count in pc.list_value_length(array).to_pylist():
        if count is None:
            texts.append(None)
            continue
        texts.append("{" + ",".join(map(_item, items[at : at + count])) + "}")
        at += count
    return pa.array(texts, pa.string())


def _item(item):
    if item is None:
        return "NULL"
    if isinstance(item, str):
        return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(item).lower() if isinstance(item, bool) else repr(item)
