"""TimestampRouter: topics by the time of their records, by rows and by columns."""

import pytest
from pytest import param

from standalone import Columns, DataError, F, Schema, SourceRecord
from standalone.pipeline.spark.columns import SparkColumns
from standalone.testing import check_transform
from standalone.transforms.timestamp_router import TimestampRouter

MS = 1_700_000_000_123  # Tuesday, 14 November 2023, 22:13:20.123 UTC


def record(topic, timestamp=MS):
    return SourceRecord(topic, "v", value_schema=Schema.STRING, timestamp=timestamp)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, topic, routed",
    [
        param({}, "logs", "logs-20231114", id="by day"),
        param({"timestamp.format": "yyyy-MM-dd'T'HH"}, "logs", "logs-2023-11-14T22", id="by hour"),
        param({"timestamp.format": "YYYY-'w'ww"}, "logs", "logs-2023-w46", id="by week"),
        param({"topic.format": "${timestamp}/${topic}/${topic}"}, "a", "20231114/a/a", id="the topic twice"),
        param({"topic.format": "fixed"}, "a", "fixed", id="neither"),
        param({"topic.format": "${Topic}${}$1\\${topic}"}, "a", "${Topic}${}$1\\a", id="only these two are replaced"),
        param({}, "a${timestamp}$1\\b", "a20231114$1\\b-20231114", id="a topic that looks like a format"),
        param({"timestamp.format": ""}, "a", "a-", id="an empty pattern"),
    ],
)
def test_a_topic_for_each_stretch_of_time(props, topic, routed, spark_holder):
    check_transform(TimestampRouter.of(props), record(topic), record(routed), spark_holder)


@pytest.mark.spark
def test_a_year_before_1583_is_left_to_the_rows(spark_holder):
    before, after = record("a", -12_219_292_800_001), record("a-15821004", -12_219_292_800_001)
    check_transform(TimestampRouter.of({}), before, after, spark_holder, by_columns=False)


@pytest.mark.spark
def test_topics_that_differ_are_a_column(spark_holder):
    frame = spark_holder.ready().createDataFrame([("a", MS), ("b${timestamp}", 0), ("c", None)], "topic string, timestamp long")
    made = TimestampRouter.of({}).columns(Columns(topic=F.col("topic"), timestamp=F.col("timestamp"), value=F.lit("v")))
    rows = frame.select(*map(SparkColumns().of, (made.topic, made.failed))).collect()
    assert [tuple(row) for row in rows] == [("a-20231114", False), ("b19700101-19700101", False), (None, True)]


@pytest.mark.spark
def test_a_record_without_a_timestamp_is_an_error(spark_holder):
    check_transform(TimestampRouter.of({}), record("logs", None), DataError, spark_holder)


@pytest.mark.spark
def test_a_pattern_that_is_none_fails_the_records(spark_holder):
    check_transform(TimestampRouter.of({"timestamp.format": "b"}), record("logs"), ValueError, spark_holder)
