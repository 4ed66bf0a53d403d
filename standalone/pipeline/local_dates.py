"""Dates of whole columns without Spark: the text of milliseconds by the parts of a date pattern, and milliseconds of such texts.

A pattern is given as its parts: (letter, count), or (None, literal text). Texts are read that are written out in full, every number in as
many digits as it has letters, as `transforms/date_format.py` reads them; all others are left to the rows engine.
"""

import numpy as np
import pyarrow as pa

from standalone.data.arrow import buffer_of, nulls_of
from standalone.data.java_calendar import DAY_MS, DAYS, HALVES, MONTHS, ZONE_NAMES, first_of
from standalone.kernels import compiled, readonly
from standalone.wire import ByteColumn

FIRST_MS = first_of(1583, 1, julian=False) * DAY_MS  # the first whole year of the calendar that is counted by here
END_MS = first_of(100_000, 1, julian=False) * DAY_MS

_LITERAL, _FIXED = 0, 1  # codes of parts beside their letters: text of the pattern, text of a letter that always says the same
_LETTER = {letter: ord(letter) for letter in "yMdHkKhmsSEaXZ"}
_MONTH, _DAY, _HALF = 2, 3, 4
_WIDTHS = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}


def _padded(names):
    """Names in rows of one length, and how long each is."""
    longest = max(map(len, names))
    return np.array([list(name.ljust(longest).encode()) for name in names], np.uint8), np.array([len(name) for name in names])


_MONTH_NAMES, _MONTH_LENGTHS = _padded(MONTHS)
_DAY_NAMES, _DAY_LENGTHS = _padded(DAYS)


class _Program:
    """A pattern as the kernels take it: for each part its code, a count, and where its literal begins."""

    def __init__(self, steps):
        self.codes = readonly(np.array([code for code, _, _ in steps], np.int64))
        self.counts = readonly(np.array([count for _, count, _ in steps], np.int64))
        texts = [text.encode() for _, _, text in steps]
        self.ends = readonly(np.cumsum([0] + [len(text) for text in texts]))
        self.texts = readonly(np.frombuffer(b"".join(texts), np.uint8))


# --- Writing -------------------------------------------------------------------------------------------------------

_ALWAYS = {"G": "AD", "Z": "+0000", "X": "Z"}


def can_write(parts):
    return all(letter is None or letter in "yMLEaGzZXdHkKhmsS" for letter, _ in parts)


def written(millis, parts):
    """(a ByteColumn of the texts of an Arrow array of milliseconds, a mask of those that are beyond the years known here)."""
    program = _Program([_writing(letter, count) for letter, count in parts])
    nulls, numbers = nulls_of(millis), buffer_of(millis)
    beyond = ~nulls & ((numbers < FIRST_MS) | (numbers >= END_MS))
    longest = int(np.maximum(np.maximum(program.counts, np.diff(program.ends)), 9).sum())
    starts, lengths = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int32)
    out = np.empty(len(numbers) * longest, np.uint8)
    _write(readonly(numbers), readonly(nulls | beyond), program.codes, program.counts, program.ends, program.texts, out, starts, lengths)
    return ByteColumn(out, starts, lengths), beyond


def _writing(letter, count):
    if letter is None:
        return _LITERAL, 0, count
    if letter == "z":
        return _LITERAL, 0, ZONE_NAMES[count < 4]
    if letter in _ALWAYS:
        return _LITERAL, 0, _ALWAYS[letter]
    if letter in "ML":
        return (ord("M"), count, "") if count < 3 else (_MONTH, 9 if count > 3 else 3, "")
    if letter == "E":
        return _DAY, 9 if count > 3 else 3, ""
    return (_HALF, 0, "".join(HALVES)) if letter == "a" else (ord(letter), count, "")


@compiled
def _write(millis, left_out, codes, counts, ends, texts, out, starts, lengths):
    at, known_day, year, month, day_of_month = 0, np.int64(0), 1970, 1, 1
    for row in range(len(millis)):
        starts[row] = at
        if left_out[row]:
            lengths[row] = -1
            continue
        day = millis[row] // 86_400_000
        ms = millis[row] - day * 86_400_000
        if day != known_day:
            known_day = day
            year, month, day_of_month = _civil(day)
        hour = ms // 3_600_000
        for part in range(len(codes)):
            code, width = codes[part], counts[part]
            if code == 0:
                for place in range(ends[part], ends[part + 1]):
                    out[at] = texts[place]
                    at += 1
                continue
            if code == 2:
                at = _put(_MONTH_NAMES[month - 1], min(width, _MONTH_LENGTHS[month - 1]), out, at)
                continue
            if code == 3:
                weekday = (day + 4) % 7
                at = _put(_DAY_NAMES[weekday], min(width, _DAY_LENGTHS[weekday]), out, at)
                continue
            if code == 4:
                first = ends[part] + (2 if hour >= 12 else 0)
                at = _put(texts[first : first + 2], 2, out, at)
                continue
            number = 0
            if code == 121:  # y
                number = year % 100 if width == 2 else year
            elif code == 77:  # M
                number = month
            elif code == 100:  # d
                number = day_of_month
            elif code == 72:  # H
                number = hour
            elif code == 107:  # k
                number = 24 if hour == 0 else hour
            elif code == 75:  # K
                number = hour % 12
            elif code == 104:  # h
                number = 12 if hour % 12 == 0 else hour % 12
            elif code == 109:  # m
                number = ms // 60_000 % 60
            elif code == 115:  # s
                number = ms // 1000 % 60
            else:  # S
                number = ms % 1000
            digits, limit = 1, 10
            while number >= limit:
                digits += 1
                limit *= 10
            digits = max(digits, width)
            for place in range(at + digits - 1, at - 1, -1):
                out[place] = 48 + number % 10
                number //= 10
            at += digits
        lengths[row] = at - starts[row]


@compiled
def _put(text, length, out, at):
    for place in range(length):
        out[at + place] = text[place]
    return at + length


@compiled
def _civil(day):
    """(year, month, day of the month) in the Gregorian calendar, of a day counted from the epoch."""
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    from_march = (5 * of_year + 2) // 153
    month = from_march + 3 if from_march < 10 else from_march - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, of_year - (153 * from_march + 2) // 5 + 1


# --- Reading -------------------------------------------------------------------------------------------------------


def can_read(parts):
    """Whether texts of that pattern that are written out in full have but one meaning, and the kernel knows it."""
    letters = ["M" if letter == "L" else letter for letter, _ in parts if letter is not None]
    if len(set(letters)) < len(letters) or "E" in letters and "d" not in letters or not set(letters) - {"E"}:
        return False
    for at, (letter, count) in enumerate(parts):
        if letter is None:
            if at and (count[0].isdigit() or count[0] == "E"):
                return False  # the number before it might go on into it
        elif not (letter in "XZ" or _is_short_name(letter, count) or _WIDTHS.get("M" if letter == "L" else letter) == count):
            return False
    return True


def _is_short_name(letter, count):
    return letter in "ML" and count == 3 or letter == "E" and count <= 3


def millis_of(texts, parts):
    """(an Arrow array of the milliseconds that texts say, null where they do not plainly; a mask of those)."""
    if not isinstance(texts, ByteColumn):
        texts = ByteColumn.from_arrow(texts)
    program = _Program([_reading(letter, count) for letter, count in parts])
    data, starts, lengths = (readonly(part) for part in (texts.data, texts.starts, texts.lengths))
    millis, is_read = np.empty(len(texts), np.int64), np.empty(len(texts), np.bool_)
    _read(data, starts, lengths, program.codes, program.counts, program.ends, program.texts, millis, is_read)
    return pa.array(millis, mask=None if is_read.all() else ~is_read), ~is_read & (texts.lengths >= 0)


def _reading(letter, count):
    if letter is None:
        return _LITERAL, 0, count
    if _is_short_name(letter, count):
        return _DAY if letter == "E" else _MONTH, 3, ""
    return ord("M" if letter == "L" else letter), count, ""


@compiled
def _read(data, starts, lengths, codes, counts, ends, texts, millis, is_read):
    for row in range(len(starts)):
        at, end = starts[row], starts[row] + lengths[row]
        year, month, day, hour, minute, second, ms, offset = 1970, 1, 1, 0, 0, 0, 0, 0
        good = lengths[row] >= 0
        for part in range(len(codes)):
            if not good:
                break
            code, width = codes[part], counts[part]
            if code == 0:
                width = ends[part + 1] - ends[part]
                good = at + width <= end
                if good:
                    for place in range(width):
                        good = good and data[at + place] == texts[ends[part] + place]
                at += width
            elif code == 2 or code == 3:
                good = at + 3 <= end and not (at + 3 < end and 97 <= data[at + 3] | 32 <= 122)
                if good and code == 2:
                    month = _found(data, at, _MONTH_NAMES) + 1
                    good = month > 0
                elif good:
                    good = _found(data, at, _DAY_NAMES) >= 0
                at += 3
            elif code == 88 and at < end and data[at] == 90:  # X, and a Z
                at += 1
            elif code == 88 or code == 90:  # X, Z
                colon = 1 if code == 88 and width == 3 else 0
                has_minutes = not (code == 88 and width == 1)
                length = 5 + colon if has_minutes else 3
                good = at + length <= end and (data[at] == 43 or data[at] == 45)
                if good:
                    hours, minutes = _number(data, at + 1, 2), 0
                    if has_minutes:
                        minutes = _number(data, at + 3 + colon, 2)
                        good = colon == 0 or data[at + 3] == 58
                    good = good and 0 <= hours <= 23 and 0 <= minutes <= 59
                    offset = (hours * 60 + minutes) * (60_000 if data[at] == 43 else -60_000)
                at += length
            else:
                number = _number(data, at, width) if at + width <= end else -1
                good = number >= 0
                at += width
                if code == 121:
                    year = number
                elif code == 77:
                    month = number
                elif code == 100:
                    day = number
                elif code == 72:
                    hour = number
                elif code == 109:
                    minute = number
                elif code == 115:
                    second = number
                else:
                    ms = number
        is_read[row] = good and at == end and year > 1582 and 1 <= month <= 12
        millis[row] = ((_first_of(year, month) + day - 1) * 24 + hour) * 3_600_000 + minute * 60_000 + second * 1000 + ms - offset


@compiled
def _number(data, at, width):
    """The number that so many digits are; -1 where one is none."""
    number = 0
    for place in range(at, at + width):
        if not 48 <= data[place] <= 57:
            return -1
        number = number * 10 + (data[place] - 48)
    return number


@compiled
def _found(data, at, names):
    """Which name begins with these three letters, whatever their case; -1 for none."""
    for name in range(len(names)):
        if data[at] | 32 == names[name, 0] | 32 and data[at + 1] | 32 == names[name, 1] | 32 and data[at + 2] | 32 == names[name, 2] | 32:
            return name
    return -1


@compiled
def _first_of(year, month):
    """The first day of a month in the Gregorian calendar, counted from the epoch."""
    shifted, in_year = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    return 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400 + (153 * in_year + 2) // 5 - 719_468
