"""What happens in a database while Debezium's connector and ours watch it: tests/golden/debezium.json.xz has what Debezium's wrote of it."""

COLUMNS = {  # type -> values, as SQL
    "boolean": ["true", "false"],
    "smallint": ["-32768"],
    "integer": ["2147483647"],
    "bigint": ["-9223372036854775808"],
    "oid": ["4294967295"],
    "real": ["1.5"],
    "double precision": ["'-0.1'", "'Infinity'", "'NaN'"],
    "numeric(10,3)": ["1234.5", "-0.001"],
    "numeric(5,0)": ["12345"],
    "numeric": ["123456789012345678901234567890.123", "0", "-1.50"],
    "money": ["'1234.56'", "'-0.05'"],
    "char(5)": ["'ab'"],
    "varchar(20)": ["'Zürich'"],
    "text": ["''", "E'tab\\tline\\nback\\\\slash'", "'NULL'"],
    "bytea": ["'\\x00ff10'", "''"],
    "bit(1)": ["B'1'"],
    "bit(10)": ["B'1000000001'"],
    "bit varying(12)": ["B'101'"],
    "bit varying": ["B'11'"],
    "date": ["'2024-02-29'", "'1582-10-04'", "'0044-03-15 BC'"],
    "time": ["'23:59:59.123456'", "'24:00:00'"],
    "time(3)": ["'01:02:03.456'"],
    "time(0)": ["'01:02:03'"],
    "timetz": ["'12:30:00.5+02'"],
    "timestamp": ["'2024-02-29 12:34:56.123456'", "'1900-01-01 00:00:00'", "'infinity'", "'-infinity'"],
    "timestamp(3)": ["'2024-02-29 12:34:56.789'"],
    "timestamp(0)": ["'2024-02-29 12:34:56'"],
    "timestamptz": ["'2024-02-29 12:34:56.123456+02'", "'2024-02-29 12:34:56+00'", "'infinity'", "'-infinity'"],
    "timestamptz(3)": ["'2024-02-29 12:34:56.7+02'"],
    "interval": ["'1 year 2 mons 3 days 04:05:06.789'", "'-1 day'", "'0'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "json": ["'{\"a\": 1,  \"b\":[null]}'"],
    "jsonb": ["'{\"b\": 1, \"a\": 2}'"],
    "xml": ["'<a>b</a>'"],
    "inet": ["'192.168.0.1/24'", "'10.0.0.1'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "macaddr8": ["'08:00:2b:01:02:03:04:05'"],
    "point": ["'(1.5,-2)'"],
    "tsvector": ["'a fat cat'"],
    "int4range": ["'[1,5)'", "'empty'"],
    "int8range": ["'[1,]'"],
    "numrange": ["'(1.5,2]'"],
    "tsrange": ["'[2024-01-01 00:00,2024-01-02 12:30)'"],
    "tstzrange": ["'[2024-01-01 00:00+00,)'"],
    "daterange": ["'[2024-01-01,2024-02-01)'"],
    "mood": ["'ok'"],
    "positive": ["7"],
    "integer[]": ["'{1,NULL,3}'", "'{}'"],
    "text[]": ["'{\"a,b\",\"q\\\"uote\",NULL,\"\"}'"],
    "numeric(10,2)[]": ["'{1.5,2}'"],
    "boolean[]": ["'{t,f}'"],
    "timestamp[]": ["'{2024-02-29 12:34:56}'"],
    "timestamptz[]": ["'{2024-02-29 12:34:56+02}'"],
    "date[]": ["'{2024-02-29}'"],
    "uuid[]": ["'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'"],
    "bytea[]": ["'{\"\\\\x01\"}'"],
    "jsonb[]": ["'{\"{\\\"a\\\": 1}\"}'"],
    "mood[]": ["'{ok,sad}'"],
    "integer[][]": ["'{{1,2},{3,4}}'"],
    "citext": ["'MiXed'"],
    "hstore": ["'a=>1, b=>NULL'"],
    "ltree": ["'a.b.c'"],
}
NAMES = {kind: f"c{number}" for number, kind in enumerate(COLUMNS)}
_MOST = max(map(len, COLUMNS.values()))


def _row(number):
    values = [each[number] if number < len(each) else "NULL" for each in COLUMNS.values()]
    return f"INSERT INTO kinds ({', '.join(NAMES.values())}) VALUES ({', '.join(values)})"


SETUP = [
    "CREATE EXTENSION IF NOT EXISTS citext", "CREATE EXTENSION IF NOT EXISTS hstore", "CREATE EXTENSION IF NOT EXISTS ltree",
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s')", "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
    f"CREATE TABLE kinds (id serial PRIMARY KEY, {', '.join(f'{name} {kind}' for kind, name in NAMES.items())})",
    "CREATE TABLE plain (id int PRIMARY KEY, name text NOT NULL, n int DEFAULT 5, big text, "
    "at timestamptz NOT NULL DEFAULT '2020-01-01 00:00:00+00', price numeric(8,2) NOT NULL DEFAULT 1.25, flag boolean NOT NULL DEFAULT true)",
    "CREATE TABLE whole (a int, b varchar(8) NOT NULL, big text, PRIMARY KEY (b, a))", "ALTER TABLE whole REPLICA IDENTITY FULL",
    "CREATE TABLE keyless (x int, y text)", "ALTER TABLE keyless REPLICA IDENTITY FULL",
    "CREATE TABLE indexed (x int NOT NULL, y int NOT NULL, z text)", "CREATE UNIQUE INDEX indexed_y ON indexed (y)",
    "ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_y",
    'CREATE TABLE "Odd name" ("a b" int PRIMARY KEY, "c-d" int)',
    _row(0), "INSERT INTO plain VALUES (1, 'one')", "INSERT INTO plain VALUES (2, 'two', NULL, repeat('x', 5))",
    "INSERT INTO \"Odd name\" VALUES (1, 2)",
]  # fmt: skip
_LONG = "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 400) g)"
CHANGES = [  # a transaction each
    *([_row(number)] for number in range(1, _MOST)),
    ["UPDATE kinds SET c0 = NOT c0 WHERE id = 1"],
    [f"INSERT INTO plain (id, name, big) VALUES (3, 'three', {_LONG})"],
    ["UPDATE plain SET name = 'drei' WHERE id = 3"],
    ["UPDATE plain SET id = 4 WHERE id = 3"],
    ["DELETE FROM plain WHERE id = 4", "INSERT INTO keyless VALUES (1, 'a')", "UPDATE keyless SET y = 'b'", "DELETE FROM keyless"],
    [f"INSERT INTO whole VALUES (1, 'k', {_LONG})", "UPDATE whole SET a = 2", "UPDATE whole SET big = 'short'", "DELETE FROM whole"],
    ["INSERT INTO indexed VALUES (1, 2, 'z')", "UPDATE indexed SET z = 'zz'", "UPDATE indexed SET y = 3", "DELETE FROM indexed"],
    ["UPDATE \"Odd name\" SET \"c-d\" = 3"],
    ["ALTER TABLE plain ADD COLUMN more int"],
    ["INSERT INTO plain (id, name, more) VALUES (5, 'five', 55)"],
    ["ALTER TABLE plain DROP COLUMN n"],
    ["INSERT INTO plain (id, name, more) VALUES (6, 'six', 66)"],
    ["TRUNCATE plain, keyless"],
    ["SELECT pg_logical_emit_message(true, 'pre', 'content')", "INSERT INTO keyless VALUES (2, 'within')"],
    ["SELECT pg_logical_emit_message(false, 'pre', 'at once')"],
    ["INSERT INTO keyless VALUES (99, 'end')"],
]  # fmt: skip
LAST = "end"  # in the last record's value

CONFIGS = {
    "usual": {},
    "texts": {
        "decimal.handling.mode": "string", "time.precision.mode": "isostring", "interval.handling.mode": "string", "binary.handling.mode": "base64",
        "hstore.handling.mode": "map", "skipped.operations": "none", "provide.transaction.metadata": "true", "tombstones.on.delete": "false",
        "message.key.columns": "public.keyless:x",
    },
    "connect": {
        "decimal.handling.mode": "double", "time.precision.mode": "connect", "binary.handling.mode": "hex", "include.unknown.datatypes": "true",
        "schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro", "column.exclude.list": "public.plain.big",
    },
    "micro": {
        "time.precision.mode": "adaptive_time_microseconds", "binary.handling.mode": "base64-url-safe", "include.schema.comments": "true",
        "table.exclude.list": "public.kinds,public.whole", "skip.messages.without.change": "true", "column.include.list": "public.plain.(id|name)",
    },
    "nano": {"time.precision.mode": "nanoseconds", "table.include.list": "public.kinds", "money.fraction.digits": "3"},
}  # fmt: skip


def config(name, port):
    """Of Debezium's connector, or of ours."""
    return {
        "name": name, "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "plugin.name": "pgoutput", "tasks.max": "1",
        "database.hostname": "127.0.0.1", "database.port": str(port), "database.user": "postgres", "database.password": "unused",
        "database.dbname": "postgres", "topic.prefix": name, "slot.name": f"slot_{name}", "publication.name": f"publication_{name}",
        "poll.interval.ms": "20", **CONFIGS[name],
    }  # fmt: skip
