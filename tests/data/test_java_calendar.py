"""Java's calendar: fields of a point in time, and back."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standalone.data.java_calendar import DAY_MS, Moment, millis_of, weekday

CHANGE = -12_219_292_800_000  # 15 October 1582


@given(st.datetimes(datetime.datetime(1583, 1, 1)))
def test_fields_are_those_of_datetime(time):
    moment = Moment((time - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1))
    assert (moment.year, moment.month, moment.day_of_month) == (time.year, time.month, time.day)
    assert moment.day_of_year == time.timetuple().tm_yday
    assert weekday(moment.day) == time.isoweekday() % 7 + 1


@given(st.integers(-(1 << 50), 1 << 50))
def test_fields_say_their_point_in_time_again(ms):
    moment = Moment(ms)
    by_date = {"year": moment.year, "month": moment.month - 1, "day_of_month": moment.day_of_month, "millisecond": moment.ms_of_day}
    assert millis_of(by_date) == ms
    by_day = {"year": moment.year, "day_of_year": moment.day_of_year, "millisecond": moment.ms_of_day}
    if moment.year != 1582:
        assert millis_of(by_day) == ms
        by_week = {"week_year": moment.week_year, "week_of_year": moment.week_of_year, "day_of_week": weekday(moment.day)}
        assert millis_of(by_week) == ms - moment.ms_of_day


def test_ten_days_are_missing_in_october_1582():
    before, after = Moment(CHANGE - 1), Moment(CHANGE)
    assert (before.month, before.day_of_month, after.month, after.day_of_month) == (10, 4, 10, 15)
    assert after.day_of_year == before.day_of_year + 1
    assert after.week_of_month == 1 + (weekday(before.day) == 7)
    assert millis_of({"year": 1582, "month": 9, "day_of_month": 10}) == CHANGE + 5 * DAY_MS  # as in Java: a day that never was


@pytest.mark.parametrize(
    "said, day",
    [
        ({}, "1970-01-01"),
        ({"year": 2024, "month": 1, "day_of_month": 30}, "2024-03-01"),
        ({"year": 2024, "month": 13}, "2025-02-01"),
        ({"year": 2024, "month": -1}, "2023-12-01"),
        ({"year": 2024, "day_of_year": 366}, "2024-12-31"),
        ({"year": 2024, "month": 4, "day_of_month": 2, "day_of_year": 10}, "2024-01-10"),
        ({"year": 2024, "day_of_year": 10, "month": 4, "day_of_month": 2}, "2024-05-02"),
        ({"year": 2024, "week_of_year": 1, "day_of_week": 1}, "2023-12-31"),
        ({"year": 2024, "month": 4, "weekday_in_month": 2, "day_of_week": 3}, "2024-05-14"),
        ({"year": 2024, "month": 4, "weekday_in_month": -1, "day_of_week": 3}, "2024-05-28"),
        ({"year": 2024, "month": 4, "week_of_month": 1, "day_of_week": 1}, "2024-04-28"),
        ({"year": 2024, "month": 4, "day_of_week": 2}, "2024-05-06"),
    ],
)
def test_the_group_of_fields_set_last_is_believed(said, day):
    assert millis_of(said) == int(datetime.datetime.fromisoformat(day + "T00:00+00:00").timestamp()) * 1000


def test_the_hour():
    assert millis_of({"hour": 3, "am_pm": 1}) == 15 * 3_600_000
    assert millis_of({"hour": 3}) == 3 * 3_600_000
    assert millis_of({"am_pm": 1}) == 12 * 3_600_000
    assert millis_of({"hour_of_day": 20, "am_pm": 0}) == 20 * 3_600_000
    assert millis_of({"hour_of_day": 5, "hour": 3, "am_pm": 1}) == 15 * 3_600_000


def test_the_years_before_christ():
    assert Moment(millis_of({"year": 44, "era": 0})).year == -43
    assert millis_of({"year": 1, "era": 0}) == millis_of({"year": 0})
