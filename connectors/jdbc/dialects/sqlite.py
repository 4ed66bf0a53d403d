"""SQLite with Python's sqlite3 module; it needs no server.

The declared type of a column decides the type of its field. A stored value may have any type, so each one is checked. Timestamps are stored as
Java's driver stores them: milliseconds since the epoch. Strings are read, too, as local time in db.timezone.

ADBC's driver is faster, but infers a column's type from its first rows and has no decimals.
"""

import datetime
import decimal
import re
import sqlite3

import pyarrow as pa

from connectors.jdbc import arrow
from connectors.jdbc import column as c
from connectors.jdbc.dialects import base
from connectors.jdbc.dialects.base import OTHER, PASSING, RECORD, Dialect
from connectors.jdbc.table import Table, like
from standalone import ConnectError, DataError

_KINDS = (  # part of the declared type -> kind; the first match counts
    ("BOOL", c.BOOLEAN), ("TINYINT", c.INT8), ("SMALLINT", c.INT16), ("INT2", c.INT16), ("INT", c.INT64), ("TIMESTAMP", c.TIMESTAMP),
    ("DATETIME", c.TIMESTAMP), ("DATE", c.DATE), ("TIME", c.TIME), ("DEC", c.DECIMAL), ("NUM", c.DECIMAL), ("REAL", c.FLOAT64), ("DOUB", c.FLOAT64),
    ("FLOA", c.FLOAT64), ("BLOB", c.BYTES), ("BINARY", c.BYTES),
)  # fmt: skip
_SIZES = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
_ARROW = {c.FLOAT64: pa.float64(), c.BOOLEAN: pa.bool_(), c.STRING: pa.string(), c.BYTES: pa.binary(), c.DECIMAL: pa.string()}
_LOCKED = ("locked", "busy", "disk i/o error")
_RECORD = (sqlite3.IntegrityError, sqlite3.DataError)
_LONGS = (-(1 << 63), (1 << 63) - 1)
_EXACT_DIGITS = 15  # a double stores so many digits exactly
WAIT_SECONDS = 5  # for a lock


class Sqlite(Dialect):
    name = "SqliteDatabaseDialect"
    quotes = ("`", "`")
    is_strict = False
    ids_may_come_late = False  # transactions that write run one after the other
    sql_types = {
        "int8": "INTEGER", "int16": "INTEGER", "int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL", "boolean": "INTEGER",
        "string": "TEXT", "bytes": "BLOB", base.DECIMAL: "NUMERIC", base.DATE: "NUMERIC", base.TIME: "NUMERIC", base.TIMESTAMP: "NUMERIC",
    }  # fmt: skip

    # --- Connections and errors ---------------------------------------------------------------------------------------
    def connect(self):
        path, given = self.location.database, self.location.properties
        wait = int(given.get("busy_timeout", WAIT_SECONDS * 1000)) / 1000
        connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False, uri=path.startswith("file:"))
        for name in ("foreign_keys", "journal_mode", "synchronous"):
            if given.get(name, "").isalnum():
                connection.execute(f"PRAGMA {name} = {given[name]}")
        return connection

    @property
    def error(self):
        return sqlite3.Error

    def interrupt(self, connection):
        connection.interrupt()

    def blame(self, error):
        said = str(error).lower()
        if isinstance(error, sqlite3.OperationalError) and any(word in said for word in _LOCKED):
            return PASSING
        return RECORD if isinstance(error, _RECORD) or "string or blob too big" in said else OTHER

    # --- Reading ---------------------------------------------------------------------------------------------------------
    def tables(self, connection, types, catalog, schema):
        if not (like(catalog, None) or catalog == "") or schema:
            return []
        kinds = {"TABLE": "table", "VIEW": "view"}
        wanted = [kinds[each.upper()] for each in types if each.upper() in kinds]
        found = connection.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name").fetchall()
        return [Table(name) for name, kind in found if kind in wanted]

    def describe(self, connection, sql):
        """Read the declared types from a view of the query. A view does not report NOT NULL, so all columns are nullable."""
        connection.execute("DROP VIEW IF EXISTS temp.connect_described")
        connection.execute(f"CREATE TEMP VIEW connect_described AS {sql}")
        try:
            found = connection.execute("PRAGMA temp.table_xinfo(connect_described)").fetchall()
        finally:
            connection.execute("DROP VIEW temp.connect_described")
        return base.check_columns([_column(name, declared) for _, name, declared, *_ in found], "The query")

    def columns(self, connection, table):
        found = connection.execute(f"PRAGMA table_xinfo({self.full(table, always=True)})").fetchall()
        if not found:
            return None
        keys = [name for _, name, _, _, _, place, _ in found if place]
        number = next((name for _, name, declared, _, _, place, _ in found if keys == [name] and declared.upper() == "INTEGER"), None)
        return [
            # A single INTEGER PRIMARY KEY is the rowid and never null; other key columns are nullable unless declared NOT NULL.
            _column(
                name, declared, nullable=not never_null and name != number, is_key=bool(place),
                has_default=default is not None or name == number, counts=name == number,
            )
            for _, name, declared, never_null, default, place, hidden in found
            if hidden != 1
        ]  # fmt: skip

    def read(self, connection, sql, columns, rows):
        cursor = connection.execute(sql)
        try:
            while found := cursor.fetchmany(rows):
                parts = zip(*found)
                yield len(found), [_values(column, list(part), self.zone) for column, part in zip(columns, parts)]
        finally:
            cursor.close()

    def end_read(self, connection):
        """There is no transaction: a single query sees one snapshot."""

    def now(self, connection):
        return connection.execute("SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000").fetchone()[0]

    def moment(self, column):
        name = self.quoted(column.name)
        of_text = f"CAST(strftime('%s', {name}) AS INTEGER) * 1000 + CAST(substr(strftime('%f', {name}), 4, 3) AS INTEGER)"
        return f"(CASE typeof({name}) WHEN 'text' THEN {of_text} ELSE CAST({name} AS INTEGER) END)"

    def literal(self, micros, column):
        if self.zone == "UTC":
            return str(micros // 1000)
        wall = arrow.zone_micros(micros, self.zone)
        return f"(CASE typeof({self.quoted(column.name)}) WHEN 'text' THEN {wall // 1000} ELSE {micros // 1000} END)"

    # --- Writing ---------------------------------------------------------------------------------------------------------
    def begin(self, connection):
        connection.execute("BEGIN IMMEDIATE")

    def run(self, connection, sql, texts=()):
        return connection.execute(sql.replace("{}", "?"), texts).rowcount

    def rows(self, connection, sql, texts):
        return connection.execute(sql.replace("{}", "?"), texts).fetchall()

    def prepared(self, schema, array, target, as_timestamp=None):
        if as_timestamp:
            return arrow.floor(array, 1000)
        if schema.name == base.DECIMAL:
            texts = arrow.decimal_texts(array)
            return (
                texts if target is None or "TEXT" in target.type_name.upper() or "CHAR" in target.type_name.upper() else _kept_exactly(texts, target)
            )
        if schema.type in ("struct", "map", "array"):
            raise DataError(f"SQLite has no column type for a {schema.type}: flatten it, or leave '{target.name}' out by 'fields.whitelist'.")
        if schema.type == "boolean":
            return array.cast(pa.int8())
        return array

    def insert(self, connection, table, names, arrays):
        self._many(connection, f"INSERT INTO {self._into(table, names)}", arrays)

    def upsert(self, connection, table, names, keys, arrays):
        rest = [name for name in names if name not in keys]
        sets = ", ".join(f"{self.quoted(name)} = excluded.{self.quoted(name)}" for name in rest)
        action = f"DO UPDATE SET {sets}" if rest else "DO NOTHING"
        self._many(connection, f"INSERT INTO {self._into(table, names)} ON CONFLICT ({', '.join(map(self.quoted, keys))}) {action}", arrays)

    def update(self, connection, table, names, keys, arrays):
        rest = [name for name in names if name not in keys]
        if rest:
            sets = ", ".join(f"{self.quoted(name)} = ?" for name in rest)
            order = [names.index(name) for name in (*rest, *keys)]
            self._many(connection, f"UPDATE {self.full(table)} SET {sets} WHERE {self._same(keys)}", [arrays[at] for at in order])

    def delete(self, connection, table, keys, arrays):
        self._many(connection, f"DELETE FROM {self.full(table)} WHERE {self._same(keys)}", arrays)

    def add(self, connection, table, columns):
        for each in columns:
            self.execute(connection, f"ALTER TABLE {self.full(table)} ADD {self._definition(*each)}")

    def default_literal(self, value, schema):
        return str(int(value)) if isinstance(value, bool) else super().default_literal(value, schema)

    def _into(self, table, names):
        return f"{self.full(table)} ({', '.join(map(self.quoted, names))}) VALUES ({', '.join('?' * len(names))})"

    def _same(self, keys):
        return " AND ".join(f"{self.quoted(key)} = ?" for key in keys)

    @staticmethod
    def _many(connection, sql, arrays):
        connection.executemany(sql, zip(*[array.to_pylist() for array in arrays]))


def _column(name, declared, nullable=True, **rest):
    said = (declared or "").upper()
    kind = next((kind for word, kind in _KINDS if word in said), c.STRING)
    sizes = _SIZES.search(said)
    precision, scale = (int(sizes[1]), int(sizes[2] or 0)) if sizes and kind == c.DECIMAL else (None, None)
    return c.Column(name, kind, nullable=nullable, type_name=declared or "", precision=precision, scale=scale, **rest)


def _values(column, values, zone):
    kind = column.kind
    try:
        if kind in c.INTEGERS:
            return pa.array(values, pa.int64())
        if kind in (c.DATE, c.TIME, c.TIMESTAMP):
            return _moments(kind, values, zone)
        if kind == c.BOOLEAN:
            return pa.array([None if value is None else _boolean(value) for value in values], pa.bool_())
        if kind in (c.DECIMAL, c.STRING):
            values = [None if value is None else _text(value) for value in values]
        elif kind == c.BYTES:
            values = [value.encode() if isinstance(value, str) else value for value in values]
        elif kind == c.FLOAT64:
            values = [float(value) if isinstance(value, int) else value for value in values]
        return pa.array(values, _ARROW[kind])
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise ConnectError(
            f"Column '{column.name}', declared {column.type_name or 'without a type'}, contains a value of another type: {error}. Correct it, or "
            "select it in `query` with CAST."
        ) from error


def _boolean(value):
    if isinstance(value, str):
        return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}[value.lower()]
    return bool(value)


def _text(value):
    return value if isinstance(value, str) else value.decode() if isinstance(value, bytes) else repr(value)


def _moments(kind, values, zone):
    """Convert stored milliseconds and strings to the units in column.py."""
    is_text = pa.array([isinstance(value, str) for value in values], pa.bool_())
    micros = pa.array([None if value is None else _micros(value) for value in values], pa.int64())
    if zone != "UTC" and kind == c.TIMESTAMP and any(is_text.to_pylist()):
        micros = pa.compute.if_else(is_text, arrow.to_instant(micros, zone), micros)
    return arrow.floor(micros, arrow.DAY_MS * 1000) if kind == c.DATE else micros


def _micros(value):
    if isinstance(value, float):  # a Julian day
        return round((value - 2440587.5) * arrow.DAY_MS) * 1000
    if isinstance(value, int):
        return value * 1000
    text = value.strip().replace("T", " ").removesuffix("Z")
    if len(text) >= 8 and text[2:3] == ":":
        text = f"1970-01-01 {text}"
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return arrow.micros_of(moment)


def _kept_exactly(texts, target):
    """Raise DataError for decimals that a numeric column would silently round: it stores 64-bit integers and 15 digits."""
    for text in texts.to_pylist():
        if text is None:
            continue
        number = decimal.Decimal(text)
        if number == number.to_integral_value() and _LONGS[0] <= number <= _LONGS[1]:
            continue
        if len(number.as_tuple().digits) > _EXACT_DIGITS and decimal.Decimal(repr(float(text))) != number:
            raise DataError(f"SQLite would round {text} in column '{target.name}' to {_EXACT_DIGITS} digits. Declare the column TEXT.")
    return texts
