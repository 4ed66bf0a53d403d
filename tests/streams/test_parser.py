"""Statements as they are read, and what is said of those that cannot be."""

import pytest

from standalone.streams.sql.functions import in_spark, spark_type
from standalone.streams.sql.parser import SqlError, read
from standalone.streams.sql.statements import CreateSource, OnQuery, Print, Show


def _one(text):
    ((statement, _),) = read(text)
    return statement


def test_a_stream_with_its_columns_and_properties():
    found = _one("CREATE STREAM s (id INT KEY, tags MAP<VARCHAR, ARRAY<INT>>, at STRUCT<x DOUBLE>) WITH (kafka_topic = 't', 'value_format'='json')")
    assert isinstance(found, CreateSource) and found.properties == {"kafka_topic": "t", "value_format": "json"}
    assert [tuple(column) for column in found.columns] == [
        ("id", "INT", True), ("tags", "MAP<VARCHAR, ARRAY<INT>>", False), ("at", "STRUCT<x DOUBLE>", False)]  # fmt: skip


def test_a_select_is_taken_apart_into_its_clauses():
    found = _one(
        "SELECT a AS k, count(*) n, s->x FROM t WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 10 SECONDS, GRACE PERIOD 5 SECONDS) "
        "WHERE b <> 'FROM' AND c IN (SELECT_NOT, 2) GROUP BY a, (b + 1) HAVING count(*) > 1 EMIT FINAL LIMIT 5"
    )
    assert [(item.text, item.name) for item in found.items] == [("a", "k"), ("count(*)", "n"), ("s->x", "x")]
    assert tuple(found.window) == ("HOPPING", 60_000, 10_000, 5_000)
    assert (found.where, found.group_by, found.having, found.emit, found.limit) == (
        "b <> 'FROM' AND c IN (SELECT_NOT, 2)", ["a", "(b + 1)"], "count(*) > 1", "FINAL", 5)  # fmt: skip


def test_joins_say_within_which_time():
    found = _one("SELECT * FROM a LEFT JOIN b AS y WITHIN (1 HOUR, 2 DAYS) GRACE PERIOD 1 MINUTE ON a.id = y.id JOIN c ON c.id = a.id EMIT CHANGES")
    assert [(join.kind, join.relation.alias, join.before_ms, join.after_ms, join.grace_ms, join.on) for join in found.joins] == [
        ("LEFT", "y", 3_600_000, 172_800_000, 60_000, "a.id = y.id"), ("INNER", "c", None, None, None, "c.id = a.id")]  # fmt: skip


def test_several_statements_each_with_its_own_text():
    assert [(type(found), text) for found, text in read("SHOW SOURCE CONNECTORS;\n-- a word\nTERMINATE ALL; PRINT 'x' FROM BEGINNING LIMIT 2;")] == [
        (Show, "SHOW SOURCE CONNECTORS"), (OnQuery, "TERMINATE ALL"), (Print, "PRINT 'x' FROM BEGINNING LIMIT 2")]  # fmt: skip


@pytest.mark.parametrize(
    "text, place, said",
    [
        ("SELEC a FROM b", (1, 1), "a statement must begin with CREATE"),
        ("SELECT a b c FROM d", (1, 8), "cannot be read"),
        ("SELECT a\nFROM b ORDER BY c", (2, 8), "not supported on unbounded streams|after FROM: JOIN"),
        ("SELECT a FROM (SELECT 1)", (1, 15), "create a stream"),
        ("SELECT a FROM b EMIT SOMETHING", (1, 22), "CHANGES or FINAL"),
        ("SELECT a FROM b WINDOW TUMBLING (1 MINUTE)", (1, 34), "SIZE"),
        ("SELECT a FROM b WINDOW TUMBLING (SIZE 1 FORTNIGHT)", (1, 41), "time units"),
        ("SELECT a FROM b WINDOW HOPPING (SIZE 1 MINUTE)", (1, 46), "ADVANCE BY"),
        ("CREATE STREAM s (a INT)", (1, 24), "WITH"),
        ("CREATE STREAM s (a INT) WITH (kafka_topic)", (1, 42), "="),
        ("CREATE VIEW s AS SELECT 1", (1, 8), "STREAM, TABLE"),
        ("SHOW COLUMNS", (1, 6), "TOPICS"),
        ("DROP s", (1, 6), "STREAM, TABLE or CONNECTOR"),
        ("INSERT INTO s 1", (1, 15), "VALUES"),
        ("PRINT", (1, 6), "the name of a topic"),
        ("TERMINATE", (1, 10), "the name of a query"),
        ("SELECT a FROM b;;\nFOO", (2, 1), "'FOO'"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_place(text, place, said):
    with pytest.raises(SqlError, match=said) as wrong:
        read(text)
    assert (wrong.value.line, wrong.value.column) == place


@pytest.mark.parametrize(
    "mine, sparks",
    [
        ("a->b->c", "a.b.c"),
        ("ARRAY[1, 2]", "array(1, 2)"),
        ("STRUCT(a := 1, b := x->y)", "named_struct('a', 1, 'b', x.y)"),
        ("MAP('a' := 1)", "map('a', 1)"),
        ("SPLIT(x, '.')", "split(x, '[.]')"),
        ("COUNT_DISTINCT(LEN(b))", "approx_count_distinct(length(b))"),
        ("TOPK(a, 3)", "slice(sort_array(collect_list(a), false), 1, 3)"),
        ("CAST(a AS VARCHAR)", "CAST(a AS STRING)"),
        ("'LEN(x)->' || UCASE(`LEN`)", "'LEN(x)->' || upper(`LEN`)"),
        ("SLICE(a, 2, 4)", "slice(a, 2, (4) - (2) + 1)"),
    ],
)
def test_words_of_ksqldb_in_spark_s(mine, sparks):
    assert in_spark(mine) == sparks


@pytest.mark.parametrize(
    "mine, sparks",
    [
        ("VARCHAR", "STRING"),
        ("varchar(20)", "STRING"),
        ("BYTES", "BINARY"),
        ("MAP<VARCHAR, INTEGER>", "MAP<STRING, INT>"),
        ("STRUCT<a INT, b ARRAY<STRUCT<c VARCHAR, d DECIMAL(4, 2)>>>", "STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING, d: DECIMAL(4, 2)>>>"),
    ],
)
def test_types_of_ksqldb_in_spark_s(mine, sparks):
    assert spark_type(mine) == sparks
