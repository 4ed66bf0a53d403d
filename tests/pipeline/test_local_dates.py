"""Dates that are worked out without Spark are those of single rows, wherever they are not left to these."""

import json
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standalone import ByteColumn
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.local_dates import can_read, can_write, millis_of, written
from standalone.pipeline.local_functions import FUNCTIONS
from standalone.pipeline.run import Pipeline
from standalone.stage import CUT_DIV, FLOOR_MOD, FLOOR_TO, TIMES
from standalone.transforms.date_format import DateFormat
from standalone.transforms.timestamp_converter import TimestampConverter, clipped, cut
from standalone.transforms.timestamp_router import TimestampRouter
from standalone.wire import Records

WRITTEN = [
    "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    "EEE, d MMM yyyy HH:mm:ss Z",
    "EEEE MMMM LLL L yy yyyyyy y",
    "k K h H kk KK hh HH a m s S SS SSSSS",
    "z zzzz G XXX 'o''clock' 'äöü'",
    "",
]
READ = [
    "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    "yyyy-MM-dd'T'HH:mm:ssXXX",
    "yyyy-MM-dd'T'HH:mm:ssXX",
    "yyyy-MM-dd HH:mm:ss.SSS",
    "dd/MMM/yyyy:HH:mm:ss Z",
    "EEE, dd MMM yyyy HH:mm:ss Z",
    "yyyyMMddHHmmss",
    "HH:mm:ss",
    "MM yyyy",
    "yyyy'ä'LL",
]
OTHERS = ["", "x", "2023-2-30 1:2:3", "2024-02-30T25:61:61.999Z", "2024-01-01T00:00:00.000+01", "0000-13-00T00:00:00Z", "1582-10-10 00:00:00.000"]
OTHERS += ["2024-01-01T00:00:00.000+0530", "2024-01-01T00:00:00+05:30", "2024-01-01T00:00:00-23:59", "2024-01-01T00:00:00+24:00"]
OTHERS += ["01/January/2024:00:00:00 +0000", "01/MAY/2024:00:00:00 -0930", "01/May/2024:00:00:00 GMT", "Sun, 01 may 2024 10:11:12 +0000", "٢٠٢٤ä٠١"]


def moments(count):
    draw = random.Random(17)
    near = [draw.randint(-12_200_000_000_000, 4_000_000_000_000) for _ in range(count)]
    far = [draw.randint(-(1 << 63), (1 << 63) - 1) >> draw.randint(0, 20) for _ in range(count)]
    return near + far + [0, -1, 86_400_000, 951_782_399_999, 253_402_300_800_000]


def mangled(text, draw):
    """Often the text itself, else one that a person might have written instead."""
    at = draw.randint(0, len(text))
    return draw.choice([text, text, text[:at] + text[at + 1 :], text[:at] + draw.choice("0 -9x:Z+Eä") + text[at:], text.lower()])


@pytest.mark.parametrize("pattern", WRITTEN)
def test_texts_are_those_of_the_rows(pattern):
    format, values = DateFormat(pattern), [*moments(400), None]
    assert can_write(format.parts)
    texts, left = written(pa.array(values, pa.int64()), tuple(format.parts))
    assert not left[:400].any() and left.any() and not left[-1] and texts[len(values) - 1] is None
    for ms, text, is_left in zip(values[:-1], texts, left):
        assert is_left and text is None or text.decode() == format.format(ms)


@pytest.mark.parametrize("pattern", READ)
def test_milliseconds_are_those_of_the_rows(pattern):
    format, draw = DateFormat(pattern), random.Random(pattern)
    assert can_read(format.parts)
    full = [format.format(ms) for ms in moments(300)[:300]]
    values = full + [mangled(text, draw) for text in full for _ in range(4)] + OTHERS
    found, left = millis_of(ByteColumn.of([*(text.encode() for text in values), None]), tuple(format.parts))
    assert not left[:300].any() and left.any() and not left[-1] and found[-1].as_py() is None
    for text, ms, is_left in zip(values, found.to_pylist(), left):
        assert is_left and ms is None or ms == format.parse(text)[0], text


@pytest.mark.parametrize(
    "pattern", ["yyyy D", "yyyy-M-d", "yy-MM-dd", "hh:mm a", "yyyy yyyy", "yyyy EEE", "EEE", "yyyy'1'", "yyyyMMdd'E'", "MMMM yyyy", "yyyy z", "''", ""]
)
def test_other_patterns_are_not_read_here(pattern):
    assert not can_read(DateFormat(pattern).parts)


@pytest.mark.parametrize("pattern", ["D", "F", "w", "W", "u", "YYYY"])
def test_weeks_and_days_of_the_year_are_not_written_here(pattern):
    assert not can_write(DateFormat(pattern).parts)


LONGS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-100_000, 100_000), st.none())


@given(st.lists(LONGS, min_size=1), st.sampled_from([1, 1000, 1_000_000, 86_400_000]))
def test_longs_are_divided_and_multiplied_as_in_rows(longs, by):
    rules = {
        CUT_DIV: cut,
        TIMES: lambda number, by: clipped(number * by),
        FLOOR_MOD: lambda number, by: number % by,
        FLOOR_TO: lambda number, by: (number - number % by + (1 << 63)) % (1 << 64) - (1 << 63),
    }
    for name, rule in rules.items():
        found, left = FUNCTIONS[name].work(pa.array(longs, pa.int64()), by)
        assert left is None
        assert found.to_pylist() == [None if number is None else rule(number, by) for number in longs], name


def test_texts_in_a_slice_of_a_buffer_are_read_where_they_are():
    column = ByteColumn(np.frombuffer(b"..2024-02-29..1999", np.uint8), np.array([2, 14, 0]), np.array([10, 4, 2], np.int32))
    found, left = millis_of(column, tuple(DateFormat("yyyy-MM-dd").parts))
    assert found.to_pylist() == [1_709_164_800_000, None, None] and left.tolist() == [False, True, True]


CHAIN = [
    ({"target.type": "unix", "unix.precision": "seconds", "format": "yyyy-MM-dd HH:mm:ss"}, "2024-02-29 12:00:00"),
    ({"target.type": "Timestamp"}, 0),
    ({"target.type": "Date"}, 0),
    ({"target.type": "string", "format": "EEE dd MMM yyyy HH:mm"}, 0),
]


@pytest.mark.parametrize("bad", ["2024-2-29 12:00:00", "29.2.2024", None, 7])
def test_a_chain_of_dates_needs_no_spark_and_leaves_odd_texts_to_the_rows(bad):
    links = [Link(f"to_{at}", TimestampConverter.Value.of({"field": "at", **props})) for at, (props, _) in enumerate(CHAIN)]

    def pipeline(engine):
        return Pipeline(Chain("sink", StringConverter.of(is_key=True), JsonConverter.of({"schemas.enable": "false"}), StringConverter.of(), links), engine)

    texts = [bad if row % 50 == 49 else f"20{row % 90 + 10}-0{row % 9 + 1}-1{row % 10} 0{row % 10}:1{row % 10}:59" for row in range(1000)]
    values = ByteColumn.of([json.dumps({"at": text, "n": row}).encode() for row, text in enumerate(texts)])
    records = Records(1000, None, values, None, None, np.arange(1000))
    by_columns, by_rows = (pipeline(engine) for engine in ("auto", "rows"))
    done, wanted = by_columns.sink("t", 0, records), by_rows.sink("t", 0, records)

    assert [record.value for batch in done.batches for record in batch.records()] == [
        record.value for batch in wanted.batches for record in batch.records()
    ]
    assert [(failure.row, str(failure)) for failure in done.failures] == [(failure.row, str(failure)) for failure in wanted.failures]
    assert by_columns.stats.spark_batches == 0
    assert by_columns.stats.columns_records == 980 or bad is None or bad == 7


def test_topics_of_their_times_need_no_spark():
    links = [Link("route", TimestampRouter.of({"topic.format": "${timestamp}/${topic}", "timestamp.format": "yyyy-MM-dd EEE"}))]

    def topics(engine):
        chain = Chain("sink", StringConverter.of(is_key=True), StringConverter.of(), StringConverter.of(), links)
        worked = Pipeline(chain, engine)
        times = np.arange(1000) * 7_777_777_777 - 3_000_000_000_000
        done = worked.sink("t", 0, Records(1000, None, ByteColumn.repeat(b"v", 1000), times, None, np.arange(1000)))
        assert not done.failures and (engine == "rows" or worked.stats.columns_records >= 1000)
        return [record.topic for batch in done.batches for record in batch.records()]

    assert topics("auto") == topics("rows")
