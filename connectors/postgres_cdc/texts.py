"""Parse PostgreSQL's text format: snapshot and stream both deliver text, so values are the same."""

import datetime
import re

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
DAY_MICROS = 86_400_000_000
_SECOND = 1_000_000
_400_YEARS = 146_097  # days
INFINITY, MINUS_INFINITY = "infinity", "-infinity"


def days(text):
    """Days since 1970 of a date such as `2024-02-29` or `0044-03-15 BC`."""
    before_christ = text.endswith(" BC")
    year, month, day = (text[:-3] if before_christ else text).split("-")
    year = 1 - int(year) if before_christ else int(year)
    shift, within = divmod(year - 1, 400)  # Python's dates support the years 1 to 9999
    return datetime.date(within + 1, int(month), int(day)).toordinal() + shift * _400_YEARS - _EPOCH_DAY


def time_micros(text):
    """Microseconds of the day, of `23:59:59.123456`."""
    hours, minutes, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * _SECOND + (int(fraction.ljust(6, "0")) if fraction else 0)


def moment_micros(text):
    """Microseconds since 1970 of `2024-02-29 12:34:56.123456`, optionally followed by `+00` or ` BC`."""
    before_christ = text.endswith(" BC")
    text = text[:-3] if before_christ else text
    day, _, time = text.partition(" ")
    if time.endswith("+00"):
        time = time[:-3]
    return days(day + " BC" if before_christ else day) * DAY_MICROS + time_micros(time)


def zoned_time_micros(text):
    """Microseconds of the day in UTC, of `12:30:00.5+02`; may be outside the day."""
    at = max(text.rfind("+"), text.rfind("-"))
    sign = 1 if text[at] == "+" else -1
    parts = [int(each) for each in text[at + 1 :].split(":")] + [0, 0]
    return time_micros(text[:at]) - sign * ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * _SECOND


def iso_day(number):
    """Format days since 1970 as `2024-02-29`."""
    shift, within = divmod(number + _EPOCH_DAY - 1, _400_YEARS)
    date = datetime.date.fromordinal(within + 1)
    year = date.year + 400 * shift
    return f"{f'{year:04d}' if 0 <= year <= 9999 else f'{year:+05d}'}-{date.month:02d}-{date.day:02d}"


def iso_time(micros):
    """Format as `23:59:59.123456`, without trailing zeros."""
    seconds, fraction = divmod(micros, _SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def iso_moment(micros, digits=None):
    """Format as `2024-02-29T12:34:56.123` with that many fractional digits; by default as many as needed."""
    day, within = divmod(micros, DAY_MICROS)
    if digits is None:
        return f"{iso_day(day)}T{iso_time(within)}"
    seconds, fraction = divmod(within, _SECOND)
    return f"{iso_day(day)}T{iso_time(seconds * _SECOND)}{f'.{fraction:06d}'[: digits + 1] if digits else ''}"


_INTERVAL = re.compile(
    r"(?:(?P<years>[+-]?\d+) years? ?)?(?:(?P<months>[+-]?\d+) mons? ?)?(?:(?P<days>[+-]?\d+) days? ?)?"
    r"(?:(?P<sign>[+-]?)(?P<hours>\d+):(?P<minutes>\d+):(?P<seconds>\d+)(?:\.(?P<fraction>\d+))?)?"
)


def interval(text):
    """Parse `1 year 2 mons -3 days +04:05:06.789` into (years, months, days, hours, minutes, microseconds)."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an interval in PostgreSQL's format")
    sign = -1 if found["sign"] == "-" else 1
    micros = int(found["seconds"] or 0) * _SECOND + int((found["fraction"] or "").ljust(6, "0"))
    large = [int(found[name] or 0) for name in ("years", "months", "days")]
    return (*large, sign * int(found["hours"] or 0), sign * int(found["minutes"] or 0), sign * micros)


def array(text):
    """Parse `{1,NULL,"a b"}` into strings and None; nested braces become nested lists."""
    at = text.index("{")  # skip bounds such as [0:2]=
    items, _ = _items(text, at + 1)
    return items


_PLAIN = re.compile(r'[^",{}\\]*')


def _items(text, at):
    items = []
    while True:
        mark = text[at]
        if mark == "}":
            return items, at + 1
        if mark == "{":
            inner, at = _items(text, at + 1)
            items.append(inner)
        elif mark == '"':
            item, at = quoted(text, at)
            items.append(item)
        elif mark == ",":
            at += 1
        else:
            end = _PLAIN.match(text, at).end()
            items.append(None if text[at:end].upper() == "NULL" else text[at:end])
            at = end


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def quoted(text, at):
    """Return (text within the quotes at that position, its end)."""
    found = _QUOTED.match(text, at)
    return _ESCAPED.sub(r"\1", found[1]) if "\\" in found[1] else found[1], found.end()


def hstore(text):
    """Parse `"a"=>"1", "b"=>NULL` into {key: text or None}."""
    found, at = {}, 0
    while at < len(text):
        key, at = quoted(text, at)
        at += 2  # =>
        if text.startswith("NULL", at):
            found[key], at = None, at + 4
        else:
            found[key], at = quoted(text, at)
        at += 2  # ", "
    return found


_COPIED = re.compile(rb"\\(.)", re.DOTALL)
_COPY_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def copied(line):
    """Split a row of COPY into strings, None for nulls."""
    values = line.rstrip(b"\n").split(b"\t")
    return [None if value == rb"\N" else (_unescaped(value) if b"\\" in value else value).decode() for value in values]


def _unescaped(value):
    return _COPIED.sub(lambda found: _COPY_ESCAPES.get(found[1], found[1]), value)
