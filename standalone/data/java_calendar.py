"""Java's GregorianCalendar in UTC: converts a point in time to fields, and any set of fields to a point in time.

Days are counted from the epoch. Before 15 October 1582 the Julian calendar applies. Weeks begin on Sunday, and the week of 1 January is
the first, as in the United States. The year before 1 is 0 here; as a field it is the year 1 BC.
"""

from standalone.data.java_text import civil

DAY_MS = 86_400_000
SUNDAY, SATURDAY = 1, 7
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
HALVES = ("AM", "PM")
ZONE_NAMES = ("Coordinated Universal Time", "UTC")
GREGORIAN_START = -141_427  # 15 October 1582
_CHANGE_YEAR = 1582


def first_of(year, month, julian):
    """Return the first day of a month (1 to 12)."""
    shifted, in_year = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    days = 365 * shifted + shifted // 4 + (153 * in_year + 2) // 5
    return days - 719_470 if julian else days - shifted // 100 + shifted // 400 - 719_468


def first_of_year(year):
    return first_of(year, 1, julian=year <= _CHANGE_YEAR)


def weekday(day):
    """Return 1 for Sunday to 7 for Saturday."""
    return (day + 4) % 7 + 1


def on_or_before(day, wanted):
    """Return the last such weekday up to this day."""
    return day - (day + 5 - wanted) % 7


def first_week(first_day):
    """Return the Sunday that begins the first week of a year or month, given its first day."""
    return on_or_before(first_day, SUNDAY)


class Moment:
    """The calendar fields of a point in time."""

    __slots__ = ("day", "ms_of_day", "year", "month", "day_of_month")

    def __init__(self, ms):
        self.day, self.ms_of_day = divmod(ms, DAY_MS)
        self.year, self.month, self.day_of_month = civil(self.day)

    @property
    def day_of_year(self):
        return self.day - first_of_year(self.year) + 1

    @property
    def week_of_year(self):
        return 1 if self.week_year > self.year else (self.day - first_week(first_of_year(self.year))) // 7 + 1

    @property
    def week_year(self):
        """The year of the week: the last days of December may be in the next year's first week."""
        return self.year + (self.day >= first_week(first_of_year(self.year + 1)))

    @property
    def week_of_month(self):
        return (self.day - first_week(self.first_of_month)) // 7 + 1

    @property
    def first_of_month(self):
        """The first day of the month; also for October 1582, which then has 21 days."""
        first = self.day - self.day_of_month + 1
        return first if self.day < GREGORIAN_START or first >= GREGORIAN_START else first + 10


def millis_of(said, offset_at=None):
    """Return the point in time of these fields: a dict of integers, in the order in which they were set.

    Out-of-range fields carry over, missing ones come from 1970-01-01, and if fields conflict the group set last wins.
    `offset_at(ms)` is the time zone's standard offset at a local time.
    """
    year = said.get("year", 1970)
    if said.get("era") == 0:
        year = 1 - year
    carried, ms_of_day = divmod(_ms_of_clock(said), DAY_MS)
    ms = _day(said, year, carried) * DAY_MS + ms_of_day
    offset = said["zone_offset"] if "zone_offset" in said else offset_at(ms) if offset_at else 0
    return ms - offset - said.get("dst_offset", 0)


def _ms_of_clock(said):
    stamp = {name: at for at, name in enumerate(said, 1)}
    by_24 = stamp.get("hour_of_day", 0)
    by_12 = max(stamp["hour"], stamp["am_pm"]) if "hour" in said and "am_pm" in said else 0
    if by_24 and by_24 >= by_12:
        hours = said["hour_of_day"]
    else:
        hours = said.get("hour", 0) + 12 * said.get("am_pm", 0)
    return ((hours * 60 + said.get("minute", 0)) * 60 + said.get("second", 0)) * 1000 + said.get("millisecond", 0)


def _day(said, year, carried):
    """Return the day of these fields, `carried` days later."""
    if "week_year" in said:
        return _first_day_of_weeks(said["week_year"]) + 7 * (said["week_of_year"] - 1) + said["day_of_week"] - SUNDAY + carried
    group = _decisive_fields(said)

    def counted(julian):
        return carried + _day_by(group, said, year, julian)

    if year > _CHANGE_YEAR:
        gregorian = counted(julian=False)
        if gregorian >= GREGORIAN_START:
            return gregorian
        by_julian = counted(julian=True)
    else:
        by_julian = counted(julian=True)
        if year < _CHANGE_YEAR and by_julian < GREGORIAN_START:
            return by_julian
        gregorian = by_julian if year < _CHANGE_YEAR else counted(julian=False)
    if group in ("day_of_year", "week_of_year"):
        return by_julian
    return gregorian if gregorian >= GREGORIAN_START else by_julian


def _first_day_of_weeks(week_year):
    return first_week(first_of_year(week_year))


def _decisive_fields(said):
    """Return the field that, with its group, determines the day: of all complete groups the one set last."""
    stamp = {name: at for at, name in enumerate(said, 1)}
    weekday_at = stamp.get("day_of_week", 0)

    def with_weekday(name):
        return max(stamp[name], weekday_at) if name in said and weekday_at else 0

    by_month = [
        ("day_of_month", stamp.get("day_of_month", 0)),
        ("week_of_month", with_weekday("week_of_month")),
        ("weekday_in_month", with_weekday("weekday_in_month")),
    ]
    by_year = [("day_of_year", stamp.get("day_of_year", 0)), ("week_of_year", with_weekday("week_of_year"))]
    best = max(at for _, at in by_month + by_year)
    if not best:  # no group is complete
        by_month = [
            ("day_of_month", 0),
            ("week_of_month", stamp.get("week_of_month", 0)),
            ("weekday_in_month", max(stamp.get("weekday_in_month", 0), weekday_at)),
        ]
        by_year = [("week_of_year", stamp.get("week_of_year", 0))]
        best = max(at for _, at in by_month + by_year)
        if not best:
            return "day_of_month"
    week_of_year_at = stamp.get("week_of_year", 0)
    tied = [name for name, at in by_month if at == best and (name == "day_of_month" or stamp.get(name, 0) >= week_of_year_at)]
    if "day_of_month" in tied:
        return "day_of_month"
    if tied:
        both = [name for name, at in by_month if at == best]
        if len(both) == 2:
            return max(both, key=lambda name: (stamp.get(name, 0), name == "week_of_month"))
        return tied[0]
    return next((name for name, at in by_year if at == best), "week_of_year")


def _day_by(group, said, year, julian):
    if group in ("day_of_year", "week_of_year"):
        first = first_of(year, 1, julian)
        if group == "day_of_year":
            return first + said["day_of_year"] - 1
        start = first_week(first)
        if "day_of_week" in said:
            start = on_or_before(start + 6, said["day_of_week"])
        return start + 7 * (said.get("week_of_year", 0) - 1)
    more_years, month = divmod(said.get("month", 0), 12)
    year += more_years
    first = first_of(year, month + 1, julian)
    if group == "day_of_month":
        return first + said.get("day_of_month", 1) - 1
    if group == "week_of_month":
        start = first_week(first)
        if "day_of_week" in said:
            start = on_or_before(start + 6, said["day_of_week"])
        return start + 7 * (said["week_of_month"] - 1)
    which = said.get("weekday_in_month", 1)
    wanted = said.get("day_of_week", SUNDAY)
    if which >= 0:
        return on_or_before(first + 7 * which - 1, wanted)
    return on_or_before(first + _days_in(year, month) + 7 * (which + 1) - 1, wanted)


def _days_in(year, month):
    is_leap = year % 4 == 0 and (year <= _CHANGE_YEAR or year % 100 != 0 or year % 400 == 0)
    return (31, 28 + is_leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month]
