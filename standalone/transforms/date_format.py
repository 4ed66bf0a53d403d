"""Java's SimpleDateFormat patterns, formatted and parsed in UTC with English names: yyyy-MM-dd'T'HH:mm:ss.SSSX and similar.

Parsing is lenient: numbers may be short, long or negative, 2024-02-30 is 1 March, and text after the pattern is ignored.
"""

import re
import time

from standalone.data.java_calendar import DAY_MS, DAYS, HALVES, MONTHS, SUNDAY, ZONE_NAMES, Moment, first_of, millis_of, weekday
from standalone.data.java_numbers import with_ascii_digits, wrapped
from standalone.transforms import zone_names

LETTERS = "GyMdkHmsSEDFwWahKzZYuXL"
_ERAS = ("BC", "AD")
_LONG_ERAS = ("Before Christ", "Anno Domini")  # parsed, but never written


class DateFormat:
    """A compiled pattern. Raises ValueError for an invalid one.

    `now_ms` is the reference for two-digit years: they are within 80 years before and 20 years after it.
    """

    def __init__(self, pattern, now_ms=None):
        self.pattern = pattern
        self.parts = _compiled(pattern)  # (letter, count), or (None, literal text)
        self._full = _full_texts(self.parts)
        self._getters = [_writer(letter, count) for letter, count in self.parts]
        begin = _years_earlier(time.time_ns() // 1_000_000 if now_ms is None else now_ms, 80)
        self._century_start, self.century_start_year = begin, Moment(begin).year

    def format(self, ms, zone=None):
        """The text of a point in time, in UTC or in a zone found by `parse`."""
        offset, *zone_is = zone.at(ms) if zone else (0, *ZONE_NAMES)
        moment = Moment(ms + offset)
        return "".join([write(moment, offset, zone_is) for write in self._getters])

    def parse(self, text):
        """(milliseconds since the epoch, the zone that the text names or None). Raises ValueError."""
        if self._full is not None and (match := self._full.fullmatch(text)):
            said = {letter: int(digits) for letter, digits in match.groupdict().items()}
            year, month = said.get("y", 1970), said.get("M", 1)
            if year > _CHANGE_YEAR and 1 <= month <= 12:
                clock = (said.get("H", 0) * 60 + said.get("m", 0)) * 60 + said.get("s", 0)
                return (first_of(year, month, julian=False) + said.get("d", 1) - 1) * DAY_MS + clock * 1000 + said.get("S", 0), None
        reading = _Reading(text)
        for at, (letter, count) in enumerate(self.parts):
            if letter is None:
                reading.literal(count)
            else:
                reading.field(letter, count, self.is_counted(at), self.century_start_year)
        if reading.at == 0:
            raise ValueError("no field was parsed")
        ms = reading.millis()
        if reading.is_year_ambiguous and ms < self._century_start:
            reading.add_century()
            ms = reading.millis()
        return wrapped(ms, 64), reading.zone

    def is_counted(self, at):
        """Whether a number has exactly as many digits as its part has letters, because the next part is also a number."""
        if at + 1 >= len(self.parts):
            return False
        letter, count = self.parts[at + 1]
        return letter is not None and (count <= 2 if letter in "ML" else letter in "ydkHmsSDFwWhKYu")


_FULL = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}
_CHANGE_YEAR = 1582  # Java changes from the Julian to the Gregorian calendar in this year


def _full_texts(parts):
    """A regular expression that quickly parses fully written strings in UTC, the most common case. None for patterns with other parts."""
    pieces, seen = [], set()
    for at, (letter, count) in enumerate(parts):
        if letter is None:
            if at and (count[0].isdigit() or count[0] == "E"):
                return None  # the number before it might continue into it
            pieces.append(re.escape(count))
        elif letter == "X":
            pieces.append("Z")
        elif _FULL.get(letter) == count and letter not in seen:
            pieces.append(f"(?P<{letter}>[0-9]{{{count}}})")
        else:
            return None
        seen.add(letter)
    return re.compile("".join(pieces)) if seen - {None} else None


def _compiled(pattern):
    parts, literal = [], ""
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            text, at = _quoted(pattern, at)
            literal += text
        elif letter.isascii() and letter.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            if letter not in LETTERS:
                raise ValueError(f"'{letter}' is not a letter of date patterns ({' '.join(LETTERS)}); put text into single quotes")
            if letter == "X" and end - at > 3:
                raise ValueError("a time zone has at most three letters X")
            if literal:
                parts.append((None, literal))
                literal = ""
            parts.append((letter, end - at))
            at = end
        else:
            literal += letter
            at += 1
    return parts + [(None, literal)] if literal else parts


def _quoted(pattern, at):
    """(the quoted text that starts here, the position after it); two quotes stand for one."""
    if pattern.startswith("''", at):
        return "'", at + 2
    text = ""
    at += 1
    while at < len(pattern):
        if pattern[at] != "'":
            text += pattern[at]
            at += 1
        elif pattern.startswith("''", at):
            text += "'"
            at += 2
        else:
            return text, at + 1
    raise ValueError("a quote is not closed")


def _years_earlier(ms, years):
    """The same day and time in an earlier year; 28 February if that year has no 29th."""
    moment = Moment(ms)
    said = {"year": moment.year - years, "month": moment.month - 1, "day_of_month": moment.day_of_month}
    earlier = millis_of(said)
    if Moment(earlier).month != moment.month:
        earlier -= DAY_MS
    return earlier + moment.ms_of_day


# --- Writing -------------------------------------------------------------------------------------------------------

_NUMBERS = {
    "d": lambda moment: moment.day_of_month,
    "k": lambda moment: moment.ms_of_day // 3_600_000 or 24,
    "H": lambda moment: moment.ms_of_day // 3_600_000,
    "m": lambda moment: moment.ms_of_day // 60_000 % 60,
    "s": lambda moment: moment.ms_of_day // 1000 % 60,
    "S": lambda moment: moment.ms_of_day % 1000,
    "D": lambda moment: moment.day_of_year,
    "F": lambda moment: (moment.day - moment.first_of_month) // 7 + 1,
    "w": lambda moment: moment.week_of_year,
    "W": lambda moment: moment.week_of_month,
    "h": lambda moment: moment.ms_of_day // 3_600_000 % 12 or 12,
    "K": lambda moment: moment.ms_of_day // 3_600_000 % 12,
    "u": lambda moment: (weekday(moment.day) + 5) % 7 + 1,
}


def _writer(letter, count):
    """The formatter of one part: a function of (moment, offset in ms, (long, short name of the zone))."""
    if letter is None:
        return lambda moment, offset, zone: count
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return lambda moment, offset, zone: f"{number(moment):0{count}}"
    if letter in "yY":
        return _year_writer(letter, count)
    if letter in "ML":
        if count < 3:
            return lambda moment, offset, zone: f"{moment.month:0{count}}"
        names = MONTHS if count > 3 else [name[:3] for name in MONTHS]
        return lambda moment, offset, zone: names[moment.month - 1]
    if letter == "E":
        names = DAYS if count > 3 else [name[:3] for name in DAYS]
        return lambda moment, offset, zone: names[weekday(moment.day) - SUNDAY]
    if letter == "G":
        return lambda moment, offset, zone: _ERAS[moment.year > 0]
    if letter == "a":
        return lambda moment, offset, zone: HALVES[moment.ms_of_day >= DAY_MS // 2]
    if letter == "z":
        return lambda moment, offset, zone: zone[count < 4]
    return lambda moment, offset, zone: _offset_text(offset // 60_000, letter, count)


def _year_writer(letter, count):
    def write(moment, offset, zone):
        if letter == "Y":
            year = moment.week_year
        else:
            year = moment.year if moment.year > 0 else 1 - moment.year
        sign = "-" if year < 0 else ""
        return f"{sign}{abs(year) % 100:02}" if count == 2 else f"{sign}{abs(year):0{count}}"

    return write


def _offset_text(minutes, letter, count):
    if letter == "X" and minutes == 0:
        return "Z"
    hours, rest = divmod(abs(minutes), 60)
    sign = "+" if minutes >= 0 else "-"
    if letter == "X" and count == 1:
        return f"{sign}{hours:02}"
    return f"{sign}{hours:02}{':' if letter == 'X' and count == 3 else ''}{rest:02}"


# --- Reading -------------------------------------------------------------------------------------------------------

_FIELDS = {
    "d": "day_of_month",
    "H": "hour_of_day",
    "k": "hour_of_day",
    "m": "minute",
    "s": "second",
    "S": "millisecond",
    "D": "day_of_year",
    "F": "weekday_in_month",
    "w": "week_of_year",
    "W": "week_of_month",
    "h": "hour",
    "K": "hour",
}
_ROLLS_OVER = {"k": 24, "h": 12}
_NAMES = {
    "M": ("month", {name[:length]: at for at, name in enumerate(MONTHS) for length in (3, None)}),
    "E": ("day_of_week", {name[:length]: at for at, name in enumerate(DAYS, SUNDAY) for length in (3, None)}),
    "G": ("era", {names[at]: at for names in (_ERAS, _LONG_ERAS) for at in (0, 1)}),
    "a": ("am_pm", {"AM": 0, "PM": 1}),
}
_NAMES["L"] = _NAMES["M"]
_NUMBER = re.compile("NaN|(-?)(?:\u221e|([0-9]+)(?:E(-?[0-9]+))?)")


class _Reading:
    """A string, the current position, and the fields parsed so far in their order."""

    def __init__(self, text):
        self.text = text
        self.plain = with_ascii_digits(text)
        self.at = 0
        self.said = {}
        self.zone = None
        self.is_year_ambiguous = False

    def millis(self):
        said = dict(self.said)
        if "week_year" in said:
            order = list(said)
            if "year" in said and order.index("year") > order.index("week_year"):
                del said["week_year"]
            else:
                _complete_week_date(said)
        return millis_of(said, self.zone.standard_offset if self.zone else None)

    def add_century(self):
        for field in ("year", "week_year"):
            if field in self.said:
                self.said[field] += 100

    def _say(self, field, value):
        self.said.pop(field, None)  # a repeated field moves to the end
        self.said[field] = value

    def literal(self, text):
        if not self.text.startswith(text, self.at):
            raise ValueError(f"'{text}' was expected at place {self.at}")
        self.at += len(text)

    def field(self, letter, count, is_counted, century_start_year):
        start = self.at
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        if self.at >= len(self.text):
            raise ValueError("the text ends before the pattern does")
        if letter in _NAMES and (letter not in "ML" or count > 2):
            self._name(letter, start)
        elif letter in "zZ":
            self._zone(start)
        elif letter == "X":
            self._iso_zone(count)
        else:
            begin = self.at
            number = self._number(start + count if is_counted else None)
            if letter in "yY":
                self._year(letter, count, number, begin, century_start_year)
            elif letter in "ML":
                self._say("month", number - 1)
            elif letter == "u":
                self._say("day_of_week", number % 7 + 1 if 1 <= number <= 7 else number)
            else:
                self._say(_FIELDS[letter], 0 if number == _ROLLS_OVER.get(letter) else number)

    def _number(self, end):
        if end is not None and end > len(self.text):
            raise ValueError("the text ends before the pattern does")
        match = _NUMBER.match(self.plain, self.at, len(self.plain) if end is None else end)
        if not match:
            raise ValueError(f"a number was expected at place {self.at}")
        self.at = match.end()
        return _int(*match.groups())

    def _year(self, letter, count, number, begin, century_start_year):
        digits = self.plain[begin : self.at]
        if count <= 2 and len(digits) == 2 and digits.isdigit():
            first = century_start_year % 100
            self.is_year_ambiguous = number == first
            number += century_start_year // 100 * 100 + (100 if number < first else 0)
        self._say("year" if letter == "y" else "week_year", number)

    def _name(self, letter, start):
        field, names = _NAMES[letter]
        found = [name for name in names if self.text[start : start + len(name)].lower() == name.lower()]
        if not found:
            raise ValueError(f"a name ({', '.join(names)}) was expected at place {start}")
        best = max(found, key=len)
        self._say(field, names[best])
        self.at = start + len(best)

    def _zone(self, start):
        text, sign = self.text, self._sign()
        if sign:
            self.at += 1
            return self._offset(sign, 0, has_colon=False)
        if text[start : start + 3].upper() == "GMT":
            self.at = start + 3
            sign = self._sign()
            if not sign:
                return self._set_offset(0)
            self.at += 1
            return self._offset(sign, 0, has_colon=True)
        found = zone_names.read(text, self.at)
        if found is None:
            raise ValueError(f"a time zone was expected at place {self.at}")
        self.zone, summer_ms, self.at = found
        if summer_ms is not None:
            self.said.pop("zone_offset", None)
            self._say("dst_offset", summer_ms)

    def _sign(self):
        return {"+": 1, "-": -1}.get(self.text[self.at : self.at + 1], 0)

    def _iso_zone(self, count):
        if self.text[self.at] == "Z":
            self.at += 1
            return self._set_offset(0)
        sign = self._sign()
        if not sign:
            raise ValueError(f"a time zone such as Z or +01 was expected at place {self.at}")
        self.at += 1
        self._offset(sign, count, has_colon=count == 3)

    def _offset(self, sign, count, has_colon):
        """hh, hhmm or hh:mm; after "GMT+" also h:mm. `count` is the number of letters X, 0 for other letters."""
        hours = "[0-9]{1,2}" if has_colon and count == 0 else "[0-9]{2}"
        minutes = "" if count == 1 else ":([0-9]{2})" if has_colon else "([0-9]{2})"
        match = re.compile(f"({hours}){minutes}").match(self.text, self.at)
        if not match or int(match[1]) > 23 or minutes and int(match[2]) > 59:
            raise ValueError(f"a time zone's offset was expected at place {self.at}")
        self.at = match.end()
        self._set_offset(sign * (int(match[1]) * 60 + (int(match[2]) if minutes else 0)) * 60_000)

    def _set_offset(self, ms):
        self._say("zone_offset", ms)
        self._say("dst_offset", 0)


def _int(sign, digits, exponent):
    """A number parsed by DecimalFormat as an int: longs wrap, larger values are clamped."""
    if digits is None:
        return 0 if sign is None else -(1 << 31) if sign else (1 << 31) - 1
    power = max(-400, min(int((exponent or "0")[:9]), 400))
    number, rest = divmod(int(digits[:400]) * 10 ** max(power, 0), 10 ** max(-power, 0))
    number = -number if sign else number
    if rest == 0 and -(1 << 63) <= number < 1 << 63:
        return wrapped(number, 32)
    return max(-(1 << 31), min(number, (1 << 31) - 1))


def _complete_week_date(said):
    """The day of a week-based date: the year starts on the Sunday of its first week; out-of-range weekdays carry over into other weeks."""
    week, day = said.get("week_of_year", 1), said.get("day_of_week", SUNDAY)
    if not 1 <= day <= 7:
        more_weeks, day = divmod(day - 1, 7)
        week, day = week + more_weeks, (day + 1) % 7 + 1
    said["week_of_year"], said["day_of_week"] = week, day
