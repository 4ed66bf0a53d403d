"""The predicates: which records are meant, by rows and by columns."""

import pyarrow as pa
import pytest
from pytest import param

from standalone import Columns, ConfigError, F, Header, HeaderEdit, NoColumns, SourceRecord
from standalone.pipeline.spark.columns import SparkColumns
from standalone.predicates.has_header_key import HasHeaderKey
from standalone.predicates.record_is_tombstone import RecordIsTombstone
from standalone.predicates.topic_name_matches import TopicNameMatches

TRACED = SourceRecord("t", "v", headers=[Header("host", "web1"), Header("trace", 1)])


@pytest.mark.parametrize(
    "name, record, is_meant",
    [
        param("trace", TRACED, True, id="a header that is there"),
        param("Trace", TRACED, False, id="another case"),
        param("trace", SourceRecord("t", "v"), False, id="no headers"),
    ],
)
def test_has_header_key(name, record, is_meant):
    assert HasHeaderKey.of(name=name).test(record) is is_meant


def test_columns_without_headers_are_told_as_a_whole():
    pytest.importorskip("pyspark")
    assert HasHeaderKey.of(name="trace").columns(Columns()) is False
    inserted = Columns().with_header_edits(HeaderEdit(added=Header("trace", 1)))
    assert HasHeaderKey.of(name="trace").columns(inserted) is True
    assert HasHeaderKey.of(name="other").columns(inserted) is False
    assert HasHeaderKey.of(name="trace").columns(inserted.with_header_edits(HeaderEdit(dropped=frozenset(["trace"])))) is False


@pytest.mark.spark
def test_record_is_tombstone(spark_holder):
    values = ["v", None, ""]
    predicate = RecordIsTombstone.of()
    by_rows = [predicate.test(SourceRecord("t", value)) for value in values]
    assert by_rows == [False, True, False]
    sent = spark_holder.ready().createDataFrame(pa.table({"v": values}))
    assert [row[0] for row in sent.select(SparkColumns().of(predicate.columns(Columns(value=F.col("v"))))).collect()] == by_rows
    assert predicate.columns(Columns(nulls=frozenset(["value"]))) is True
    with pytest.raises(NoColumns, match="no schema"):
        predicate.columns(Columns())


TOPICS = [
    param("orders", ["orders", "orders-eu", "my-orders"], [True, False, False], id="the whole name"),
    param("my-|orders", ["orders", "my-", "my-orders"], [True, True, False], id="either"),
    param("a|ab", ["ab", "a", "b"], [True, True, False], id="the longer of two"),
    param(".*orders", ["my-orders", "x\norders", "orders\n"], [True, False, False], id="line ends"),
    param("(?i)ORDERS", ["orders", "Orders", "order"], [True, True, False], id="a flag"),
    param("orders$", ["orders", "orders\n"], [True, False], id="an end"),
]


@pytest.mark.spark
@pytest.mark.parametrize("pattern, topics, meant", TOPICS)
def test_topic_name_matches(pattern, topics, meant, spark_holder):
    predicate = TopicNameMatches.of(pattern=pattern)
    assert [predicate.test(SourceRecord(topic)) for topic in topics] == meant
    assert [predicate.columns(Columns(topic=topic)) for topic in topics] == meant
    sent = spark_holder.ready().createDataFrame(pa.table({"t": [*topics, None]}))
    assert [row[0] for row in sent.select(SparkColumns().of(predicate.columns(Columns(topic=F.col("t"))))).collect()] == [*meant, False]


def test_a_record_without_a_topic_is_not_meant():
    predicate = TopicNameMatches.of(pattern=".*")
    assert predicate.test(SourceRecord(None)) is False
    assert predicate.columns(Columns()) is False


@pytest.mark.parametrize(
    "kind, props",
    [
        (HasHeaderKey, {}),
        (HasHeaderKey, {"name": ""}),
        (TopicNameMatches, {}),
        (TopicNameMatches, {"pattern": ""}),
        (TopicNameMatches, {"pattern": "["}),
    ],
)
def test_what_is_refused_at_configure(kind, props):
    with pytest.raises(ConfigError):
        kind.of(props)
