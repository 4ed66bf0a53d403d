"""The base class of dialects. Each database has its own file.

Connections are the driver's (DB-API), and the caller ends their transactions. Only integers and timestamps (see `literal`) are ever put into SQL;
all other values are passed to the driver.
"""

import logging

from connectors.jdbc import column as c
from connectors.jdbc.arrow import micros_of, wall_text, zone_micros  # noqa: F401
from connectors.jdbc.table import Table, split
from standalone import ConnectError

log = logging.getLogger(__name__)

# Kinds of database errors, by how they are handled
PASSING = "passing"  # a lost connection, a deadlock, a lock timeout: retried
RECORD = "record"  # the values of a row are invalid
OTHER = "other"

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"


class Dialect:
    name = None  # the value of dialect.name
    quotes = ('"', '"')
    sql_types = {}  # Connect's type -> the column type for auto.create
    key_types = {}  # the same for columns of a primary key
    widenings = ()  # (from, to): column types, where the second one holds every value of the first
    is_strict = True  # whether a column holds only values of its type
    reads_ahead = False  # whether another thread may read the rows of a query
    ids_may_come_late = True  # whether a lower id may become visible after a higher one

    def __init__(self, location, *, quote="ALWAYS", zone="UTC", isolation="DEFAULT"):
        self.location = location
        self.zone = zone
        self._quotes_all = quote.upper() != "NEVER"
        self._isolation = isolation.upper()

    # --- Connections and errors ---------------------------------------------------------------------------------------
    def connect(self):
        """Return a new connection without a transaction."""
        raise NotImplementedError

    @property
    def error(self):
        """The base class of the driver's errors."""
        raise NotImplementedError

    def blame(self, error):
        """Return PASSING, RECORD or OTHER."""
        raise NotImplementedError

    def said(self, error, trimmed=False):
        """Return the error message without secrets; if `trimmed`, only its code, since messages may contain values and SQL."""
        if trimmed:
            code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None) or next(iter(error.args), "")
            return f"{type(error).__name__} {code if isinstance(code, int) or str(code).isidentifier() or str(code).isalnum() else ''}".strip()
        return self.location.masked(" ".join(str(error).split()))

    def interrupt(self, connection):
        """From another thread: cancel what the connection waits for, if the driver can."""

    # --- Names -----------------------------------------------------------------------------------------------------------
    def quoted(self, name):
        if not self._quotes_all:
            return name
        opening, closing = self.quotes
        return f"{opening}{name.replace(closing, closing * 2)}{closing}"

    def full(self, table, always=False):
        """Return a table's name in SQL; `always` quotes it regardless of quote.sql.identifiers."""
        opening, closing = self.quotes
        if always:
            return ".".join(f"{opening}{part.replace(closing, closing * 2)}{closing}" for part in table.parts)
        return ".".join(map(self.quoted, table.parts))

    def table(self, name):
        """Return the Table for a name in a configuration."""
        parts = split(name, [self.quotes, ('"', '"')])
        return Table(*reversed(parts[-3:]))

    # --- Reading ---------------------------------------------------------------------------------------------------------
    def tables(self, connection, types, catalog, schema):
        """Return the Tables of these types (TABLE, VIEW …) that match the patterns."""
        raise NotImplementedError

    def describe(self, connection, sql):
        """Return the Columns of a query's result."""
        raise NotImplementedError

    def columns(self, connection, table):
        """Return the Columns of a table, or None if it does not exist."""
        raise NotImplementedError

    def chosen(self, columns):
        """Return the SELECT list that gives exact values."""
        return "*"

    def read(self, connection, sql, columns, rows):
        """Yield (number of rows, an Arrow array for each column) for batches of at most `rows` rows, while the query runs."""
        raise NotImplementedError

    def begin_read(self, connection):
        """Called before a query: set transaction.isolation.mode."""

    def end_read(self, connection):
        """Called after a query."""
        connection.rollback()

    def now(self, connection):
        """Return the database's time in microseconds since the epoch."""
        raise NotImplementedError

    def horizon(self, connection):
        """Return the time in microseconds before which no open transaction can still add rows; None if the database does not report it."""
        return None

    def transactions_before(self, connection):
        """Return (next transaction id, oldest open transaction id), or None if the database does not report them."""
        return None

    def moment(self, column):
        """Return SQL for a timestamp column in a condition."""
        return self.quoted(column.name)

    def literal(self, micros, column):
        """Return SQL for a timestamp that is compared with the column."""
        return f"TIMESTAMP '{wall_text(zone_micros(micros, self.zone))}'"

    # --- Writing ---------------------------------------------------------------------------------------------------------
    def begin(self, connection):
        """Called before rows are written."""

    def run(self, connection, sql, texts=()):
        """Run a statement with {} for each text; return how many rows it changed."""
        cursor = connection.cursor()
        try:
            cursor.execute(sql.replace("%", "%%").replace("{}", "%s") if texts else sql, list(texts) or None)
            return cursor.rowcount
        finally:
            cursor.close()

    def rows(self, connection, sql, texts):
        """Run a query with {} for each text; return its rows."""
        cursor = connection.cursor()
        try:
            cursor.execute(sql.replace("%", "%%").replace("{}", "%s"), list(texts))
            return cursor.fetchall()
        finally:
            cursor.close()

    def plain_type(self, kind):
        """Return the name of a column type as in `columns`."""
        return kind.lower()

    def sql_type(self, schema, is_key=False, as_timestamp=False):
        """Return the column type for a schema. Raises ConnectError if there is none."""
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
        """Convert a field's values (an Arrow array) to what `insert` and the other writing methods take for that column."""
        raise NotImplementedError

    def insert(self, connection, table, names, arrays):
        raise NotImplementedError

    def upsert(self, connection, table, names, keys, arrays):
        """Keys are unique in `arrays`."""
        raise NotImplementedError

    def update(self, connection, table, names, keys, arrays):
        raise NotImplementedError

    def delete(self, connection, table, keys, arrays):
        raise NotImplementedError

    def execute(self, connection, sql):
        """Run a statement; return its rows as a list."""
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
        finally:
            cursor.close()

    def create(self, connection, table, columns, keys):
        """Create a table with columns [(name, column type, nullable, default)]."""
        lines = [self._definition(*each) for each in columns]
        if keys:
            lines.append(f"PRIMARY KEY({', '.join(map(self.quoted, keys))})")
        self.execute(connection, f"CREATE TABLE {self.full(table)} ({', '.join(lines)})")

    def add(self, connection, table, columns):
        parts = ", ".join(f"ADD {self._definition(*each)}" for each in columns)
        self.execute(connection, f"ALTER TABLE {self.full(table)} {parts}")

    def widen(self, connection, table, name, kind):
        """Change a column to a type that holds all its values."""
        self.execute(connection, f"ALTER TABLE {self.full(table)} ALTER COLUMN {self.quoted(name)} TYPE {kind}")

    def _definition(self, name, kind, nullable, default=None):
        given = f" DEFAULT {default}" if default is not None else ""
        return f"{self.quoted(name)} {kind}{given}{' NULL' if nullable else ' NOT NULL'}"

    def default_literal(self, value, schema):
        """Return a field's default as SQL, or None to leave it out of the DDL."""
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
    """Check that column names are unique: they become fields of one struct."""
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConnectError(f"{where} has more than one column '{twice[0]}': rename them with AS.")
    return columns


def of_kind(kind, name, **rest):
    return c.Column(name, kind, **rest)
