"""Orders and users, as a stream and a table, and statements with what they answer: data of ours, features of ksqlDB's documentation."""

import contextlib
import json
import time

from pytest import param

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


@contextlib.contextmanager
def opened(worker, topics=""):
    """The engine, with the orders and users in it; `topics` stands before the names of their topics."""
    engine = worker.process.worker.streaming.get()
    engine.execute(MAKE.replace("kafka_topic = '", f"kafka_topic = '{topics}"))
    values = [
        (str(number), json.dumps({"usr": usr, "total": total, "tags": tags, "at": at, "extra": {"a": number, "m": {"x": number * 2}}}))
        for number, usr, total, tags, at in ORDERS
    ]
    worker.send(f"{topics}users", [(name, json.dumps({"full": full, "land": land})) for name, full, land in USERS])
    worker.send(f"{topics}orders", [(int(key).to_bytes(4, "big"), value) for key, value in values])
    yield engine
    engine.execute("TERMINATE ALL; DROP STREAM orders; DROP TABLE users;")


def check_pulls(engine, ids=None):
    """What is asked once of them answers what the table says; `ids`: only these rows of it."""
    wrong = {}
    for case in PULLS:
        if ids is not None and case.id not in ids:
            continue
        text, wanted = case.values
        found = [tuple(row) for row in engine.execute(f"{text};")[0]["rows"]]
        if sorted(found, key=repr) != sorted(wanted, key=repr):
            wrong[case.id] = found
    assert not wrong


def check_queries(sql, queries):
    """Queries that run on bring their topics to what the table says."""
    for text, _, _ in queries:
        sql(f"{text};")
    for text, wanted, kind in queries:
        name = text.split("kafka_topic = '")[1].split("'")[0]
        key = (lambda key: key.to_bytes(4, "big")) if kind == "id" else str.encode
        sql.final(name, {key(each): json.dumps(value, separators=(",", ":")).encode() for each, value in wanted.items()})


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
    param("SELECT explode(tags) AS tag, count(*) AS n FROM orders GROUP BY tag", [("a", 1), ("b", 2)], id="group by what is exploded"),
    param("SELECT usr, MIN(total) AS a, MAX(total) AS b, AVG(total) AS c FROM orders GROUP BY usr HAVING usr = 'ann'", [("ann", 10.0, 30.5, 20.25)], id="min, max, avg"),
    param("SELECT usr, ARRAY_SORT(COLLECT_LIST(id)) AS l FROM orders GROUP BY usr HAVING count(*) = 2", [("ann", [1, 3])], id="collect_list"),
    param("SELECT usr, sum(total) AS s FROM orders GROUP BY usr HAVING sum(total) > 15", [("ann", 40.5), ("bob", 20.0)], id="having of a sum"),
    param("SELECT usr, id, count(*) AS n FROM orders WHERE id < 3 GROUP BY usr, id", [("ann", 1, 1), ("bob", 2, 1)], id="group by two"),
    param("SELECT LEN(usr) AS l, count(*) AS n FROM orders GROUP BY LEN(usr)", [(3, 4)], id="group by an expression"),
    param("SELECT land, count(*) AS n FROM users GROUP BY land", [("DE", 1), ("FR", 1)], id="group by, of a table"),
    param("SELECT u.land AS land, sum(o.total) AS s FROM orders o JOIN users u ON o.usr = u.name GROUP BY u.land", [("DE", 40.5), ("FR", 20.0)], id="group by, of a join"),
    param("SELECT name FROM users WHERE land <> 'DE'", [("bob",)], id="where, of a table"),
    param("SELECT id FROM orders WHERE total BETWEEN 10 AND 20", [(1,), (2,)], id="between"),
    param("SELECT id FROM orders WHERE usr IN ('bob', 'eve')", [(2,), (4,)], id="in"),
    param("SELECT id FROM orders WHERE usr LIKE 'a%'", [(1,), (3,)], id="like"),
    param("SELECT id FROM orders WHERE NOT (usr = 'ann' OR total > 15)", [(4,)], id="not, or"),
    param("SELECT id FROM orders WHERE tags IS NULL", [(4,)], id="is null"),
    param("SELECT id FROM orders WHERE ROWOFFSET >= 2", [(3,), (4,)], id="where, of an offset"),
    param("SELECT id, COALESCE(tags, ARRAY['none']) AS t FROM orders WHERE id > 2", [(3, ["b"]), (4, ["none"])], id="coalesce"),
    param("SELECT id, NULLIF(usr, 'ann') AS u FROM orders WHERE id <= 2", [(1, None), (2, "bob")], id="nullif"),
    param("SELECT id, CASE usr WHEN 'ann' THEN 1 ELSE 0 END AS a FROM orders WHERE id <= 2", [(1, 1), (2, 0)], id="simple case"),
    param("SELECT CAST(total AS INT) AS i, CAST(id AS STRING) AS s, CAST('7' AS BIGINT) AS b FROM orders WHERE id = 3", [(30, "3", 7)], id="casts"),
    param("SELECT id * 2 + 1 AS a, id % 2 AS b, total / 4 AS c FROM orders WHERE id = 3", [(7, 1, 7.625)], id="arithmetic"),
    param("SELECT ABS(-total) AS a, CEIL(total) AS b, FLOOR(total) AS c, ROUND(total, 0) AS d FROM orders WHERE id = 3", [(30.5, 31, 30, 31.0)], id="rounding"),
    param("SELECT SQRT(total * total) AS s, SIGN(-total) AS g FROM orders WHERE id = 2", [(20.0, -1.0)], id="sqrt, sign"),
    param("SELECT GREATEST(id, 3) AS g, LEAST(id, 3) AS l FROM orders WHERE id = 4", [(4, 3)], id="greatest, least"),
    param("SELECT TRIM('  x ') AS a, REPLACE(usr, 'n', 'm') AS b, LPAD(usr, 5, '.') AS c, RPAD(usr, 5, '.') AS d FROM orders WHERE id = 1",
          [("x", "amm", "..ann", "ann..")], id="trim, replace, pads"),
    param("SELECT INITCAP(usr) AS a, LCASE('ABC') AS b, CONCAT_WS('-', usr, 'x') AS c FROM orders WHERE id = 1", [("Ann", "abc", "ann-x")], id="initcap, lcase, concat_ws"),
    param("SELECT REGEXP_REPLACE(usr, 'n+', '-') AS r FROM orders WHERE id = 1", [("a-",)], id="regexp_replace"),
    param("SELECT ARRAY_DISTINCT(ARRAY[1, 1, 2]) AS a, ARRAY_MAX(ARRAY[1, 3]) AS b, ARRAY_MIN(ARRAY[1, 3]) AS c, ARRAY_SORT(ARRAY[3, 1]) AS d FROM orders WHERE id = 1",
          [([1, 2], 3, 1, [1, 3])], id="of one array"),
    param("SELECT ARRAY_UNION(ARRAY[1], ARRAY[2]) AS a, ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[2]) AS b, ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[2]) AS c FROM orders WHERE id = 1",
          [([1, 2], [2], [1])], id="of two arrays"),
    param("SELECT ARRAY_JOIN(tags, '+') AS j, ARRAY_REMOVE(tags, 'a') AS r, SLICE(ARRAY[1, 2, 3], 2, 3) AS s FROM orders WHERE id = 1", [("a+b", ["b"], [2, 3])], id="array_join, slice"),
    param("SELECT MAP_KEYS(extra->m) AS k, MAP_VALUES(extra->m) AS v FROM orders WHERE id = 2", [(["x"], [4])], id="map_keys, map_values"),
    param("SELECT filter(ARRAY[1, 2, 3], x => x > 1) AS f, reduce(ARRAY[1, 2, 3], 0, (a, x) => a + x) AS r FROM orders WHERE id = 1", [([2, 3], 6)], id="filter, reduce"),
    param("SELECT FORMAT_TIMESTAMP(FROM_UNIXTIME(at), 'yyyy') AS y FROM orders WHERE id = 1", [(DAY[:4],)], id="format_timestamp"),
    param("SELECT STRINGTOTIMESTAMP('2024-05-06', 'yyyy-MM-dd') AS t, DATETOSTRING(19849, 'yyyy-MM-dd') AS d FROM orders WHERE id = 1",
          [(1_714_953_600_000, "2024-05-06")], id="stringtotimestamp, datetostring"),
    param("SELECT JSON_ARRAY_LENGTH('[1,2]') AS n, TO_JSON_STRING(extra) AS j, IS_JSON_STRING('{') AS i FROM orders WHERE id = 1",
          [(2, '{"a":1,"m":{"x":2}}', False)], id="of json"),
    param("SELECT GENERATE_SERIES(1, 3) AS g FROM orders WHERE id = 1", [([1, 2, 3],)], id="generate_series"),
]  # fmt: skip

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
    ("CREATE TABLE x_tags WITH (kafka_topic = 'x_tags') AS SELECT explode(tags) AS tag, count(*) AS n FROM orders WHERE tag <> 'c' GROUP BY tag EMIT CHANGES",
     {"a": {"n": 1}, "b": {"n": 2}}, "text"),
    ("CREATE STREAM x_named WITH (kafka_topic = 'x_named') AS SELECT o.usr, u.full AS full, o.id FROM orders o LEFT JOIN users u ON o.usr = u.name EMIT CHANGES",
     {"ann": {"full": "Ann", "id": 3}, "bob": {"full": "Bob", "id": 2}, "eve": {"full": None, "id": 4}}, "text"),
    ("CREATE TABLE x_lands WITH (kafka_topic = 'x_lands') AS SELECT land, count(*) AS n FROM users GROUP BY land EMIT CHANGES",
     {"DE": {"n": 1}, "FR": {"n": 1}}, "text"),
    ("CREATE TABLE x_germans WITH (kafka_topic = 'x_germans') AS SELECT name, full FROM users WHERE land = 'DE' EMIT CHANGES", {"ann": {"full": "Ann"}}, "text"),
]  # fmt: skip
