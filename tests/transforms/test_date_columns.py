"""Dates of whole columns are those of single rows, wherever the columns do not pass."""

import random
import re

import pyarrow as pa
import pytest

from standalone import F, NoColumns
from standalone.pipeline.spark.columns import SparkColumns
from standalone.transforms.date_columns import millis_of, text_of
from standalone.transforms.date_format import DateFormat

WRITTEN = [
    "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    "EEE, d MMM yyyy HH:mm:ss Z",
    "EEEE MMMM LLL L yy yyyyyy",
    "D DDDD F w W u E ww",
    "YYYY 'W'w YY",
    "k K h H kk KK hh HH a m s S SS",
    "z zzzz G XXX",
    "",
    "yyyy/MM/dd HH:mm:ss.SSS",
    "'at' y-M-d 'T'H:m:s.SSSZX 'it''s'",
    "'Hqy'yyyyy",
    "HH:mm:ss.SSS'Z'",
    "ddMMyyyyHHmmssSSS",
]
READ = [
    "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    "yyyy-MM-dd HH:mm:ss.SSS",
    "EEE, d MMM yyyy HH:mm:ss Z",
    "yy-M-d h:mm a",
    "yyyyMMddHHmmss",
    "dd/MM/yyyy kk:mm",
    "MMMM d, yyyy K",
    "yyyy-MM-dd HH:mm z",
    "HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ssXXX",
    "yyyy-MM-dd",
    "yyyy-MM-dd HH:mm:ssX",
    "yyyy'-MM-'dd",
]
OTHERS = ["2023-11-14", "", "x", "2023-2-30 1:2:3", "2024-02-30T25:61:61.999Z", "2024-01-01T00:00:00.000+1", "31/12/1999 24:59", "13-13-13 13:13 pm"]
OTHERS += [" 2024-01-01", "2024-01-01 ", "+024-01-01", "12024-01-01", "2024-01-01T00:00:00+01", "2024-01-01T00:00:00-23:59", "2024-01-01T00:00:00+19"]
OTHERS += ["2024-01-01 00:00:00+01", "2024-01-01T23:59:60Z", "2024-02-30", "0000-01-01", "1582-10-10 00:00:00Z", "2024-01-01T00:00:00.123+05", "epoch"]


def moments(count):
    draw = random.Random(17)
    near = [draw.randint(-12_200_000_000_000, 4_000_000_000_000) for _ in range(count)]
    far = [draw.randint(-(1 << 63), (1 << 63) - 1) >> draw.randint(0, 20) for _ in range(count)]
    return near + far + [0, -1, 86_400_000, 951_782_399_999, 253_402_300_800_000]


def mangled(text, draw):
    """Often the text itself, else one that a person might have written instead."""
    at = draw.randint(0, len(text))
    return draw.choice([text, text, text, text[:at] + text[at + 1 :], text[:at] + draw.choice("0 -9x:Z") + text[at:], text.lower()])


def by_columns(spark_holder, values, kind, expressions):
    """The rows of what the expressions of a column make; None stands for rows that the columns leave to the rows."""
    frame = spark_holder.ready().createDataFrame(pa.table({"v": pa.array(values, kind)}))
    made, left = expressions(F.col("v"))
    table = frame.select(*(SparkColumns().of(each).alias(name) for name, each in (("made", made), ("left", left)))).toArrow()
    return [None if is_left else one for one, is_left in zip(table["made"].to_pylist(), table["left"].to_pylist())]


@pytest.mark.spark
@pytest.mark.parametrize("pattern", WRITTEN)
def test_columns_write_what_rows_write(pattern, spark_holder):
    format, values = DateFormat(pattern), moments(400)
    texts = by_columns(spark_holder, values, pa.int64(), lambda column: text_of(column, format))
    assert [text for text in texts if text is not None] == [format.format(ms) for ms, text in zip(values, texts) if text is not None]
    assert None not in texts[:400] and None in texts


@pytest.mark.spark
@pytest.mark.parametrize("pattern", READ)
def test_columns_read_what_rows_read(pattern, spark_holder):
    format, draw = DateFormat(pattern), random.Random(pattern)
    full = [format.format(ms) for ms in moments(300)[:300]]
    values = full + [mangled(text, draw) for text in full] + OTHERS
    found = by_columns(spark_holder, values, pa.string(), lambda column: millis_of(column, format))
    assert None not in found[:300] or "yy-" in pattern[:3]
    for text, ms in zip(values, found):
        assert ms is None or ms == format.parse(text)[0], text
    if "yyyy" in pattern and "MMM" not in pattern:
        assert None in found


@pytest.mark.parametrize("pattern", ["YYYY ww", "yyyy D", "yyyy HH h", "yyyy yyyy", "yyyy EEE", "yyyy'1'", "u", "G yyyy", "SSSSSSSSSS"])
def test_patterns_that_say_more_have_no_column_meaning(pattern):
    with pytest.raises(NoColumns, match=re.escape(pattern)):
        millis_of(F.lit("2023"), DateFormat(pattern))
