"""RegexRouter: records to topics with names made of the old ones, by rows and by columns."""

import pyarrow as pa
import pytest
from pytest import param

from standalone import Columns, ConfigError, DataError, F, NoColumns, Schema, SourceRecord
from standalone.pipeline.spark.columns import SparkColumns
from standalone.testing import check_transform
from standalone.transforms.regex_router import RegexRouter

CASES = [
    param("web-(.*)", "logs.$1", "web-access", "logs.access", id="a group"),
    param("web", "x", "web-access", "web-access", id="no match of the whole"),
    param("(?<n>w).*", "${n}-${n}", "web", "w-w", id="a named group"),
    param("(.)(.)", "$2$1$0", "ab", "baab", id="groups in another order, and the whole"),
    param("(a)", "$11", "a", "a1", id="no more digits than there are groups"),
    param("(a)", "$01", "a", "a", id="a zero in front"),
    param("(a)(b)?", "$1$2", "a", "a", id="a group that matched nothing"),
    param("a|ab", "z", "ab", "zb", id="the first match may be shorter than the whole"),
    param(".*", "$0!", "ab", "ab!", id="once only"),
    param("a", "\\$1\\\\\\t", "a", "$1\\t", id="what a backslash is before"),
    param("(?i)ORDERS", "low", "orders", "low", id="a flag"),
    param("\\p{Lower}+\\.(\\d{2,})", "$1", "logs.42", "42", id="classes and counts of Java's"),
    param("", "x", "a", "a", id="an empty expression"),
    param("o*", "y", "ooo", "y", id="a star"),
]


@pytest.mark.spark
@pytest.mark.parametrize("regex, replacement, topic, routed", CASES)
def test_a_topic(regex, replacement, topic, routed, spark_holder):
    before = SourceRecord(topic, "v", value_schema=Schema.STRING)
    check_transform(RegexRouter.of(regex=regex, replacement=replacement), before, before.with_(topic=routed), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize("regex, replacement, topic, routed", CASES)
def test_a_column_of_topics(regex, replacement, topic, routed, spark_holder):
    transform = RegexRouter.of(regex=regex, replacement=replacement)
    topics = [topic, "web-x", "a\nb", topic]
    sent = spark_holder.ready().createDataFrame(pa.table({"t": topics}))
    made = transform.columns(Columns(topic=F.col("t")))
    by_rows = [transform.apply(SourceRecord(each)).topic for each in topics]
    assert [row[0] for row in sent.select(SparkColumns().of(made.topic)).collect()] == by_rows
    assert by_rows[0] == by_rows[3] == routed


@pytest.mark.spark
@pytest.mark.parametrize("replacement", ["$2", "$", "a\\", "${n}", "${m", "${}", "$x", "${1}"])
def test_a_replacement_that_cannot_be_is_an_error_where_a_topic_matches(replacement, spark_holder):
    transform = RegexRouter.of(regex="(o.*)", replacement=replacement)
    check_transform(transform, SourceRecord("orders", "v", value_schema=Schema.STRING), DataError, spark_holder)
    other = SourceRecord("web", "v", value_schema=Schema.STRING)
    check_transform(transform, other, other, spark_holder)


def test_a_record_needs_a_topic():
    check_transform(RegexRouter.of(regex="a", replacement="b"), SourceRecord(None, "v"), DataError)


@pytest.mark.spark
def test_an_expression_that_could_swallow_what_is_put_behind_it_is_left_to_rows(spark_holder):
    with pytest.raises(NoColumns, match="whole topic"):
        RegexRouter.of(regex="\\Qa", replacement="b").columns(Columns(topic=F.col("t")))


@pytest.mark.parametrize("props", [{"regex": "(", "replacement": "x"}, {"regex": "a"}, {"replacement": "a"}])
def test_what_is_refused_at_configure(props):
    with pytest.raises(ConfigError):
        RegexRouter.of(props)
