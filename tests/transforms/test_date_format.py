"""SimpleDateFormat's patterns: what is written and what is read, in UTC."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standalone.transforms.date_format import DateFormat

MS = 1_700_000_000_123  # Tuesday, 14 November 2023, 22:13:20.123
NOON_BC = -62_198_884_800_000  # noon of 1 January 2 BC, in the Julian calendar


@pytest.mark.parametrize(
    "pattern, ms, text",
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", MS, "2023-11-14T22:13:20.123Z"),
        ("EEE, d MMM yyyy HH:mm:ss Z", MS, "Tue, 14 Nov 2023 22:13:20 +0000"),
        ("EEEE d MMMM yy h:mm a", MS, "Tuesday 14 November 23 10:13 PM"),
        ("MMMMM LLL LL", MS, "November Nov 11"),
        ("D F w W u E", MS, "318 2 46 3 2 Tue"),
        ("YYYY-'W'ww", 1_704_000_000_000, "2024-W01"),  # 31 December 2023
        ("k K h H", 0, "24 0 12 0"),
        ("SSSSSS S", 7, "000007 7"),
        ("z zzzz Z XXX", MS, "UTC Coordinated Universal Time +0000 Z"),
        ("yyyyMMdd", 253_402_300_800_000, "100000101"),
        ("yy", 253_402_300_800_000, "00"),
        ("y G GGGG", MS, "2023 AD AD"),
        ("yyyy-MM-dd G", NOON_BC, "0002-01-01 BC"),
        ("yyyy-MM-dd", -12_219_292_800_001, "1582-10-04"),
        ("'it''s' ''yy''", MS, "it's '23'"),
        ("", MS, ""),
        ("yyyy\u5e74MM\u6708", MS, "2023\u5e7411\u6708"),
    ],
)
def test_what_is_written(pattern, ms, text):
    assert DateFormat(pattern).format(ms) == text


@pytest.mark.parametrize(
    "pattern, text, ms",
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2023-11-14T22:13:20.123Z", MS),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2023-11-14T23:13:20.123+01", MS),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2023-11-14T20:43:20.123-01:30", MS),
        ("yyyy-MM-dd HH:mm:ss Z", "2023-11-14 22:13:20 GMT", MS - 123),
        ("yyyy-MM-dd HH:mm:ss Z", "2023-11-14 23:13:20 +0100", MS - 123),
        ("yyyy-MM-dd HH:mm:ss z", "2023-11-15 1:13:20 GMT+3:00", MS - 123),
        ("yyyy-MM-dd HH:mm:ss z", "2023-11-14 14:13:20 PST", MS - 123),
        ("yyyy-MM-dd HH:mm:ss z", "2023-07-14 14:13:20 pacific daylight time", 1_689_369_200_000),
        ("yyyy-MM-dd HH:mm:ss z", "1890-01-01 00:00:00 CET", -2_524_525_200_000),
        ("yyyy-MM-dd", " 2023-11-14T10", 1_699_920_000_000),
        ("yyyy-MM-dd", "2024-02-30", 1_709_251_200_000),
        ("yyyy-MM-dd", "2023-0-14", 1_670_976_000_000),
        ("yyyy-MM-dd", "24-2-3", -61_407_158_400_000),
        ("yyyy-MM-dd", "\u0662024-02-03", 1_706_918_400_000),
        ("yyyyMMddHHmmssSSS", "20231114221320123", MS),
        ("yyyyMMdd", "20231114rest", 1_699_920_000_000),
        ("HH:mm:ss", "25:61:61", 93_721_000),
        ("HH:mm", "-1:00", -3_600_000),
        ("h:mm a", "12:30 am", 1_800_000),
        ("kk", "24", 0),
        ("MMM d, yyyy", "nOVEMBER 14, 2023", 1_699_920_000_000),
        ("EEE, d MMM yyyy", "Mon, 14 Nov 2023", 1_699_920_000_000),  # the wrong weekday is not believed
        ("yyyy 'W'w u", "2023 W46 2", 1_699_920_000_000),
        ("YYYY-'W'ww-u", "2023-W46-2", 1_699_920_000_000),
        ("yyyy D", "2023 318", 1_699_920_000_000),
        ("yyyy G", "44 BC", -63_524_304_000_000),
        ("S", "1E3", 1000),
        ("s", "4294967297", 1000),  # an int loses its upper bits
    ],
)
def test_what_is_read(pattern, text, ms):
    assert DateFormat(pattern).parse(text)[0] == ms


@pytest.mark.parametrize(
    "pattern, text",
    [
        ("yyyy-MM-dd", ""),
        ("yyyy-MM-dd", "2023-11"),
        ("yyyy-MM-dd", "2023/11/14"),
        ("yyyyMMdd", "202311"),
        ("MMM", "Nev"),
        ("yyyy X", "2023 +1"),
        ("yyyy Z", "2023 Z"),
        ("yyyy Z", "2023 +2400"),
        ("yyyy z", "2023 Europe/Berlin"),
        ("''", ""),
        ("", "x"),
    ],
)
def test_what_cannot_be_read(pattern, text):
    with pytest.raises(ValueError):
        DateFormat(pattern).parse(text)


@pytest.mark.parametrize("pattern", ["b", "yyyy-mm-ddThh", "'open", "SSSS'", "XXXX", "j", "yyyy 'x"])
def test_what_is_no_pattern(pattern):
    with pytest.raises(ValueError):
        DateFormat(pattern)


@pytest.mark.parametrize(
    "text, year",
    [
        ("23-1-1", 2023),
        ("42-1-1", 2042),
        ("44-1-1", 1944),
        ("43-11-13", 2043),  # just within twenty years
        ("43-11-15", 1943),  # just beyond them, so that it is within eighty years before
        ("123-1-1", 123),
    ],
)
def test_years_of_two_digits_lie_around_now(text, year):
    format = DateFormat("yy-M-d", now_ms=MS)
    assert DateFormat("y").format(format.parse(text)[0]) == str(year)


def test_a_text_can_be_written_in_the_zone_that_it_named():
    format = DateFormat("yyyy-MM-dd HH:mm z")
    assert format.format(*format.parse("2023-07-14 14:13 PST")) == "2023-07-14 15:13 PDT"
    assert format.format(*format.parse("2023-01-14 14:13 EST")) == "2023-01-14 14:13 EST"
    assert format.format(format.parse("2023-01-14 14:13 EST")[0]) == "2023-01-14 19:13 UTC"


FULL = ["yyyy-MM-dd'T'HH:mm:ss.SSSX", "yyyy/D HH:mm:ss.SSS", "G y MMMM d K.mm.ss,SSS a", "YYYY 'week' w E HH mm ss SSS z"]


@given(st.sampled_from(FULL), st.integers(-100_000_000_000_000, 100_000_000_000_000).filter(lambda ms: not -12_300_000_000_000 < ms < -12_100_000_000_000))
def test_what_is_written_in_full_is_read_again(pattern, ms):
    if pattern[0] == "Y":
        ms = abs(ms)  # weeks of the years before Christ have no era in this pattern
    format = DateFormat(pattern)
    if ms < -62_135_769_600_000 and "G" not in pattern:
        return
    if " y " in pattern and len(DateFormat("y").format(ms)) == 2:
        return  # which is read as a year around now
    assert format.parse(format.format(ms))[0] == ms
