"""Dates in columns: formats milliseconds by a DateFormat and parses such strings, as Spark expressions.

Strings that need Java's lenient calendar, and years before 1583, are left to the rows engine: each function marks these rows. Only
integers become text here, because all JVMs print them identically.
"""

import re

from standalone import F, NoColumns
from standalone.data.java_calendar import DAY_MS, DAYS, HALVES, MONTHS, ZONE_NAMES, first_of
from standalone.transforms import expressions

FIRST_MS = first_of(1583, 1, julian=False) * DAY_MS  # the first full year of the Gregorian calendar, the only one in Spark
LAST_YEAR = 99_999
END_MS = first_of(LAST_YEAR + 1, 1, julian=False) * DAY_MS


def floor_div(number, by):
    """Exact floor division of an integer by a positive one; `/` would be a float division."""
    return cut_div(number - F.pmod(number, F.lit(by).cast("long")), by)


def cut_div(number, by):
    """Division that truncates towards zero, as in Java."""
    return F.call_function("div", number, F.lit(by).cast("long"))


def floor_mod(number, by):
    """The remainder of a floor division of an integer by a positive one."""
    return F.pmod(number, F.lit(by).cast("long"))


def outside(ms):
    return (ms < FIRST_MS) | (ms >= END_MS)


# --- Writing -------------------------------------------------------------------------------------------------------


def text_of(ms, format):
    """(the text of milliseconds, a condition for rows where this is not exact)."""
    return text_of_parts(ms, format.parts)


def text_of_parts(ms, parts):
    """The same by the parts of a format, or of multiple with strings between them."""
    pattern = _spark_pattern(parts)
    if pattern is None:
        return _written(ms, parts), outside(ms)
    # Not timestamp_millis: it fails on overflow of a long, and the whole batch would go to the rows engine rather than only that row.
    return F.date_format(F.timestamp_micros(ms * F.lit(1000).cast("long")), pattern), outside(ms)


def written(ms, format):
    """The same without checking the years."""
    return _written(ms, format.parts)


def _written(ms, parts):
    fields = _Parts(ms)
    pieces = [F.lit(count) if letter is None else fields.text(letter, count) for letter, count in parts]
    return F.concat(*pieces) if pieces else F.lit("")


_ALIKE = {"y": "yyyy", "M": "MM", "d": "dd", "H": "HH", "m": "mm", "s": "ss"}  # up to this many letters both formats are the same


def _spark_pattern(parts):
    """An equivalent pattern for Spark, which uses java.time's letters, for years from 1583 on; None if there is none. It takes half the time
    of formatting the fields one by one."""
    pattern, literal = "", ""
    for letter, count in parts:
        if letter is None or letter in "XZ":
            literal += count if letter is None else {"X": "Z", "Z": "+0000"}[letter]
            continue
        if not (letter == "S" and count == 3 or count <= len(_ALIKE.get(letter, "")) and (letter, count) != ("y", 2)):
            return None
        pattern += f"'{literal}'" if literal else ""
        pattern += "y" if letter == "y" else letter * count  # from four letters on java.time writes a plus before five-digit years
        if "'" in literal:
            return None
        literal = ""
    return None if not pattern or "'" in literal else pattern + (f"'{literal}'" if literal else "")


class _Parts:
    """The fields of milliseconds as expressions."""

    def __init__(self, ms):
        self._days = floor_div(ms, DAY_MS).cast("int")
        self._ms_of_day = F.pmod(ms, F.lit(DAY_MS).cast("long")).cast("int")
        self._date = F.date_from_unix_date(self._days)

    def text(self, letter, count):
        if letter == "y":
            return _year_text(F.year(self._date), count)
        if letter == "Y":
            year = F.year(self._date) + self._is_in_first_week_of_next_year().cast("int")
            return _year_text(year, count)
        if letter in "ML":
            return padded(F.month(self._date), count, 2) if count < 3 else _one_of(MONTHS, F.month(self._date), count)
        if letter == "E":
            return _one_of(DAYS, F.dayofweek(self._date), count)
        if letter == "a":
            return F.when(self._ms_of_day < DAY_MS // 2, HALVES[0]).otherwise(HALVES[1])
        if letter in "GzZX":
            return F.lit({"G": "AD", "z": ZONE_NAMES[count < 4], "Z": "+0000", "X": "Z"}[letter])
        return padded(self._number(letter), count, {"S": 3, "D": 3, "F": 1, "W": 1, "u": 1}.get(letter, 2))

    def _number(self, letter):
        if letter in "HkKh":
            hour = cut_div(self._ms_of_day, 3_600_000)
            hour = hour % 12 if letter in "Kh" else hour
            top = {"k": 24, "h": 12}.get(letter)
            return F.when(hour == 0, top).otherwise(hour) if top else hour
        if letter == "m":
            return cut_div(self._ms_of_day, 60_000) % 60
        if letter == "s":
            return cut_div(self._ms_of_day, 1000) % 60
        if letter == "S":
            return self._ms_of_day % 1000
        if letter == "d":
            return F.dayofmonth(self._date)
        if letter == "D":
            return F.dayofyear(self._date)
        if letter == "F":
            return cut_div(F.dayofmonth(self._date) - 1, 7) + 1
        if letter == "u":
            return (F.dayofweek(self._date) + 5) % 7 + 1
        if letter == "W":
            return self._week_since(F.dayofmonth(self._date))
        return F.when(self._is_in_first_week_of_next_year(), 1).otherwise(self._week_since(F.dayofyear(self._date)))

    def _week_since(self, day_of_period):
        """The week number; week 1 contains the first day of the month or year, and weeks start on Sunday."""
        days_before_first = F.pmod(self._days - day_of_period + 5, F.lit(7))  # from Sunday to the first day
        return cut_div(day_of_period - 1 + days_before_first, 7) + 1

    def _is_in_first_week_of_next_year(self):
        length = F.dayofyear(F.make_date(F.year(self._date), F.lit(12), F.lit(31)))
        days_to_go = length - F.dayofyear(self._date) + 1
        return days_to_go <= (F.dayofweek(self._date) - 1 + days_to_go) % 7


def _year_text(year, count):
    if count == 2:
        return padded(year % 100, 2, 2)
    return padded(year, count if count > 4 else 1, 5)  # four digits it has


def padded(number, width, longest):
    """A non-negative integer as text with leading zeros; it has at most `longest` digits."""
    text = number.cast("string")
    if width < 2:
        return text
    if width >= longest:
        return F.lpad(text, width, "0")
    return F.when(F.length(text) < width, F.lpad(text, width, "0")).otherwise(text)


def _one_of(names, place, count):
    return F.element_at(F.array(*(F.lit(name if count > 3 else name[:3]) for name in names)), place.cast("int"))


# --- Reading -------------------------------------------------------------------------------------------------------

_NUMBERS = {"M": "month", "L": "month", "d": "day", "H": "hour_of_day", "k": "hour_of_day", "h": "hour", "K": "hour"}
_NUMBERS.update({"m": "minute", "s": "second", "S": "millisecond"})


def millis_of(text, format):
    """(the milliseconds of strings, a condition for rows where this is not exact). Raises NoColumns if no expression parses the pattern."""
    if (regex := _castable(format.parts)) is not None:
        ms = F.unix_millis(text.try_cast("timestamp"))
        return ms, ~F.coalesce(text.rlike(regex) & (ms >= FIRST_MS), F.lit(False))
    pattern = _TextPattern(format)
    if not pattern.is_exact:
        raise NoColumns(f"no expression parses the pattern '{format.pattern}'")
    said = {name: group(text) for name, group in pattern.groups.items()}
    year = said.get("year", F.lit(1970))
    if pattern.century_start_year is not None:
        first = pattern.century_start_year % 100
        ambiguous = year == first
        year = year + pattern.century_start_year // 100 * 100 + F.when(year < first, 100).otherwise(0)
    else:
        ambiguous = None
    month = said.get("month", F.lit(1))
    first_day = F.unix_date(F.make_date(year, month, F.lit(1))).cast("long")
    days = first_day + said.get("day", F.lit(1)) - 1
    if "hour_of_day" in said:
        hours = said["hour_of_day"]
    else:
        hours = said.get("hour", F.lit(0)) + 12 * said.get("am_pm", F.lit(0))
    minutes = hours.cast("long") * 60 + said.get("minute", F.lit(0))
    ms = (minutes * 60 + said.get("second", F.lit(0))) * 1000 + said.get("millisecond", F.lit(0))
    ms = days * DAY_MS + ms - said.get("offset", F.lit(0))
    fits = text.rlike(pattern.regex) & year.between(1583, LAST_YEAR) & month.between(1, 12)
    unread = expressions.any_of([~F.coalesce(fits, F.lit(False)), ambiguous])
    return ms, unread


_CASTABLE = re.compile("yyyy-MM-dd(?:[ T]HH:mm:ss(?:[.]SSS)?(?:X|XXX)?)?")
_LITERALS = {"-", " ", "T", ":", "."}


def _castable(parts):
    """A regular expression for the strings of a pattern that Spark's cast to timestamp parses; else None."""
    if any(letter is None and count not in _LITERALS for letter, count in parts):
        return None
    if not _CASTABLE.fullmatch("".join(count if letter is None else letter * count for letter, count in parts)):
        return None
    zone = {1: "(?:Z|[+-][0-9]{2})", 3: "(?:Z|[+-][0-9]{2}:[0-9]{2})"}
    digits = (f"\\Q{count}\\E" if letter is None else zone[count] if letter == "X" else f"[0-9]{{{count}}}" for letter, count in parts)
    return "^" + "".join(digits) + "\\z"


class _TextPattern:
    """A regular expression for fully written strings of a DateFormat, and the positions of the fields.

    `groups` contains an expression of the text for each field. `is_exact` is False if a regular expression cannot parse the pattern.
    """

    def __init__(self, format):
        self.groups = {}
        self.century_start_year = None
        self.is_exact = True
        self._pieces = []
        self._at = 1  # the position in the text while all preceding parts have a fixed width
        self._format = format
        self._number_of_groups = 0
        for at, (letter, count) in enumerate(format.parts):
            self._add(letter, count, at)
        letters = {letter for letter, _ in format.parts}
        self.is_exact &= not ("E" in letters and "d" not in letters or letters & set("Hk") and letters & set("hKa"))
        self.regex = "^" + "".join(self._pieces) + "\\z"

    def _add(self, letter, count, at):
        if letter is None:
            before = self._format.parts[at - 1][0] if at else None
            if "\\E" in count or before and (count[0].isdigit() or count[0] == "E"):
                self.is_exact = False  # the number before it may continue into it
            self._pieces.append(f"\\Q{count}\\E")
            self._move(len(count))
        elif letter == "y":
            self._year(count, at)
        elif letter in "ML" and count > 2:
            self._names("month", [(name, place) for place, name in enumerate(MONTHS, 1)])
        elif letter == "E":
            self._names("weekday", [(name, place) for place, name in enumerate(DAYS)])
        elif letter == "a":
            self._names("am_pm", [(name, place) for place, name in enumerate(HALVES)])
        elif letter in _NUMBERS:
            self._number(_NUMBERS[letter], letter, count, at)
        elif letter in "zZX":
            self._offset(letter, count)
        else:
            self.is_exact = False

    def _year(self, count, at):
        width = count if self._format.is_counted(at) else 2 if count < 3 else max(count, 4)
        if count < 3:
            self.century_start_year = self._format.century_start_year
            self.is_exact &= width == 2
        self._say("year", self._digits(width))

    def _number(self, field, letter, count, at):
        if count > 9:
            self.is_exact = False
            return
        if count == 1 and not self._format.is_counted(at):
            number = self._group("([0-9]{1,2})", None)
        else:
            number = self._digits(count)
        rolls_over = {"k": 24, "h": 12}.get(letter)
        if rolls_over:
            value = number
            self._say(field, lambda text: F.when(value(text) == rolls_over, 0).otherwise(value(text)))
        else:
            self._say(field, number)

    def _digits(self, width):
        return self._group(f"([0-9]{{{width}}})", width)

    def _names(self, field, places):
        """Full names or their first three letters, whatever the case; the longest is meant."""
        forms = {form.lower(): place for name, place in places for form in (name, name[:3])}
        texts = "|".join(sorted(forms, key=len, reverse=True))
        word = self._group(f"((?>(?i:{texts})))", None, as_number=False)
        table = [part for form, place in forms.items() for part in (F.lit(form), F.lit(place))]
        self._say(field, lambda text: F.element_at(F.create_map(*table), F.lower(word(text))))

    def _offset(self, letter, count):
        zero = {"X": "Z", "Z": "GMT", "z": "GMT|UTC"}[letter]
        colon = ":" if letter == "X" and count == 3 else ""
        minutes = "" if letter == "X" and count == 1 else f"{colon}[0-5][0-9]"
        found = self._group(f"({zero}|[+-](?:[01][0-9]|2[0-3]){minutes})", None, as_number=False)

        def offset(text):
            said = found(text)
            ms = F.substring(said, 2, 2).cast("int") * 3_600_000
            if minutes:
                ms = ms + F.substring(said, 4 + len(colon), 2).cast("int") * 60_000
            sign = F.substring(said, 1, 1)
            return F.when(sign == "+", ms).when(sign == "-", -ms).otherwise(0)

        self._say("offset", offset)

    def _group(self, regex, width, as_number=True):
        """An expression that extracts this part from a string; by position if that is known."""
        self._pieces.append(regex)
        self._number_of_groups += 1
        start, number = self._at, self._number_of_groups
        self._move(width)

        def cut(text):
            if start is not None and width is not None:
                found = F.substring(text, start, width)
            else:
                found = F.regexp_extract(text, self.regex, number)
            return found.cast("int") if as_number else found

        return cut

    def _move(self, width):
        self._at = None if self._at is None or width is None else self._at + width

    def _say(self, field, group):
        if field in self.groups:
            self.is_exact = False  # the field occurs twice
        self.groups[field] = group
