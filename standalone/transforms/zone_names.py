"""Time zone names that the letter z of a date pattern parses. Other names are not supported.

An ambiguous name means the same zone as in Java: CST is Chicago, IST Jerusalem. Names are case-insensitive.
"""

import datetime
import functools
import zoneinfo

# (zone, whether it has summer time still, standard name, its short form, summer name, its short form)
_ZONES = (
    ("UTC", False, "Coordinated Universal Time", "UTC", None, None),
    ("America/Los_Angeles", True, "Pacific Standard Time", "PST", "Pacific Daylight Time", "PDT"),
    ("America/Denver", True, "Mountain Standard Time", "MST", "Mountain Daylight Time", "MDT"),
    ("America/Chicago", True, "Central Standard Time", "CST", "Central Daylight Time", "CDT"),
    ("America/New_York", True, "Eastern Standard Time", "EST", "Eastern Daylight Time", "EDT"),
    ("Pacific/Honolulu", False, "Hawaii-Aleutian Standard Time", "HST", None, None),
    ("America/Anchorage", True, "Alaska Standard Time", "AKST", "Alaska Daylight Time", "AKDT"),
    ("America/Halifax", True, "Atlantic Standard Time", "AST", "Atlantic Daylight Time", "ADT"),
    ("America/St_Johns", True, "Newfoundland Standard Time", "NST", "Newfoundland Daylight Time", "NDT"),
    ("Europe/Paris", True, "Central European Standard Time", "CET", "Central European Summer Time", "CEST"),
    ("UTC", False, "Greenwich Mean Time", "GMT", None, None),
    ("Asia/Jerusalem", True, "Israel Standard Time", "IST", "Israel Daylight Time", "IDT"),
    ("Asia/Tokyo", False, "Japan Standard Time", "JST", None, None),
    ("Europe/Bucharest", True, "Eastern European Standard Time", "EET", "Eastern European Summer Time", "EEST"),
    ("Australia/Darwin", False, "Australian Central Standard Time", "ACST", None, None),
    ("Australia/Sydney", True, "Australian Eastern Standard Time", "AEST", "Australian Eastern Daylight Time", "AEDT"),
    ("Pacific/Auckland", True, "New Zealand Standard Time", "NZST", "New Zealand Daylight Time", "NZDT"),
    ("Africa/Harare", False, "Central Africa Time", "CAT", None, None),
    ("Africa/Addis_Ababa", False, "East Africa Time", "EAT", None, None),
    ("Africa/Lagos", False, "West Africa Standard Time", "WAT", None, None),
    ("Africa/Maseru", False, "South Africa Standard Time", "SAST", None, None),
    ("Asia/Dubai", False, "Gulf Standard Time", "GST", None, None),
    ("Asia/Seoul", False, "Korean Standard Time", "KST", None, None),
    ("Asia/Hong_Kong", False, "Hong Kong Standard Time", "HKT", None, None),
    ("Asia/Singapore", False, "Singapore Standard Time", "SGT", None, None),
    ("Australia/Perth", False, "Australian Western Standard Time", "AWST", None, None),
    ("Europe/Minsk", False, "Moscow Standard Time", "MSK", None, None),
    ("Europe/Lisbon", True, "Western European Standard Time", "WET", "Western European Summer Time", "WEST"),
    ("Europe/London", True, None, None, "British Summer Time", "BST"),
)
HOUR_MS = 3_600_000
_FIRST_KNOWN_MS = -2_208_988_800_000  # before 1900 today's standard time is assumed
_SOME_WINTER_MS = 1_577_836_800_000


class NamedZone:
    """A time zone found in a string, used to parse the string and to format the result."""

    def __init__(self, zone, names):
        self._zone = zoneinfo.ZoneInfo(zone)
        self._names = names

    def standard_offset(self, local_ms):
        """Its standard offset in milliseconds at a local time."""
        known_ms = local_ms if local_ms >= _FIRST_KNOWN_MS else _SOME_WINTER_MS
        local = _datetime(known_ms).replace(tzinfo=self._zone)
        return _ms(local.utcoffset()) - _ms(local.dst())

    def at(self, ms):
        """(offset in milliseconds, its long name, its short name) at a point in time."""
        if ms < _FIRST_KNOWN_MS:
            return self.standard_offset(ms), *self._names[:2]
        local = _datetime(ms).replace(tzinfo=datetime.timezone.utc).astimezone(self._zone)
        in_summer = 2 if local.dst() and self._names[2] else 0
        return _ms(local.utcoffset()), self._names[in_summer], self._names[in_summer + 1]


def _ms(delta):
    return int(delta.total_seconds() * 1000)


def _datetime(ms):
    """A naive datetime; for years out of its range, that of a year with the same calendar."""
    cycle = 146_097 * 86_400_000
    if not -62_135_596_800_000 <= ms - cycle // 400 or ms + cycle // 400 >= 253_402_300_800_000:
        ms = ms % cycle
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)


def read(text, start):
    """(NamedZone, summer time in ms or None if the zone defines it, end of the name) for the name that starts here, or None."""
    for zone, has_summer, *names in _ZONES:
        for at, name in enumerate(names):
            if name is not None and text[start : start + len(name)].lower() == name.lower():
                same = at < 2 and names[at + 2] is None and zone == "UTC"
                summer = None if same else HOUR_MS if at >= 2 and has_summer else 0
                return _named(zone, tuple(names)), summer, start + len(name)
    return None


@functools.lru_cache(maxsize=64)
def _named(zone, names):
    return NamedZone(zone, names)
