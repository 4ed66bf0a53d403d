"""Joda date patterns of path.format, such as 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH, in a time zone.

Y is the year of the era and x the year of the week. Names (MMM, EEE, a) are English; other locales are rejected for them.
"""

import datetime
import zoneinfo

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_NAMES = "GEaz"


def zone_of(name):
    """Return the tzinfo of a Java time zone name: Europe/Berlin, UTC, +02:00. Raise ValueError."""
    if name[:1] in ("+", "-"):
        hours, _, minutes = name[1:].partition(":")
        if not (hours.isdecimal() and (minutes or "0").isdecimal()):
            raise ValueError(f"'{name}' is not a time zone")
        offset = datetime.timedelta(hours=int(hours), minutes=int(minutes or 0))
        return datetime.timezone(-offset if name[0] == "-" else offset)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"'{name}' is not a time zone") from None


class DatePattern:
    """Raises ValueError if the pattern is invalid, or needs names in a language other than English."""

    def __init__(self, pattern, zone, locale="en"):
        self._parts = list(_parts(pattern))
        self._zone = zone
        if locale and not locale.lower().startswith("en"):
            for letter, count in self._parts:
                if letter in _NAMES and letter or letter == "M" and count > 2:
                    raise ValueError(f"'{letter * count}' is a name, which is supported in English only; the locale is '{locale}'. Use numbers.")

    def format(self, ms):
        time = (_EPOCH + datetime.timedelta(milliseconds=ms)).astimezone(self._zone)
        return "".join(count if letter is None else _written(letter, count, time) for letter, count in self._parts)


def _parts(pattern):
    """Yield (letter, count), or (None, text)."""
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            end = at + 1
            text = ""
            while True:
                if end >= len(pattern):
                    raise ValueError(f"the quote at {at} is not closed")
                if pattern.startswith("''", end):
                    text, end = text + "'", end + 2
                elif pattern[end] == "'":
                    break
                else:
                    text, end = text + pattern[end], end + 1
            yield None, text if text else "'"
            at = end + 1
        elif letter.isascii() and letter.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            if letter not in _WRITERS:
                raise ValueError(f"'{letter}' is not a letter of date patterns ({' '.join(_WRITERS)}); put text into single quotes")
            yield letter, end - at
            at = end
        else:
            yield None, letter
            at += 1


def _written(letter, count, time):
    return _WRITERS[letter](count, time)


def _number(of):
    return lambda count, time: str(of(time)).zfill(count)


def _year(of):
    def write(count, time):
        year = of(time)
        return str(year % 100).zfill(2) if count == 2 else str(year).zfill(count)

    return write


def _month(count, time):
    if count <= 2:
        return str(time.month).zfill(count)
    name = _MONTHS[time.month - 1]
    return name[:3] if count == 3 else name


def _offset(count, time):
    if count >= 3:
        return getattr(time.tzinfo, "key", time.strftime("%Z"))
    text = time.strftime("%z")[:5]
    return text if count == 1 else f"{text[:3]}:{text[3:]}"


_WRITERS = {
    "G": lambda count, time: "AD",
    "C": _number(lambda time: time.year // 100),
    "Y": _year(lambda time: time.year),
    "y": _year(lambda time: time.year),
    "x": _year(lambda time: time.isocalendar()[0]),
    "w": _number(lambda time: time.isocalendar()[1]),
    "e": _number(lambda time: time.isoweekday()),
    "E": lambda count, time: _DAYS[time.weekday()][:3] if count <= 3 else _DAYS[time.weekday()],
    "D": _number(lambda time: time.timetuple().tm_yday),
    "M": _month,
    "d": _number(lambda time: time.day),
    "a": lambda count, time: "AM" if time.hour < 12 else "PM",
    "K": _number(lambda time: time.hour % 12),
    "h": _number(lambda time: time.hour % 12 or 12),
    "H": _number(lambda time: time.hour),
    "k": _number(lambda time: time.hour or 24),
    "m": _number(lambda time: time.minute),
    "s": _number(lambda time: time.second),
    "S": lambda count, time: f"{time.microsecond // 1000:03}"[:count].ljust(count, "0"),
    "z": lambda count, time: time.strftime("%Z"),
    "Z": _offset,
}
