"""What a dialect must know of its database; each has its own file.

A connection is the driver's own (DB-API), in a transaction that the caller ends. Values are never put into SQL but whole numbers and points
in time, by `literal`: all else goes through the driver.
"""

import logging

from connectors.jdbc import column as c
from connectors.jdbc.arrow import micros_of, wall_text, zone_micros  # noqa: F401
from connectors.jdbc.table import Table, split
from standalone import ConnectError

log = logging.getLogger(__name__)

# What to do about an error of a database.
PASSING = "passing"  # a lost connection, a deadlock, a lock that is held: again, soon
RECORD = "record"  # the values of a row
OTHER = "other"

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"


class Dialect:
    name = None  # by which dialect.name knows it
    quotes = ('"', '"')
    sql_types = {}  # Connect's type -> the column type that auto.create gives it
    key_types = {}  # the same where it is part of a primary key
    widenings = ()  # (from, to): column types of which the second holds every value of the first
    is_strict = True  # whether a column holds values of its type alone
    reads_ahead = False  # whether another thread may read a query's rows while nobody else uses the connection
    ids_may_come_late = True  # whether an id that was given first may be seen later than one that was given after it

    def __init__(self, location, *, quote="ALWAYS", zone="UTC", isolation="DEFAULT"):
        self.location = location
        self.zone = zone
        self._quotes_all = quote.upper() != "NEVER"
        self._isolation = isolation.upper()

    # --- Connections and errors ---------------------------------------------------------------------------------------
    def connect(self):
        """A new connection, in no transaction yet."""
        raise NotImplementedError

    @property
    def error(self):
        """The base class of the driver's errors."""
        raise NotImplementedError

    def blame(self, error):
        """PASSING, RECORD or OTHER."""
        raise NotImplementedError

    def said(self, error, trimmed=False):
        """What the database said, without any secret; `trimmed` to its code, for there may be values and SQL in it."""
        if trimmed:
            code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None) or next(iter(error.args), "")
            return f"{type(error).__name__} {code if isinstance(code, int) or str(code).isidentifier() or str(code).isalnum() else ''}".strip()
        return self.location.masked(" ".join(str(error).split()))

    def interrupt(self, connection):
        """From another thread: end what it waits for, where the driver can."""

    # --- Names -----------------------------------------------------------------------------------------------------------
    def quoted(self, name):
        if not self._quotes_all:
            return name
        opening, closing = self.quotes
        return f"{opening}{name.replace(closing, closing * 2)}{closing}"

    def full(self, table, always=False):
        """A table's name in SQL; with `always` quoted whatever quote.sql.identifiers says."""
        opening, closing = self.quotes
        if always:
            return ".".join(f"{opening}{part.replace(closing, closing * 2)}{closing}" for part in table.parts)
        return ".".join(map(self.quoted, table.parts))

    def table(self, name):
        """The Table of a name in a configuration."""
        parts = split(name, [self.quotes, ('"', '"')])
        return Table(*reversed(parts[-3:]))

    # --- Reading ---------------------------------------------------------------------------------------------------------
    def tables(self, connection, types, catalog, schema):
        """The Tables of these types (TABLE, VIEW …) that fit the patterns."""
        raise NotImplementedError

    def describe(self, connection, sql):
        """The Columns of what a query gives."""
        raise NotImplementedError

    def columns(self, connection, table):
        """The Columns of a table, None where there is no such table."""
        raise NotImplementedError

    def chosen(self, columns):
        """What is between SELECT and FROM, so that values come exactly."""
        return "*"

    def read(self, connection, sql, columns, rows):
        """What a query gives, as it comes: for each `rows` rows at most (their number, an Arrow array a column)."""
        raise NotImplementedError

    def begin_read(self, connection):
        """Said before a query: the isolation that transaction.isolation.mode asks for."""

    def end_read(self, connection):
        """Said after it."""
        connection.rollback()

    def now(self, connection):
        """The database's clock, as microseconds since the epoch."""
        raise NotImplementedError

    def horizon(self, connection):
        """Up to when (microseconds) everything that was written with the database's own clock can be seen; None where it does not say."""
        return None

    def transactions_before(self, connection):
        """(where the count of transactions stands, the oldest that still runs), whole numbers; None where it does not say."""
        return None

    def moment(self, column):
        """A timestamp column in a condition."""
        return self.quoted(column.name)

    def literal(self, micros, column):
        """A point in time as a value to compare that column with."""
        return f"TIMESTAMP '{wall_text(zone_micros(micros, self.zone))}'"

    # --- Writing ---------------------------------------------------------------------------------------------------------
    def begin(self, connection):
        """Said before what is written."""

    def run(self, connection, sql, texts=()):
        """A statement in which {} stands for each text; how many rows it changed."""
        cursor = connection.cursor()
        try:
            cursor.execute(sql.replace("%", "%%").replace("{}", "%s") if texts else sql, list(texts) or None)
            return cursor.rowcount
        finally:
            cursor.close()

    def rows(self, connection, sql, texts):
        """What such a query gives."""
        cursor = connection.cursor()
        try:
            cursor.execute(sql.replace("%", "%%").replace("{}", "%s"), list(texts))
            return cursor.fetchall()
        finally:
            cursor.close()

    def plain_type(self, kind):
        """A column type's name as `columns` has it."""
        return kind.lower()

    def sql_type(self, schema, is_key=False, as_timestamp=False):
        """The column type for values of that schema; raises ConnectError where there is none."""
        if as_timestamp:
            return self.sql_types[TIMESTAMP]
        for name in (schema.name, schema.type):
            if is_key and name in self.key_types:
                return self.key_types[name]
            if name in self.sql_types:
                found = self.sql_types[name]
                return found(schema) if callable(found) else found
        raise ConnectError(
            f"{self.name} has no column type for a field of type {schema.name or schema.type}: flatten it, or leave it out by 'fields.whitelist'."
        )

    def prepared(self, schema, array, target, as_timestamp=None):
        """Values of a record's field (an Arrow array) as `write` takes them for that column."""
        raise NotImplementedError

    def insert(self, connection, table, names, arrays):
        raise NotImplementedError

    def upsert(self, connection, table, names, keys, arrays):
        """No key comes twice."""
        raise NotImplementedError

    def update(self, connection, table, names, keys, arrays):
        raise NotImplementedError

    def delete(self, connection, table, keys, arrays):
        raise NotImplementedError

    def execute(self, connection, sql):
        """A statement; what it gives, as a list of rows."""
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
        finally:
            cursor.close()

    def create(self, connection, table, columns, keys):
        """[(name, column type, nullable, default)] as a new table."""
        lines = [self._definition(*each) for each in columns]
        if keys:
            lines.append(f"PRIMARY KEY({', '.join(map(self.quoted, keys))})")
        self.execute(connection, f"CREATE TABLE {self.full(table)} ({', '.join(lines)})")

    def add(self, connection, table, columns):
        parts = ", ".join(f"ADD {self._definition(*each)}" for each in columns)
        self.execute(connection, f"ALTER TABLE {self.full(table)} {parts}")

    def widen(self, connection, table, name, kind):
        """Give a column a type that holds all that it held before."""
        self.execute(connection, f"ALTER TABLE {self.full(table)} ALTER COLUMN {self.quoted(name)} TYPE {kind}")

    def _definition(self, name, kind, nullable, default=None):
        given = f" DEFAULT {default}" if default is not None else ""
        return f"{self.quoted(name)} {kind}{given}{' NULL' if nullable else ' NOT NULL'}"

    def default_literal(self, value, schema):
        """A field's default in DDL; None where it is not said there."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, (int, float)) and schema.name is None:
            return repr(value) if value == value and abs(value) != float("inf") else None
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return None

    def savepoint(self, connection, name):
        self.execute(connection, f"SAVEPOINT {name}")

    def back_to(self, connection, name):
        self.execute(connection, f"ROLLBACK TO SAVEPOINT {name}")

    def release(self, connection, name):
        self.execute(connection, f"RELEASE SAVEPOINT {name}")


def check_columns(columns, where):
    """Two columns of one name cannot be fields of one struct."""
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConnectError(f"{where} gives more than one column '{twice[0]}': name them with AS.")
    return columns


def of_kind(kind, name, **rest):
    return c.Column(name, kind, **rest)
