"""Statements and what they answer, one after the other on one worker (shop.py); on a real Kafka: test_on_kafka.py."""

import json
import re

import pytest

from standalone.streams import made
from standalone.streams.sql.parser import SqlError
from standalone.testing import wait_for
from tests.streams.shop import QUERIES, T0, check_pulls, check_queries, opened

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def shop(worker):
    with opened(worker) as engine:
        yield engine


def test_what_is_asked_once(shop):
    check_pulls(shop)


@pytest.mark.timeout(900)
def test_queries_that_run_on(shop, sql):
    check_queries(sql, QUERIES)
    # A table changes: what is made of it follows, and a row that is no more is deleted.
    sql.worker.send("users", [("ann", '{"full": "Ann", "land": "FR"}')])
    try:
        sql.final("x_lands", {b"FR": b'{"n":2}'})
        sql.final("x_germans", {})
    finally:
        sql.worker.send("users", [("ann", '{"full": "Ann", "land": "DE"}')])
    name = next(row[0] for row in sql.rows("SHOW QUERIES;") if row[2] == sql.text("x_sums"))
    assert sql(f"PAUSE {name};")["message"] == f"{name} paused."
    wait_for(lambda: sql.engine.queries.status(name)["tasks"][0]["state"] == "PAUSED", 60)
    sql(f"RESUME {name};")
    wait_for(lambda: sql.engine.queries.status(name)["tasks"][0]["state"] == "RUNNING", 60)
    what = dict(sql.rows("DESCRIBE x_sums;"))
    assert what["topic"] == sql.text("x_sums") and "RUNNING" in what["written by"] and int(what["batches"]) >= 0
    with pytest.raises(SqlError, match="is used by"):
        sql("DROP STREAM orders;")
    assert sql.rows("SELECT usr, n FROM x_sums;") == [("ann", 2)]
    sql("DROP TABLE x_sums DELETE TOPIC;")
    assert sql.text("x_sums") not in [row[0] for row in sql.rows("SHOW TOPICS;")]


def test_rows_keep_their_order_when_several_tasks_read_a_partition(sql, monkeypatch):
    monkeypatch.setattr(made, "_TASK_RECORDS", 3)
    sql("CREATE STREAM x_s (n INT) WITH (kafka_topic = 'x_s', value_format = 'JSON', partitions = 1);")
    sql.worker.send(sql.text("x_s"), [f'{{"n":{number}}}' for number in range(20)])
    sql(
        "CREATE STREAM x_t WITH (kafka_topic = 'x_t', partitions = 1) AS SELECT n FROM x_s EMIT CHANGES;"
        "CREATE TABLE x_l WITH (kafka_topic = 'x_l') AS SELECT n % 2 AS k, collect_list(n) AS l FROM x_s GROUP BY n % 2 EMIT CHANGES;"
    )
    assert sql.topic("x_t", 20) == [(None, b'{"n":%d}' % number) for number in range(20)]
    sql.final("x_l", {key.to_bytes(4, "big"): json.dumps({"l": list(range(key, 20, 2))}, separators=(",", ":")).encode() for key in (0, 1)})


# ---------------------------------------------------------------- joins of streams, rows that are given
def test_streams_are_joined_within_a_time(sql):
    sql(
        "CREATE STREAM x_l (k STRING KEY, v INT) WITH (kafka_topic = 'x_l', value_format = 'JSON', partitions = 1);"
        "CREATE STREAM x_r (k STRING KEY, w INT) WITH (kafka_topic = 'x_r', value_format = 'JSON', partitions = 1);"
        "CREATE STREAM x_j WITH (kafka_topic = 'x_j') AS SELECT l.k AS k, l.v, r.w FROM x_l l JOIN x_r r WITHIN 10 SECONDS ON l.k = r.k EMIT CHANGES;"
        f"INSERT INTO x_l (k, v, ROWTIME) VALUES ('a', 1, {T0}), ('b', 2, {T0});"
        f"INSERT INTO x_r (k, w, ROWTIME) VALUES ('a', 10, {T0 + 9000}), ('b', 20, {T0 + 11000}), ('a', 30, {T0 - 5000});"
    )
    assert sorted(sql.topic("x_j", 2)) == [(b"a", b'{"v":1,"w":10}'), (b"a", b'{"v":1,"w":30}')]


def test_rows_are_inserted_pushed_and_printed(sql):
    sql("CREATE STREAM x_s (k STRING KEY, n INT, t ARRAY<INT>) WITH (kafka_topic = 'x_s', value_format = 'JSON', partitions = 1);")
    sql("CREATE STREAM x_d (k STRING KEY, a STRING, b DOUBLE) WITH (kafka_topic = 'x_d', value_format = 'DELIMITED', partitions = 1);")
    sql("INSERT INTO x_s (k, n, t) VALUES ('a', 1, ARRAY[1, 2]), ('b', 2, NULL);")
    sql("INSERT INTO x_d VALUES ('a', 'it, is', 1.5);")
    sql("INSERT INTO x_d SELECT k, 'n' AS a, n AS b FROM x_s EMIT CHANGES;")
    assert sql.records("x_s") == [(b"a", b'{"n":1,"t":[1,2]}'), (b"b", b'{"n":2,"t":null}')]
    assert sql.push("SELECT k, n + 1 AS m FROM x_s EMIT CHANGES LIMIT 2;", 2, auto__offset__reset="earliest") == [("a", 2), ("b", 3)]
    assert sql.topic("x_d", 3) == [(b"a", b'"it, is",1.5'), (b"a", b"n,1.0"), (b"b", b"n,2.0")]
    assert sql.rows("SELECT a, b FROM x_d WHERE k = 'a';") == [("it, is", 1.5), ("n", 1.0)]
    printed = sql.push("PRINT 'x_s' FROM BEGINNING LIMIT 1;", 1)
    assert printed[0][1:] == ("a", '{"n":1,"t":[1,2]}', 0, 0)


def test_a_schema_registry_keeps_what_avro_holds(sql):
    sql("CREATE STREAM x_a (k STRING KEY, n INT, s STRING) WITH (kafka_topic = 'x_a', value_format = 'AVRO', partitions = 1);")
    sql("INSERT INTO x_a VALUES ('a', 1, 'x'), ('b', NULL, NULL);")
    assert sql.rows("SELECT * FROM x_a;") == [("a", 1, "x"), ("b", None, None)]
    assert sql.records("x_a")[0][1][:1] == b"\0"


def test_connectors_are_made_by_sql(sql, tmp_path):
    (tmp_path / "in").write_text("one\n")
    sql(f"CREATE SOURCE CONNECTOR x_c WITH ('connector.class' = 'FileStreamSource', 'file' = '{tmp_path}/in', 'topic' = 'x_lines');")
    wait_for(lambda: (sql.text("x_c"), "source", "RUNNING") in [row[:3] for row in sql.rows("SHOW SOURCE CONNECTORS;")], 60)
    assert dict(sql.rows("DESCRIBE CONNECTOR x_c;"))["type"] == "source"
    assert sql.topic("x_lines", 1) == [(None, b"one")]
    for verb, done in (("PAUSE", "paused"), ("RESUME", "resumed"), ("DROP", "dropped")):
        assert sql(f"{verb} CONNECTOR x_c;")["message"].endswith(f"is {done}.")
    assert sql("DROP CONNECTOR IF EXISTS x_c;")["message"].startswith("There was no")
    with pytest.raises(SqlError, match="CREATE SOURCE CONNECTOR"):
        sql(f"CREATE SINK CONNECTOR x_c WITH ('connector.class' = 'FileStreamSource', 'file' = '{tmp_path}/in', 'topic' = 'x_lines');")


# ---------------------------------------------------------------- refused
REFUSED = [
    ("SELECT a FROM nowhere;", "line 1, column 15: there is no stream or table 'nowhere'. There are: .*orders"),
    ("SELECT nothing FROM orders;", "line 1, column 8: .*nothing.* cannot be resolved"),
    ("SELECT explode(tags) AS total, count(*) AS n FROM orders GROUP BY total;", "column 8: 'total' is also a column of orders"),
    ("SELECT id, usr AS id FROM orders EMIT CHANGES;", "two columns are named 'id'"),
    ("CREATE STREAM x_s AS SELECT usr FROM orders EMIT CHANGES;", "key column 'id' is missing"),
    ("CREATE STREAM x_s AS SELECT usr, count(*) AS n FROM orders GROUP BY usr EMIT CHANGES;", "Write CREATE TABLE"),
    ("CREATE TABLE x_s AS SELECT id, usr FROM orders EMIT CHANGES;", "Write CREATE STREAM"),
    ("CREATE TABLE x_s AS SELECT count(*) AS n FROM orders GROUP BY usr EMIT CHANGES;", "'usr' is in GROUP BY and must be selected"),
    ("CREATE TABLE x_s AS SELECT usr FROM orders GROUP BY usr EMIT CHANGES;", "only its key"),
    ("SELECT usr, count(*) AS n FROM orders GROUP BY usr EMIT FINAL;", "EMIT FINAL needs a WINDOW"),
    ("SELECT usr, count(*) AS n FROM orders WINDOW SESSION (1 MINUTE) GROUP BY usr EMIT CHANGES;", "write EMIT FINAL"),
    ("SELECT id FROM orders WINDOW TUMBLING (SIZE 1 MINUTE) EMIT CHANGES;", "WINDOW needs a GROUP BY"),
    ("SELECT id FROM orders HAVING id > 1 EMIT CHANGES;", "put conditions on rows into WHERE"),
    ("SELECT a.id, b.id AS i FROM orders a JOIN orders b ON a.id = b.id EMIT CHANGES;", "needs WITHIN"),
    ("SELECT u.name FROM users u JOIN orders o ON o.usr = u.name EMIT CHANGES;", "put the stream first"),
    ("SELECT o.id FROM orders o JOIN users u WITHIN 1 HOUR ON o.usr = u.name EMIT CHANGES;", "a table has one row per key"),
    ("SELECT o.id FROM orders o FULL JOIN users u ON o.usr = u.name EMIT CHANGES;", "by JOIN or LEFT JOIN"),
    ("CREATE STREAM orders (id INT) WITH (kafka_topic = 'orders');", "There is a stream 'orders' already"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topic = 'is-not-there');", "partitions = 1"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topic = 'orders', value_format = 'XML');", "There is no format 'XML'"),
    ("CREATE STREAM x_s (id INT, a INT) WITH (kafka_topic = 'orders', value_format = 'KAFKA');", "KAFKA supports one"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topic = 'orders', timestamp = 'at');", "is not a column of"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topics = 'orders');", "'kafka_topics' is not a property"),
    ("CREATE STREAM x_s (id NUMBERS) WITH (kafka_topic = 'orders');", "NUMBERS"),
    ("CREATE TABLE x_s (id INT) WITH (kafka_topic = 'orders');", "PRIMARY KEY"),
    ("CREATE STREAM x_s WITH (kafka_topic = 'orders') AS SELECT id, usr FROM orders EMIT CHANGES;", "which it reads"),
    ("INSERT INTO orders (id, nothing) VALUES (1, 2);", "'nothing' is not a column of orders"),
    ("INSERT INTO orders (id) VALUES (1, 2);", "2 values for 1 columns"),
    ("INSERT INTO nowhere VALUES (1);", "no stream or table 'nowhere'"),
    ("DROP STREAM nowhere;", "there is no stream 'nowhere'"),
    ("DESCRIBE nowhere;", "there is no stream or table 'nowhere'"),
    ("TERMINATE nothing;", "there is no query 'nothing'"),
    ("PRINT 'is-not-there';", "there is no topic 'is-not-there'"),
    ("SET 'a' = 'b';", "not a property of queries"),
]


def test_what_will_not_do_is_told(shop, sql):
    wrong = {}
    for text, said in REFUSED:
        try:
            sql(text)
            wrong[text] = "it was run"
        except SqlError as error:
            if not re.search(said, str(error)):
                wrong[text] = str(error)
    assert not wrong


def test_shows_and_explains(shop, sql):
    assert ("orders", "orders", "KAFKA", "JSON", False) in sql.rows("SHOW STREAMS;")
    assert ("users", "users", "KAFKA", "JSON", False) in sql.rows("LIST TABLES;")
    assert "orders" in [row[0] for row in sql.rows("SHOW TOPICS;")]
    assert ("column", "id INT KEY") in sql.rows("DESCRIBE orders;")
    explained = dict(sql.rows("EXPLAIN CREATE TABLE x AS SELECT usr, count(*) AS n FROM orders GROUP BY usr EMIT CHANGES;"))
    assert explained["output mode"] == "update" and explained["key"] == "usr" and explained["columns"] == "usr STRING, n BIGINT"
    assert sql("CREATE STREAM IF NOT EXISTS orders (id INT) WITH (kafka_topic = 'orders');")["message"].endswith("already exists.")
    assert sql.rows("DEFINE who = 'ann'; SELECT id FROM orders WHERE usr = '${who}' AND id = 1;") == [(1,)]
    assert "UCASE" in [row[0] for row in sql.rows("SHOW FUNCTIONS;")]
