"""PostgreSQL with psycopg. Rows are read and written with COPY (postgresql_copy.py).

COPY uses PostgreSQL's text form of each type, so values are exact, and PostgreSQL's own rules convert strings to column types. For a million rows
of ten columns it was faster, too: 137 k rows/s written, 52 k with multi-row INSERT.
"""

import hashlib
import struct

import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import arrow
from connectors.jdbc import column as c
from connectors.jdbc.dialects import base, postgresql_copy
from connectors.jdbc.dialects.base import OTHER, PASSING, RECORD, Dialect
from connectors.jdbc.dialects.postgresql_values import array_texts, moment_texts, time_texts
from connectors.jdbc.table import Table
from standalone import DataError

_KINDS = {
    "bool": c.BOOLEAN, "int2": c.INT16, "int4": c.INT32, "int8": c.INT64, "oid": c.INT64, "float4": c.FLOAT32, "float8": c.FLOAT64,
    "numeric": c.DECIMAL, "money": c.DECIMAL, "bytea": c.BYTES, "date": c.DATE, "time": c.TIME, "timetz": c.TIME, "timestamp": c.TIMESTAMP,
    "timestamptz": c.TIMESTAMP,
}  # fmt: skip
_TABLE_TYPES = {"TABLE": "r", "PARTITIONED TABLE": "p", "VIEW": "v", "MATERIALIZED VIEW": "m", "FOREIGN TABLE": "f"}
_PROPERTIES = {  # Java's driver -> libpq
    "sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey", "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout", "options": "options", "targetServerType": "target_session_attrs", "gssEncMode": "gssencmode",
}  # fmt: skip
_SESSIONS = {"primary": "primary", "master": "primary", "secondary": "standby", "slave": "standby", "preferSecondary": "prefer-standby"}
_CANCEL_SECONDS = 2
_INSERT_ONLY = "connect_insert_only"
_MOST_WAITED = 1024  # batches
_SAME = {"smallint": "int2", "int": "int4", "bigint": "int8", "real": "float4", "double precision": "float8", "decimal": "numeric"}


class PostgreSql(Dialect):
    name = "PostgreSqlDatabaseDialect"
    reads_ahead = True
    sql_types = {
        "int8": "SMALLINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float32": "REAL", "float64": "DOUBLE PRECISION",
        "boolean": "BOOLEAN", "string": "TEXT", "bytes": "BYTEA", base.DECIMAL: "DECIMAL", base.DATE: "DATE", base.TIME: "TIME",
        base.TIMESTAMP: "TIMESTAMP",
    }  # fmt: skip
    widenings = (
        ("int2", "int4"), ("int2", "int8"), ("int4", "int8"), ("float4", "float8"), ("varchar", "text"), ("int2", "numeric"), ("int4", "numeric"),
        ("int8", "numeric"),
    )  # fmt: skip

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._known_keys = {}  # table -> (batches to write without an attempt to insert, their number after the next failed attempt)
        self._filled = set()  # staging tables with rows of this transaction

    # --- Connections and errors ---------------------------------------------------------------------------------------
    def connect(self):
        import psycopg

        at, given = self.location, self.location.properties
        options = {ours: given[theirs] for theirs, ours in _PROPERTIES.items() if given.get(theirs)}
        if options.get("target_session_attrs"):
            options["target_session_attrs"] = _SESSIONS.get(options["target_session_attrs"], "any")
        if given.get("ssl", "false").lower() not in ("false", "0") and "sslmode" not in options:
            options["sslmode"] = "verify-full"
        options.setdefault("application_name", "connect-standalone")
        options.setdefault("connect_timeout", "10")
        connection = psycopg.connect(
            host=",".join(host for host, _ in at.hosts), port=",".join(str(port) for _, port in at.hosts),
            dbname=at.database or at.user, user=at.user, password=at.password, keepalives_idle=60, **options,
        )  # fmt: skip
        connection.execute(
            "SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 1"
        )
        if given.get("currentSchema"):
            connection.execute("SELECT set_config('search_path', %s, false)", [given["currentSchema"]])
        connection.commit()
        return connection

    @property
    def error(self):
        import psycopg

        return psycopg.Error

    def interrupt(self, connection):
        connection.cancel_safe(timeout=_CANCEL_SECONDS)

    def blame(self, error):
        import psycopg

        state = getattr(error, "sqlstate", None) or ""
        if state[:2] in ("08", "40", "53", "57", "58") or state in ("55P03", "55006", "25006"):
            return PASSING
        if state[:2] in ("22", "23", "44"):
            return RECORD
        lost = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not state
        return PASSING if lost else OTHER

    # --- Reading ---------------------------------------------------------------------------------------------------------
    def tables(self, connection, types, catalog, schema):
        from connectors.jdbc.table import like

        kinds = [_TABLE_TYPES[each.upper()] for each in types if each.upper() in _TABLE_TYPES]
        if not like(catalog, self.location.database):
            return []
        found = connection.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind::text = ANY(%s) "
            "AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema' ORDER BY 1, 2",
            [kinds],
        ).fetchall()
        return [Table(name, place) for place, name in found if like(schema, place)]

    def describe(self, connection, sql):
        pgconn = connection.pgconn
        if connection.info.transaction_status == connection.info.transaction_status.IDLE:
            connection.execute("SELECT 1")  # begins the transaction: PREPARE by hand does not
        result = pgconn.prepare(b"", sql.encode())
        if result.status == 1:  # PGRES_COMMAND_OK
            result = pgconn.describe_prepared(b"")
        if result.status != 1:
            import psycopg

            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        found = [
            (result.fname(at).decode(), result.ftype(at), result.fmod(at), result.ftable(at), result.ftablecol(at)) for at in range(result.nfields)
        ]
        types = self._types(connection, {each[1] for each in found})
        places = [(table, number) for _, _, _, table, number in found if table and number]
        never_null = set()
        if places:
            rows = connection.execute(
                "SELECT attrelid::bigint, attnum::int FROM pg_attribute WHERE attnotnull AND attrelid = ANY(%s::oid[])",
                [[table for table, _ in places]],
            )
            never_null = set(rows.fetchall())
        return base.check_columns(
            [_column(name, kind, mod, types, nullable=(table, number) not in never_null) for name, kind, mod, table, number in found], "The query"
        )

    def _types(self, connection, numbers):
        """Return {oid: (name, category, item oid, base type oid of a domain, its typmod)}, including item and base types."""
        types = {}
        while numbers - types.keys():
            rows = connection.execute(
                "SELECT oid::bigint, typname, typtype::text, CASE WHEN typcategory = 'A' THEN typelem::bigint ELSE 0 END, typbasetype::bigint, "
                "typtypmod "
                "FROM pg_type WHERE oid = ANY(%s::oid[])",
                [list(numbers - types.keys())],
            ).fetchall()
            if not rows:
                break
            types.update({row[0]: row[1:] for row in rows})
            numbers = {each for row in rows for each in (row[3], row[4]) if each}
        return types

    def columns(self, connection, table):
        found = connection.execute("SELECT to_regclass(%s)::oid::bigint", [self.full(table)]).fetchone()[0]
        if found is None:
            return None
        rows = connection.execute(
            "SELECT attname, atttypid::bigint, atttypmod, NOT attnotnull, atthasdef OR attidentity <> '' OR attgenerated <> '', "
            "EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = attrelid AND i.indisprimary AND attnum = ANY(i.indkey)), "
            "attidentity <> '' OR coalesce((SELECT pg_get_expr(adbin, adrelid) LIKE 'nextval(%%' FROM pg_attrdef WHERE adrelid = attrelid AND "
            "adnum = attnum), false) "
            "FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [found],
        ).fetchall()
        types = self._types(connection, {row[1] for row in rows})
        return [_column(row[0], row[1], row[2], types, nullable=row[3], has_default=row[4], is_key=row[5], counts=row[6]) for row in rows]

    def begin_read(self, connection):
        if self._isolation not in ("DEFAULT", "SQL_SERVER_SNAPSHOT"):
            connection.rollback()
            connection.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {self._isolation.replace('_', ' ')}")
            connection.commit()

    def read(self, connection, sql, columns, rows):
        return postgresql_copy.read(connection, sql, columns, rows, self.zone)

    def now(self, connection):
        return connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()[0]

    def horizon(self, connection):
        """Return the start of the oldest transaction in this database that may still write: it has written already, or is younger than a minute.
        So a session that only reads delays no rows forever. Without the right to see other transactions, return None.
        """
        hidden, oldest = connection.execute(
            "SELECT count(*) FILTER (WHERE state IS NULL), (extract(epoch FROM min(xact_start) FILTER (WHERE backend_xid IS NOT NULL OR "
            "xact_start > clock_timestamp() - INTERVAL '1 min')) * 1000000)::bigint FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchone()
        if hidden:
            return None
        return min(each for each in (oldest, self.now(connection)) if each is not None)

    def transactions_before(self, connection):
        row = connection.execute(
            "SELECT pg_snapshot_xmax(s)::text::bigint, pg_snapshot_xmin(s)::text::bigint FROM pg_current_snapshot() s"
        ).fetchone()
        return tuple(row)

    def literal(self, micros, column):
        if column.is_zoned:
            return f"TIMESTAMPTZ '{arrow.wall_text(micros)}+00'"
        return super().literal(micros, column)

    # --- Writing ---------------------------------------------------------------------------------------------------------
    def sql_type(self, schema, is_key=False, as_timestamp=False):
        if schema.type == "array" and not as_timestamp:
            return f"{self.sql_type(schema.value_schema)}[]"
        return super().sql_type(schema, is_key, as_timestamp)

    def prepared(self, schema, array, target, as_timestamp=None):
        if as_timestamp or schema.name == base.TIMESTAMP:
            return moment_texts(array if as_timestamp else pc.multiply_checked(array, 1000), self.zone)
        if schema.name == base.DECIMAL:
            return arrow.decimal_texts(array)
        if schema.name == base.DATE:
            return moment_texts(pc.multiply_checked(array, 1000), "UTC", only_date=True)
        if schema.name == base.TIME:
            return time_texts(array)
        if schema.type == "bytes":
            return pc.binary_join_element_wise("\\x", arrow.hex_texts(array), "")
        if schema.type == "array":
            return array_texts(schema, array, target, self.prepared)
        if schema.type in ("struct", "map"):
            raise DataError(f"PostgreSQL has no column type for a {schema.type}: flatten it, or leave '{target.name}' out by 'fields.whitelist'.")
        if schema.type == "boolean" and target.type_name in ("bit", "int2", "int4", "int8", "numeric"):
            return array.cast(pa.int8())
        return array

    def plain_type(self, kind):
        return _SAME.get(kind.lower(), kind.lower())

    def begin(self, connection):
        self._filled.clear()

    def insert(self, connection, table, names, arrays):
        postgresql_copy.write(connection, f"{self.full(table)} ({self._listed(names)})", arrays)

    def upsert(self, connection, table, names, keys, arrays):
        if self._are_all_new(connection, table, names, keys, arrays):
            return
        stage = self._staged(connection, table, names, arrays)
        listed = self._listed(names)
        rest = [name for name in names if name not in keys]
        sets = ", ".join(f"{self.quoted(name)} = EXCLUDED.{self.quoted(name)}" for name in rest)
        action = f"DO UPDATE SET {sets}" if rest else "DO NOTHING"
        self.execute(
            connection, f"INSERT INTO {self.full(table)} ({listed}) SELECT {listed} FROM {stage} ON CONFLICT ({self._listed(keys)}) {action}"
        )

    def _are_all_new(self, connection, table, names, keys, arrays):
        """Insert the rows, which is faster than an upsert; return whether that worked. If a key exists, skip the attempt for the next batches:
        twice as many after each failure."""
        import psycopg

        wait, longest = self._known_keys.get(table, (0, 1))
        if wait:
            self._known_keys[table] = wait - 1, longest
            return False
        if not self._is_unique(connection, table, keys):
            return False
        self.savepoint(connection, _INSERT_ONLY)
        try:
            self.insert(connection, table, names, arrays)
        except (psycopg.errors.UniqueViolation, psycopg.errors.FeatureNotSupported):  # the latter for tables with row-level security
            self.back_to(connection, _INSERT_ONLY)
            self._known_keys[table] = longest, min(2 * longest, _MOST_WAITED)
        else:
            self._known_keys.pop(table, None)
        self.release(connection, _INSERT_ONLY)
        return table not in self._known_keys

    def _is_unique(self, connection, table, keys):
        """Return whether a unique index covers exactly these columns. Without one, ON CONFLICT fails with a clear error."""
        found = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = to_regclass(%s) AND indisunique AND indimmediate AND indisvalid "
            "AND indpred IS NULL AND (SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute WHERE attrelid = indrelid "
            "AND attnum = ANY((indkey::int2[])[0:indnkeyatts - 1])) = %s::text[])",
            [self.full(table), sorted(keys)],
        )
        return found.fetchone()[0]

    def update(self, connection, table, names, keys, arrays):
        rest = [name for name in names if name not in keys]
        if not rest:
            return
        stage = self._staged(connection, table, names, arrays)
        sets = ", ".join(f"{self.quoted(name)} = s.{self.quoted(name)}" for name in rest)
        self.execute(connection, f"UPDATE {self.full(table)} AS t SET {sets} FROM {stage} AS s WHERE {self._same(keys)}")

    def delete(self, connection, table, keys, arrays):
        stage = self._staged(connection, table, keys, arrays)
        self.execute(connection, f"DELETE FROM {self.full(table)} AS t USING {stage} AS s WHERE {self._same(keys)}")

    def _staged(self, connection, table, names, arrays):
        """Copy the rows to a temporary table with the same column types. It is empty after each transaction."""
        told = repr((table.parts, names, [(column.name, column.type_name) for column in self.columns(connection, table) or ()]))
        stage = self.quoted(f"connect_stage_{hashlib.sha1(told.encode()).hexdigest()[:16]}")
        listed = self._listed(names)
        connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {stage} ON COMMIT DELETE ROWS AS SELECT {listed} FROM {self.full(table)} WITH NO DATA")
        if stage in self._filled:
            self.execute(connection, f"DELETE FROM {stage}")
        self._filled.add(stage)
        postgresql_copy.write(connection, f"{stage} ({listed})", arrays)
        return stage

    def _listed(self, names):
        return ", ".join(map(self.quoted, names))

    def _same(self, keys):
        return " AND ".join(f"t.{self.quoted(key)} = s.{self.quoted(key)}" for key in keys)


def _column(name, kind, mod, types, **rest):
    """Return the Column for a type's oid and typmod."""
    type_name, category, item, of, own_mod = types.get(kind, ("unknown", "b", 0, 0, -1))
    if category == "d":
        return _column(name, of, own_mod if own_mod >= 0 else mod, types, **rest)
    if item and type_name.startswith("_"):
        return c.Column(name, c.ARRAY, type_name=type_name, item=_column("item", item, mod, types), **rest)
    found = _KINDS.get(type_name, c.STRING)
    precision = scale = None
    if type_name == "numeric" and mod >= 4:
        precision, scale = (mod - 4) >> 16 & 0xFFFF, struct.unpack(">h", struct.pack(">H", ((mod - 4 & 0x7FF) ^ 1024) - 1024 & 0xFFFF))[0]
    elif type_name == "money":
        precision, scale = 19, 2
    elif type_name == "bit" and mod == 1:
        found = c.BOOLEAN
    return c.Column(name, found, type_name=type_name, precision=precision, scale=scale, is_zoned=type_name == "timestamptz", **rest)
