"""Statements and what they answer, one after the other on one worker: data of ours, features of ksqlDB's documentation."""

import json
import re
import time

import pytest
from pytest import param

from standalone.streams.sql.parser import SqlError
from standalone.testing import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

T0 = (time.time_ns() // 1_000_000 // 3_600_000 - 2) * 3_600_000  # a whole hour, not so long ago that the log would delete it
DAY = time.strftime("%Y-%m-%d", time.gmtime(T0 / 1000))
ORDERS = [  # (id, user, total, tags, when)
    (1, "ann", 10.0, ["a", "b"], T0), (2, "bob", 20.0, [], T0 + 1000), (3, "ann", 30.5, ["b"], T0 + 61_000), (4, "eve", 5.0, None, T0 + 62_000),
]  # fmt: skip
USERS = [("ann", "Ann", "DE"), ("bob", "Bob", "FR")]

MAKE = """
CREATE STREAM orders (id INT KEY, usr STRING, total DOUBLE, tags ARRAY<STRING>, at BIGINT, extra STRUCT<a INT, m MAP<STRING, INT>>)
    WITH (kafka_topic = 'orders', value_format = 'JSON', timestamp = 'at', partitions = 1);
CREATE TABLE users (name STRING PRIMARY KEY, full STRING, land STRING) WITH (kafka_topic = 'users', value_format = 'JSON', partitions = 1);
"""


@pytest.fixture(scope="module")
def shop(worker):
    """Orders and users, as a stream and a table."""
    engine = worker.process.worker.streaming.get()
    engine.execute(MAKE)
    values = [
        (str(number), json.dumps({"usr": usr, "total": total, "tags": tags, "at": at, "extra": {"a": number, "m": {"x": number * 2}}}))
        for number, usr, total, tags, at in ORDERS
    ]
    worker.send("users", [(name, json.dumps({"full": full, "land": land})) for name, full, land in USERS])
    worker.send("orders", [(int(key).to_bytes(4, "big"), value) for key, value in values])
    yield engine
    engine.execute("TERMINATE ALL; DROP STREAM orders; DROP TABLE users;")


# ---------------------------------------------------------------- asked once
PULLS = [
    param("SELECT id, usr FROM orders WHERE total > 15", [(2, "bob"), (3, "ann")], id="where"),
    param("SELECT * FROM users", [("ann", "Ann", "DE"), ("bob", "Bob", "FR")], id="a table's star"),
    param("SELECT full FROM users WHERE name = 'bob'", [("Bob",)], id="by key"),
    param("SELECT usr, count(*) AS n, sum(total) AS s FROM orders GROUP BY usr", [("ann", 2, 40.5), ("bob", 1, 20.0), ("eve", 1, 5.0)], id="group by"),
    param("SELECT usr, count(*) AS n FROM orders GROUP BY usr HAVING count(*) > 1", [("ann", 2)], id="having"),
    param("SELECT id, extra->a AS a, extra->m['x'] AS x FROM orders WHERE id = 2", [(2, 2, 4)], id="struct and map"),
    param("SELECT id, explode(tags) AS tag FROM orders", [(1, "a"), (1, "b"), (3, "b")], id="explode"),
    param("SELECT id, tags[0] AS t FROM orders WHERE array_contains(tags, 'a')", [(1, "a")], id="array"),
    param("SELECT id, ARRAY_LENGTH(tags) AS n FROM orders WHERE tags IS NOT NULL AND id < 3", [(1, 2), (2, 0)], id="array_length"),
    param("SELECT ROWTIME AS t, ROWPARTITION AS p, ROWOFFSET AS o FROM orders WHERE id = 3", [(T0 + 61_000, 0, 2)], id="pseudo columns"),
    param("SELECT id, CASE WHEN total >= 20 THEN 'much' ELSE 'little' END AS how FROM orders WHERE id <= 2", [(1, "little"), (2, "much")], id="case"),
    param("SELECT UCASE(usr) AS u, LEN(usr) AS n FROM orders WHERE id = 4", [("EVE", 3)], id="ucase, len"),
    param("SELECT CONCAT(usr, '-', CAST(id AS VARCHAR)) AS c FROM orders WHERE id = 1", [("ann-1",)], id="concat, cast"),
    param("SELECT SPLIT('a.b', '.') AS s FROM orders WHERE id = 1", [(["a", "b"],)], id="split by a delimiter"),
    param("SELECT REGEXP_SPLIT_TO_ARRAY('a1b', '[0-9]') AS s FROM orders WHERE id = 1", [(["a", "b"],)], id="split by a pattern"),
    param("SELECT STRUCT(a := id, b := usr) AS s FROM orders WHERE id = 1", [({"a": 1, "b": "ann"},)], id="struct constructor"),
    param("SELECT ARRAY[id, 7] AS s FROM orders WHERE id = 1", [([1, 7],)], id="array constructor"),
    param("SELECT MAP('k' := id)['k'] AS s FROM orders WHERE id = 1", [(1,)], id="map constructor"),
    param("SELECT TOPK(total, 2) AS t, COUNT_DISTINCT(usr) AS u FROM orders", [([30.5, 20.0], 3)], id="topk, count_distinct"),
    param("SELECT usr, LATEST_BY_OFFSET(total) AS l, EARLIEST_BY_OFFSET(total) AS e FROM orders GROUP BY usr HAVING usr = 'ann'", [("ann", 30.5, 10.0)], id="by offset"),
    param("SELECT TIMESTAMPTOSTRING(at, 'yyyy-MM-dd') AS d FROM orders WHERE id = 1", [(DAY,)], id="timestamptostring"),
    param("SELECT EXTRACTJSONFIELD('{\"a\": {\"b\": 3}}', '$.a.b') AS j FROM orders WHERE id = 1", [("3",)], id="extractjsonfield"),
    param("SELECT IFNULL(element_at(tags, 1), 'none') AS t FROM orders WHERE id = 4", [("none",)], id="ifnull"),
    param("SELECT SUBSTRING(usr, 1, 2) AS s, INSTR(usr, 'n') AS i FROM orders WHERE id = 1", [("an", 2)], id="substring, instr"),
    param("SELECT transform(tags, t => upper(t)) AS t FROM orders WHERE id = 1", [(["A", "B"],)], id="lambda"),
    param("SELECT usr, WINDOWSTART AS w, count(*) AS n FROM orders WINDOW TUMBLING (SIZE 1 MINUTE) WHERE usr = 'ann' GROUP BY usr",
          [("ann", T0, 1), ("ann", T0 + 60_000, 1)], id="tumbling window"),
    param("SELECT usr, WINDOWSTART AS w, WINDOWEND AS e FROM orders WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 30 SECONDS) WHERE id = 1 GROUP BY usr",
          [("ann", T0 - 30_000, T0 + 30_000), ("ann", T0, T0 + 60_000)], id="hopping window"),
    param("SELECT usr, WINDOWSTART AS w, count(*) AS n FROM orders WINDOW SESSION (2 MINUTES) WHERE usr = 'ann' GROUP BY usr", [("ann", T0, 2)], id="session window"),
    param("SELECT o.id AS id, u.full AS f FROM orders o JOIN users u ON o.usr = u.name", [(1, "Ann"), (2, "Bob"), (3, "Ann")], id="join of a table"),
    param("SELECT o.id AS id, u.full AS f FROM orders o LEFT JOIN users u ON o.usr = u.name WHERE o.id > 2", [(3, "Ann"), (4, None)], id="left join"),
    param("SELECT id FROM orders LIMIT 2", [(1,), (2,)], id="limit"),
]  # fmt: skip


def test_what_is_asked_once(shop):
    wrong = {}
    for case in PULLS:
        text, wanted = case.values
        found = [tuple(row) for row in shop.execute(f"{text};")[0]["rows"]]
        if sorted(found, key=repr) != sorted(wanted, key=repr):
            wrong[case.id] = found
    assert not wrong


# ---------------------------------------------------------------- queries that run on
QUERIES = [
    ("CREATE STREAM x_big WITH (kafka_topic = 'x_big') AS SELECT id, usr, total * 2 AS twice FROM orders WHERE total > 15 EMIT CHANGES",
     {2: {"usr": "bob", "twice": 40.0}, 3: {"usr": "ann", "twice": 61.0}}, "id"),
    ("CREATE STREAM x_by_user WITH (kafka_topic = 'x_by_user') AS SELECT usr, id FROM orders WHERE id > 1 PARTITION BY usr EMIT CHANGES",
     {"bob": {"id": 2}, "ann": {"id": 3}, "eve": {"id": 4}}, "text"),
    ("CREATE TABLE x_sums WITH (kafka_topic = 'x_sums') AS SELECT usr, count(*) AS n, sum(total) AS s FROM orders GROUP BY usr HAVING count(*) > 1 EMIT CHANGES",
     {"ann": {"n": 2, "s": 40.5}}, "text"),
    ("CREATE TABLE x_pairs WITH (kafka_topic = 'x_pairs') AS SELECT usr, id, count(*) AS n FROM orders WHERE id < 3 GROUP BY usr, id EMIT CHANGES",
     {'{"usr":"ann","id":1}': {"n": 1}, '{"usr":"bob","id":2}': {"n": 1}}, "text"),
    ("CREATE STREAM x_named WITH (kafka_topic = 'x_named') AS SELECT o.usr, u.full AS full, o.id FROM orders o LEFT JOIN users u ON o.usr = u.name EMIT CHANGES",
     {"ann": {"full": "Ann", "id": 3}, "bob": {"full": "Bob", "id": 2}, "eve": {"full": None, "id": 4}}, "text"),
    ("CREATE TABLE x_lands WITH (kafka_topic = 'x_lands') AS SELECT land, count(*) AS n FROM users GROUP BY land EMIT CHANGES",
     {"DE": {"n": 1}, "FR": {"n": 1}}, "text"),
    ("CREATE TABLE x_germans WITH (kafka_topic = 'x_germans') AS SELECT name, full FROM users WHERE land = 'DE' EMIT CHANGES", {"ann": {"full": "Ann"}}, "text"),
]  # fmt: skip


@pytest.mark.timeout(900)
def test_queries_that_run_on(shop, sql):
    for text, _, _ in QUERIES:
        sql(f"{text};")
    for text, wanted, kind in QUERIES:
        name = text.split("kafka_topic = '")[1].split("'")[0]
        key = (lambda key: key.to_bytes(4, "big")) if kind == "id" else str.encode
        sql.final(name, {key(each): json.dumps(value, separators=(",", ":")).encode() for each, value in wanted.items()})
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
    ("SELECT id, usr AS id FROM orders EMIT CHANGES;", "two columns are called 'id'"),
    ("CREATE STREAM x_s AS SELECT usr FROM orders EMIT CHANGES;", "key column 'id' is missing"),
    ("CREATE STREAM x_s AS SELECT usr, count(*) AS n FROM orders GROUP BY usr EMIT CHANGES;", "Write CREATE TABLE"),
    ("CREATE TABLE x_s AS SELECT id, usr FROM orders EMIT CHANGES;", "Write CREATE STREAM"),
    ("CREATE TABLE x_s AS SELECT count(*) AS n FROM orders GROUP BY usr EMIT CHANGES;", "'usr' is in GROUP BY and not selected"),
    ("CREATE TABLE x_s AS SELECT usr FROM orders GROUP BY usr EMIT CHANGES;", "no column beside its key"),
    ("SELECT usr, count(*) AS n FROM orders GROUP BY usr EMIT FINAL;", "EMIT FINAL needs a WINDOW"),
    ("SELECT usr, count(*) AS n FROM orders WINDOW SESSION (1 MINUTE) GROUP BY usr EMIT CHANGES;", "write EMIT FINAL"),
    ("SELECT id FROM orders WINDOW TUMBLING (SIZE 1 MINUTE) EMIT CHANGES;", "WINDOW needs a GROUP BY"),
    ("SELECT id FROM orders HAVING id > 1 EMIT CHANGES;", "conditions on rows belong into WHERE"),
    ("SELECT a.id, b.id AS i FROM orders a JOIN orders b ON a.id = b.id EMIT CHANGES;", "needs WITHIN"),
    ("SELECT u.name FROM users u JOIN orders o ON o.usr = u.name EMIT CHANGES;", "put the stream first"),
    ("SELECT o.id FROM orders o JOIN users u WITHIN 1 HOUR ON o.usr = u.name EMIT CHANGES;", "a table has the row that it has"),
    ("SELECT o.id FROM orders o FULL JOIN users u ON o.usr = u.name EMIT CHANGES;", "by JOIN or LEFT JOIN"),
    ("CREATE STREAM orders (id INT) WITH (kafka_topic = 'orders');", "There is a stream 'orders' already"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topic = 'is-not-there');", "partitions = 1"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topic = 'orders', value_format = 'XML');", "There is no format 'XML'"),
    ("CREATE STREAM x_s (id INT, a INT) WITH (kafka_topic = 'orders', value_format = 'KAFKA');", "KAFKA holds one"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topic = 'orders', timestamp = 'at');", "names no column"),
    ("CREATE STREAM x_s (id INT) WITH (kafka_topics = 'orders');", "knows no 'kafka_topics'"),
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
    assert sql("CREATE STREAM IF NOT EXISTS orders (id INT) WITH (kafka_topic = 'orders');")["message"].endswith("was there already.")
    assert sql.rows("DEFINE who = 'ann'; SELECT id FROM orders WHERE usr = '${who}' AND id = 1;") == [(1,)]
    assert "UCASE" in [row[0] for row in sql.rows("SHOW FUNCTIONS;")]
