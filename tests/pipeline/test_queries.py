"""Sql: statements over records, by columns and by rows; none, one or multiple records of each; what cannot be done is said."""

import concurrent.futures
import decimal
import json

import numpy as np
import pyarrow as pa
import pytest
from pytest import param

from standalone import ConfigError, DataError, Instant, Schema, SchemaBuilder, SourceBatch, SourceRecord, Struct, decimal_schema, timestamp_schema
from standalone.converters.json import JsonConverter
from standalone.converters.simple_header import SimpleHeaderConverter
from standalone.converters.string import StringConverter
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.encoded import Outgoing
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.spark import job
from standalone.pipeline.spark.sql import NoSpark, Query
from standalone.predicates.topic_name_matches import TopicNameMatches
from standalone.runtime.tasks.shipping import pieces_of
from standalone.transforms.insert_field import InsertField
from standalone.transforms.replace_field import ReplaceField
from standalone.transforms.sql import Sql
from standalone.wire import ByteColumn, Records

pytestmark = pytest.mark.spark

LINE = SchemaBuilder.struct().name("Line").field("host", Schema.STRING).field("level", Schema.OPTIONAL_STRING).field("n", Schema.INT32).build()
LINES = [("a", "DEBUG", 1), ("b", "INFO", 2), ("c", None, 3)]


def link(statement, alias="q"):
    return Link(alias, Sql.of(statement=statement))


def pipeline(holder, links, kind="source", schemas=False):
    value = JsonConverter.of({"schemas.enable": str(schemas).lower()})
    return Pipeline(Chain(kind, StringConverter.of(is_key=True), value, SimpleHeaderConverter.of(), links), "auto", holder, min_rows=1)


def source_batch(values, schema, **parts):
    records = [SourceRecord("logs", value, {"f": 1}, {"at": at}, value_schema=schema, **parts) for at, value in enumerate(values)]
    return next(SourceBatch.runs(records))


def structs():
    return [Struct(LINE).put("host", host).put("level", level).put("n", n) for host, level, n in LINES]


def sent(result):
    """[(topic, value as JSON, row)] in order."""
    assert result.failures == []
    out = []
    for outgoing in result.out:
        rows = range(len(outgoing.records)) if outgoing.rows is None else outgoing.rows.tolist()
        out += [(outgoing.topic, json.loads(value), row) for value, row in zip(outgoing.records.values, rows)]
    return out


def as_dicts(values):
    return [{"host": host, "level": level, "n": n} for host, level, n in values]


@pytest.mark.parametrize("shape", ["schema", "none"])
@pytest.mark.parametrize(
    "statement, expected",
    [
        param("SELECT *, upper(host) AS up FROM record WHERE n > 1", [{"host": "b", "level": "INFO", "n": 2, "up": "B"}, {"host": "c", "level": None, "n": 3, "up": "C"}], id="choose, compute and filter"),
        param("SELECT host FROM record WHERE level <> 'DEBUG'", [{"host": "b"}], id="a comparison with null is not true"),
        param("SELECT host, explode(sequence(1, n)) AS i FROM record WHERE n < 3", [{"host": "a", "i": 1}, {"host": "b", "i": 1}, {"host": "b", "i": 2}], id="several of one"),
        param("SELECT r.host, i FROM record r LATERAL VIEW explode(array(n, -n)) x AS i WHERE n = 2", [{"host": "b", "i": 2}, {"host": "b", "i": -2}], id="a lateral view"),
        param("SELECT named_struct('name', host) AS who FROM record WHERE n = 1", [{"who": {"name": "a"}}], id="a struct"),
        param("SELECT n FROM record WHERE false", [], id="none"),
    ],
)  # fmt: skip
def test_a_statement(spark_holder, statement, expected, shape):
    values, schema = (structs(), LINE) if shape == "schema" else (as_dicts(LINES), None)
    worked = pipeline(spark_holder, [link(statement)]).source(source_batch(values, schema))
    assert [value for _, value, _ in sent(worked)] == expected
    gone = {row for row in range(3)} - {row for _, _, row in sent(worked)}
    assert worked.dropped.tolist() == sorted(gone)


def test_columns_and_rows_give_the_same_records(spark_holder):
    links = [
        Link("t", InsertField.Value.of({"static.field": "src", "static.value": "x"})),
        link("SELECT host, src, explode(array(n, n * 10)) AS n, concat('logs-', host) AS _topic FROM record"),
        Link("r", ReplaceField.Value.of({"renames": "n:number"})),
    ]
    chain = pipeline(spark_holder, links)
    by_columns = chain.source(source_batch(structs(), LINE))
    assert chain.counts.records["spark"] == 3
    by_rows = chain._source_by_rows(source_batch(structs(), LINE), "the test says so")
    assert sent(by_columns) == sent(by_rows)
    assert sent(by_columns)[2] == ("logs-b", {"host": "b", "src": "x", "number": 2}, 1)


def test_what_is_not_touched_keeps_its_schema(spark_holder):
    money = SchemaBuilder.struct().field("price", decimal_schema(2)).field("at", timestamp_schema(doc="when")).field("n", Schema.INT8).build()
    value = Struct(money).put("price", decimal.Decimal("12.30")).put("at", Instant(-1)).put("n", 7)
    statement = "SELECT price, at, n, price * 2 AS twice, date_trunc('SECOND', at) AS sec, to_date(at) AS day FROM record"
    chain = pipeline(spark_holder, [link(statement)], schemas=True)
    made = chain._rows.transform(SourceRecord("t", value, {}, {}, value_schema=money), 0)[0]
    fields = {field.name: field.schema for field in made.value_schema.fields}
    assert fields["price"] == decimal_schema(2) and fields["at"] == timestamp_schema(doc="when") and fields["n"] == Schema.INT8
    assert made.value.get("price") == decimal.Decimal("12.30")
    assert made.value.get("twice") == decimal.Decimal("24.60")
    assert made.value.get("at") == Instant(-1) and made.value.get("sec") == Instant(-1000) and made.value.get("day") == Instant(-86_400_000)


def test_a_sink_keeps_the_offset_of_the_record_that_several_came_of(spark_holder):
    values = [json.dumps(each).encode() for each in as_dicts(LINES)] + [b"no json"]
    records = Records(4, None, ByteColumn.of(values), np.full(4, 5, np.int64), None, np.arange(10, 14), 0)
    chain = pipeline(spark_holder, [link("SELECT explode(array(n, n)) AS n, _offset AS at, _topic AS topic FROM record WHERE n <> 2")], "sink")
    result = chain.sink("logs", 0, records)
    rows = [(record.offset, record.value) for batch in result.batches for record in batch.records()]
    assert rows == [(o, {"n": n, "at": o, "topic": "logs"}) for o, n in ((10, 1), (10, 1), (12, 3), (12, 3))]
    assert [failure.row for failure in result.failures] == [3]
    assert result.dropped.tolist() == [1]


def test_a_record_of_which_one_result_fails_fails_as_a_whole(spark_holder):
    links = [link("SELECT host, explode(split(host, '')) AS letter FROM record"), Link("k", OnlyLetters())]
    values = [{"host": "ab"}, {"host": "a1b"}, {"host": "cd"}]
    result = pipeline(spark_holder, links).source(source_batch(values, None))
    assert [failure.row for failure in result.failures] == [1]
    assert [value["letter"] for outgoing in result.out for value in map(json.loads, outgoing.records.values)] == list("abcd")


class OnlyLetters(ReplaceField.Value):
    """Fails on digits."""

    def apply(self, record):
        if record.value["letter"].isdigit():
            raise DataError("a digit")
        return record

    def columns(self, columns):
        return None


def test_one_record_that_spark_fails_on_is_told_apart(spark_holder):
    chain = pipeline(spark_holder, [link("SELECT CASE WHEN n = 37 THEN raise_error('thirty-seven') ELSE n END AS n FROM record")])
    result = chain.source(source_batch([{"n": n} for n in range(100)], None))
    (failure,) = result.failures
    assert failure.row == 37 and "thirty-seven" in str(failure.error) and failure.name == "q"
    assert sum(len(outgoing.records) for outgoing in result.out) == 99


@pytest.mark.parametrize(
    "statement, said",
    [
        param("SELECT count(*) AS n FROM record", "GROUP", id="an aggregate"),
        param("SELECT DISTINCT host FROM record", "one record at a time", id="distinct"),
        param("SELECT host FROM record ORDER BY host", "one record at a time", id="order"),
        param("SELECT host, row_number() OVER (ORDER BY n) AS r FROM record", "one record at a time", id="a window"),
        param("SELECT (SELECT max(n) FROM record) AS m FROM record", "one record at a time", id="a query within"),
        param("SELECT nothing FROM record", "nothing", id="an unknown field"),
        param("SELECT host AS a, level AS a FROM record", "two columns", id="one name twice"),
        param("SELECT interval 1 day AS d FROM record", "interval", id="a type that records do not have"),
        param("SELECT host, '' AS _topic FROM record", "topic", id="an empty topic"),
    ],
)
def test_what_cannot_be_done_is_said(spark_holder, statement, said):
    result = pipeline(spark_holder, [link(statement)]).source(source_batch(structs(), LINE))
    assert [failure.row for failure in result.failures] == [0, 1, 2]
    assert said in str(result.failures[0].error)


@pytest.mark.parametrize("statement", ["", "DELETE FROM record", "SELECT 1", "SELECT host FROM elsewhere"])
def test_a_statement_must_be_a_select_from_record(statement):
    with pytest.raises(ConfigError, match="statement"):
        Sql.of(statement=statement)


def test_nulls_pass(spark_holder):
    result = pipeline(spark_holder, [link("SELECT host FROM record")]).source(source_batch([{"host": "a"}, None, {"host": "b"}], None))
    assert [value for _, value, _ in sent_with_nulls(result)] == [{"host": "a"}, None, {"host": "b"}]


def sent_with_nulls(result):
    return [(o.topic, None if value is None else json.loads(value), None) for o in result.out for value in o.records.values]


def test_a_predicate_says_for_which_records_it_is(spark_holder):
    only = Link("q", Sql.of(statement="SELECT host, 1 AS one FROM record"), TopicNameMatches.of(pattern="other"))
    records = [SourceRecord(topic, {"host": topic}, {"f": 1}, {"at": 1}) for topic in ("logs", "other")]
    result = pipeline(spark_holder, [only]).source(next(SourceBatch.runs(records)))
    assert sorted(map(str, (value for _, value, _ in sent(result)))) == ["{'host': 'logs'}", "{'host': 'other', 'one': 1}"]


def test_key_and_timestamp_can_be_set(spark_holder):
    statement = "SELECT host, concat(_key, '!') AS _key, timestamp_millis(unix_millis(_timestamp) + 1) AS _timestamp FROM record"
    result = pipeline(spark_holder, [link(statement)]).source(source_batch(structs(), LINE, key="k", key_schema=Schema.STRING, timestamp=41))
    (outgoing,) = result.out
    assert list(outgoing.records.keys) == [b"k!"] * 3 and outgoing.records.timestamps.tolist() == [42] * 3


def test_without_spark_the_task_fails_and_no_record_is_taken_for_a_bad_one():
    class NoSession:
        failure, start, cores, waiting = "no Java", "auto", 1, 0
        threads = concurrent.futures.ThreadPoolExecutor(1)

        def request(self):
            pass

        def wait(self, timeout):
            return None

    chain = pipeline(NoSession(), [link("SELECT host FROM record")])
    with pytest.raises(NoSpark, match="no Java"):
        chain.source(source_batch(structs(), LINE))


def test_a_piece_does_not_end_amid_what_came_of_one_record():
    values = ByteColumn.of([b"x" * 100_000] * 24)
    rows = np.repeat(np.arange(4), [11, 2, 9, 2])
    outgoing = Outgoing("t", None, Records(24, None, values, None, None), rows)
    ends = [piece.rows[-1] for (piece,) in pieces_of(outgoing)]
    assert ends == sorted(set(ends)) and ends[-1] == 3 and len(ends) > 1


class Dying:
    """A holder whose Java process ended so often under chunks of more than so many bytes, with that exit code."""

    failure, cores = None, 1

    def __init__(self, exit_code, holds):
        self.exit_code, self.holds, self.asked = exit_code, holds, []

    def wait(self, seconds):
        return "a session"

    def run(self, holder, table, work, most_bytes):
        self.asked.append(most_bytes)
        if min(most_bytes, table.nbytes) > self.holds:
            raise job.SparkGone("its Java process ended")
        work("a session", table)
        return [table]


@pytest.mark.parametrize("exit_code, later", [(3, "as small"), (-9, "as large as ever")])
def test_a_heap_that_was_too_small_is_remembered_and_a_kill_is_not(monkeypatch, exit_code, later):
    table = pa.table({"text": ["x" * 100] * 1000})
    holder = Dying(exit_code, table.nbytes // 5)
    monkeypatch.setattr(job, "run", holder.run)
    query = Query("SELECT * FROM record", holder)
    monkeypatch.setattr(query, "_analysed", lambda base, chunk: (_Frame(chunk), {}))
    query._results(table)
    first = holder.asked.copy()
    assert first[0] == job.JOB_BYTES and first[-1] <= holder.holds and len(first) == 3
    query._results(table.slice(0, 1))
    assert holder.asked[3] == (first[-1] if later == "as small" else job.JOB_BYTES)


class _Frame:
    schema = type("Schema", (), {"fields": ()})

    def __init__(self, table):
        self._table = table

    def toArrow(self):
        return self._table
