"""All other databases with an SQLAlchemy dialect: SQL Server, Oracle, DB2 …. SQLAlchemy and the database's driver must be installed.

    jdbc:sqlserver://host:1433;databaseName=shop      jdbc:oracle:thin:@//host:1521/service      as in Java configurations
    mssql+pyodbc://user:password@host/shop?driver=…   postgresql+psycopg://host/shop             SQLAlchemy's URLs

Connections are SQLAlchemy's. It reflects tables and columns and generates the SQL that differs between databases. Values are written row by row with
executemany: the databases with their own dialect file are several times faster.
"""

import datetime
import decimal
import json
import re

import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import arrow
from connectors.jdbc import column as c
from connectors.jdbc.dialects import base
from connectors.jdbc.dialects.base import OTHER, PASSING, RECORD, Dialect
from connectors.jdbc.table import Table, like
from connectors.jdbc.url import SQLALCHEMY
from standalone import ConnectError, DataError

_DRIVERS = {"sqlserver": ("mssql+pymssql", 1433), "oracle": ("oracle+oracledb", 1521)}  # for jdbc: URLs
KINDS = (SQLALCHEMY, *_DRIVERS)
_ISOLATIONS = ("READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE")
_WITHOUT_SAVEPOINTS = ("duckdb",)
_KEY_LENGTH = 255
_MOST_DIGITS = 38
_ARROW = {
    c.BOOLEAN: pa.bool_(), c.INT16: pa.int16(), c.INT32: pa.int32(), c.INT64: pa.int64(), c.FLOAT32: pa.float32(), c.FLOAT64: pa.float64(),
    c.STRING: pa.string(), c.BYTES: pa.binary(), c.DECIMAL: pa.string(), c.DATE: pa.int64(), c.TIME: pa.int64(), c.TIMESTAMP: pa.int64(),
}  # fmt: skip


class Generic(Dialect):
    name = "GenericDatabaseDialect"

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._made = None
        self._reflected = {}  # Table -> SQLAlchemy's

    # --- Connections and errors ---------------------------------------------------------------------------------------
    @property
    def _engine(self):
        if self._made is None:
            import sqlalchemy as sa

            try:
                self._made = sa.create_engine(engine_url(self.location), poolclass=sa.NullPool, hide_parameters=True)
            except (ImportError, sa.exc.NoSuchModuleError, sa.exc.ArgumentError) as error:
                raise ConnectError(
                    f"SQLAlchemy cannot connect to {self.location.shown} ({self.location.masked(str(error))}): install the database's "
                    "driver and, if it is a separate package, SQLAlchemy's dialect."
                ) from error
        return self._made

    def connect(self):
        connection = self._engine.connect()
        if self._isolation in _ISOLATIONS:
            connection = connection.execution_options(isolation_level=self._isolation.replace("_", " "))
        return connection

    @property
    def error(self):
        import sqlalchemy as sa

        return sa.exc.SQLAlchemyError

    def blame(self, error):
        import sqlalchemy as sa

        if getattr(error, "connection_invalidated", False) or isinstance(error, (sa.exc.OperationalError, sa.exc.InterfaceError)):
            return PASSING
        return RECORD if isinstance(error, (sa.exc.IntegrityError, sa.exc.DataError, sa.exc.StatementError)) and not _is_sql(error) else OTHER

    def said(self, error, trimmed=False):
        """Return the driver's message: SQLAlchemy's contains the statement."""
        return super().said(getattr(error, "orig", None) or error, trimmed)

    # --- Names -----------------------------------------------------------------------------------------------------------
    def quoted(self, name):
        """Quote only names that need it: in some of these databases unquoted names are upper case."""
        return self._engine.dialect.identifier_preparer.quote(name) if self._quotes_all else name

    # --- Reading ---------------------------------------------------------------------------------------------------------
    def tables(self, connection, types, catalog, schema):
        import sqlalchemy as sa

        inspector, wanted = sa.inspect(connection), {each.upper() for each in types}
        schemas = [None] if schema is None else [each for each in inspector.get_schema_names() if like(schema, each)]
        found = []
        for each in schemas:
            found += [Table(name, each) for name in inspector.get_table_names(each)] if "TABLE" in wanted else []
            found += [Table(name, each) for name in inspector.get_view_names(each)] if "VIEW" in wanted else []
        return found

    def describe(self, connection, sql):
        raise ConnectError(
            f"`query` is not supported for {self.location.shown}: the columns of a query are unknown before it runs. Create a view and read it "
            f"with table.types=VIEW."
        )

    def columns(self, connection, table):
        import sqlalchemy as sa

        inspector = sa.inspect(connection)
        self._reflected.pop(table, None)
        try:
            found = inspector.get_columns(table.name, table.schema)
            keys = inspector.get_pk_constraint(table.name, table.schema)["constrained_columns"]
        except sa.exc.NoSuchTableError:
            return None
        return [self._column(each, each["name"] in keys) for each in found] or None

    def _column(self, told, is_key):
        kind, precision, scale = _kind(told["type"])
        counts = told.get("autoincrement") is True or bool(told.get("identity"))
        return c.Column(
            told["name"], kind, nullable=told["nullable"] and not is_key, type_name=str(told["type"]).lower(), precision=precision, scale=scale,
            is_key=is_key, counts=counts, has_default=counts or told.get("default") is not None or bool(told.get("computed")),
            is_zoned=bool(getattr(told["type"], "timezone", False)),
        )  # fmt: skip

    def read(self, connection, sql, columns, rows):
        result = connection.exec_driver_sql(sql, execution_options={"no_parameters": True, "stream_results": True, "max_row_buffer": rows})
        try:
            while found := result.fetchmany(rows):
                yield len(found), [self._array(column, part) for column, part in zip(columns, zip(*found))]
        finally:
            result.close()

    def _array(self, column, values):
        made = _VALUES.get(column.kind)
        try:
            array = pa.array(values if made is None else [None if value is None else made(value) for value in values], _ARROW[column.kind])
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise ConnectError(f"Column '{column.name}' ({column.type_name}) contains a value of another type: {error}") from error
        if column.kind == c.TIMESTAMP and self.zone != "UTC" and not column.is_zoned:
            return arrow.to_instant(array, self.zone)
        return array

    def now(self, connection):
        import sqlalchemy as sa

        moment = connection.execute(sa.select(sa.func.current_timestamp())).scalar()
        micros = _micros(moment)
        return micros if moment.tzinfo is not None else arrow.to_instant(pa.array([micros]), self.zone)[0].as_py()

    def literal(self, micros, column):
        text = arrow.wall_text(arrow.zone_micros(micros, "UTC" if column.is_zoned else self.zone)) + (" +00:00" if column.is_zoned else "")
        if self._engine.dialect.name == "mssql":
            return f"CAST('{text}' AS {'DATETIMEOFFSET' if column.is_zoned else 'DATETIME2'})"
        zoned = " WITH TIME ZONE" if column.is_zoned and self._engine.dialect.name != "oracle" else ""
        return f"TIMESTAMP{zoned} '{text}'"

    # --- Writing ---------------------------------------------------------------------------------------------------------
    def run(self, connection, sql, texts=()):
        return self._text(connection, sql, texts).rowcount

    def rows(self, connection, sql, texts):
        return self._text(connection, sql, texts).fetchall()

    def execute(self, connection, sql):
        result = connection.exec_driver_sql(sql, execution_options={"no_parameters": True})
        return result.fetchall() if result.returns_rows else []

    @staticmethod
    def _text(connection, sql, texts):
        import sqlalchemy as sa

        parts = sql.replace(":", "\\:").split("{}")
        named = "".join(f"{part}:text_{at}" for at, part in enumerate(parts[:-1])) + parts[-1]
        return connection.execute(sa.text(named), {f"text_{at}": text for at, text in enumerate(texts)})

    def plain_type(self, kind):
        return re.sub(r"\s*\(.*\)", "", kind.lower())

    def sql_type(self, schema, is_key=False, as_timestamp=False):
        made = _TYPES.get(base.TIMESTAMP if as_timestamp else schema.name) or _TYPES.get(schema.type)
        if made is None:
            raise ConnectError(
                f"{self.location.shown} has no column type for a field of type {schema.type}: flatten it, or leave it out by 'fields.whitelist'."
            )
        return made(schema, is_key).compile(dialect=self._engine.dialect)

    def prepared(self, schema, array, target, as_timestamp=None):
        if as_timestamp or schema.name == base.TIMESTAMP:
            micros = array if as_timestamp else pc.multiply_checked(array, 1000)
            if target.is_zoned:
                return micros.cast(pa.timestamp("us", "UTC"))
            wall = arrow.to_wall(micros, self.zone).cast(pa.timestamp("us"))
            return wall.cast(pa.date32()) if target.kind == c.DATE else wall
        if schema.name == base.DECIMAL:
            return arrow.decimal_texts(array)
        if schema.name == base.DATE:
            days = array.cast(pa.timestamp("ms"))
            return days.cast(pa.timestamp("us")) if target.kind == c.TIMESTAMP else days.cast(pa.date32())
        if schema.name == base.TIME:
            return array.cast(pa.int32()).cast(pa.time32("ms"))
        if schema.type in ("struct", "map", "array"):
            raise DataError(f"There is no column type for a {schema.type}: flatten it, or leave '{target.name}' out by 'fields.whitelist'.")
        return array

    def insert(self, connection, table, names, arrays):
        import sqlalchemy as sa

        made = self._table(connection, table)
        connection.execute(sa.insert(made), _rows(made, names, arrays))

    def upsert(self, connection, table, names, keys, arrays):
        """Update the existing rows, then insert the others."""
        import sqlalchemy as sa

        self.update(connection, table, names, keys, arrays)
        made, other = self._table(connection, table), self._table(connection, table).alias("other")
        same = sa.exists().where(*[other.c[name] == _bound(made, name) for name in keys])
        values = sa.select(*[_bound(made, name).label(name) for name in names]).where(~same)
        rows = [{f"v_{name}": value for name, value in row.items()} for row in _rows(made, names, arrays)]
        connection.execute(sa.insert(made).from_select(names, values), rows)

    def update(self, connection, table, names, keys, arrays):
        import sqlalchemy as sa

        rest = [name for name in names if name not in keys]
        if rest:
            made = self._table(connection, table)
            changed = sa.update(made).where(*[made.c[name] == _bound(made, name) for name in keys])
            rows = [{f"v_{name}": value for name, value in row.items()} for row in _rows(made, names, arrays)]
            connection.execute(changed.values({name: _bound(made, name) for name in rest}), rows)

    def delete(self, connection, table, keys, arrays):
        import sqlalchemy as sa

        made = self._table(connection, table)
        rows = [{f"v_{name}": value for name, value in row.items()} for row in _rows(made, keys, arrays)]
        connection.execute(sa.delete(made).where(*[made.c[name] == _bound(made, name) for name in keys]), rows)

    def add(self, connection, table, columns):
        for each in columns:
            self.execute(connection, f"ALTER TABLE {self.full(table)} ADD {self._definition(*each)}")

    def _definition(self, name, kind, nullable, default=None):
        return super()._definition(name, kind, nullable, default).removesuffix(" NULL") + ("" if nullable else " NULL")

    def default_literal(self, value, schema):
        return None if isinstance(value, bool) else super().default_literal(value, schema)  # not all databases have TRUE

    def savepoint(self, connection, name):
        if self._engine.dialect.name not in _WITHOUT_SAVEPOINTS:
            self._engine.dialect.do_savepoint(connection, name)

    def back_to(self, connection, name):
        if self._engine.dialect.name in _WITHOUT_SAVEPOINTS:
            raise ConnectError(f"{self.location.shown} rejected a row. It has no savepoints, so nothing of the put is written.")
        self._engine.dialect.do_rollback_to_savepoint(connection, name)

    def release(self, connection, name):
        if self._engine.dialect.name not in _WITHOUT_SAVEPOINTS:
            self._engine.dialect.do_release_savepoint(connection, name)

    def _table(self, connection, table):
        import sqlalchemy as sa

        made = self._reflected.get(table)
        if made is None:
            made = self._reflected[table] = sa.Table(table.name, sa.MetaData(), schema=table.schema, autoload_with=connection, resolve_fks=False)
        return made


def engine_url(location):
    """Return SQLAlchemy's URL for a Location, with the `connection.` keys as query parameters."""
    import sqlalchemy as sa

    given = dict(location.properties)
    text = given.pop("url")
    if text.startswith("jdbc:"):
        made, more = _of_jdbc(location.kind, text)
        given = {**more, **given}
    else:
        made = sa.make_url(text)
    user, password = given.pop("user", None), given.pop("password", None)
    if location.user or user:
        made = made.set(username=location.user or user)
    if location.password or password:
        made = made.set(password=location.password or password)
    return made.update_query_dict(given)


def _of_jdbc(kind, text):
    """Return (SQLAlchemy's URL, properties) for a jdbc: URL."""
    import sqlalchemy as sa

    driver, port = _DRIVERS[kind]
    place, *parts = text.split(":", 2)[2].split(";") if kind == "sqlserver" else [text.split("@", 1)[-1]]
    told = dict(part.split("=", 1) for part in parts if "=" in part)
    found = re.fullmatch(r"(?://)?(\[[^\]]+\]|[^:/\\]+)(?::(\d+))?(?:[:/](.+))?", place)
    if found is None:
        raise ConnectError(f"connection.url must have the form jdbc:{kind}:…host:port…; otherwise use SQLAlchemy's form {driver}://host/database.")
    host, at, name = found[1].strip("[]"), int(found[2] or port), found[3]
    if kind == "oracle":
        return sa.URL.create(driver, host=host, port=at), {"service_name": name} if name else {}
    database = told.pop("databaseName", told.pop("database", None))
    return sa.URL.create(driver, host=host, port=at, database=database), {name: told[name] for name in ("user", "password") if name in told}


def _is_sql(error):
    """Return whether the database rejected the statement, not its values."""
    import sqlalchemy as sa

    return isinstance(error, (sa.exc.ProgrammingError, sa.exc.InternalError, sa.exc.NotSupportedError))


def _bound(made, name):
    """Return a bind parameter with the type of its column."""
    import sqlalchemy as sa

    return sa.bindparam(f"v_{name}", type_=made.c[name].type)


def _rows(made, names, arrays):
    """Return [{name: value}] for the driver."""
    import sqlalchemy as sa

    parts = []
    for name, array in zip(names, arrays):
        values = array.to_pylist()
        if pa.types.is_string(array.type) and isinstance(made.c[name].type, sa.Numeric):
            values = [None if value is None else decimal.Decimal(value) for value in values]
        parts.append(values)
    return [dict(zip(names, row)) for row in zip(*parts)]


# --- Types ---------------------------------------------------------------------------------------------------------------


def _kind(kind):
    """Return (kind, precision, scale) of an SQLAlchemy type."""
    import sqlalchemy as sa

    for types, found in (
        (sa.Boolean, c.BOOLEAN), ((sa.SmallInteger,), c.INT16), (sa.BigInteger, c.INT64), (sa.Integer, c.INT32), (sa.REAL, c.FLOAT32),
        (sa.Float, c.FLOAT64), (sa.Date, c.DATE), (sa.Time, c.TIME), (sa.DateTime, c.TIMESTAMP), (sa.LargeBinary, c.BYTES),
        ((sa.BINARY, sa.VARBINARY), c.BYTES),
    ):  # fmt: skip
        if isinstance(kind, types):
            small = found == c.INT32 and type(kind).__name__ == "TINYINT"
            return (c.INT16 if small else found), None, None
    if isinstance(kind, sa.Numeric):
        return c.DECIMAL, kind.precision, kind.scale if kind.scale is not None or kind.precision is None else 0
    return c.STRING, None, None


def _date_time(schema, is_key):
    """A type with microseconds, which DateTime lacks in some databases."""
    import sqlalchemy as sa
    from sqlalchemy.dialects import mssql, mysql, oracle

    kind = sa.DateTime().with_variant(mssql.DATETIME2(), "mssql").with_variant(oracle.TIMESTAMP(), "oracle")
    return kind.with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def _type(name, *arguments):
    import sqlalchemy as sa

    return getattr(sa, name)(*arguments)


_TYPES = {  # Connect's type -> a function that returns SQLAlchemy's type
    "int8": lambda schema, is_key: _type("SmallInteger"),
    "int16": lambda schema, is_key: _type("SmallInteger"),
    "int32": lambda schema, is_key: _type("Integer"),
    "int64": lambda schema, is_key: _type("BigInteger"),
    "float32": lambda schema, is_key: _type("REAL"),
    "float64": lambda schema, is_key: _type("Double"),
    "boolean": lambda schema, is_key: _type("Boolean"),
    "string": lambda schema, is_key: _type("String", _KEY_LENGTH) if is_key else _type("Text"),
    "bytes": lambda schema, is_key: _type("LargeBinary"),
    base.DECIMAL: lambda schema, is_key: _type("Numeric", _MOST_DIGITS, int((schema.parameters or {}).get("scale", 0))),
    base.DATE: lambda schema, is_key: _type("Date"),
    base.TIME: lambda schema, is_key: _type("Time"),
    base.TIMESTAMP: _date_time,
}


# --- Values from drivers ----------------------------------------------------------------------------------------------------


def _micros(value):
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return arrow.micros_of(value)


def _days(value):
    return (value.date() if isinstance(value, datetime.datetime) else value).toordinal() - datetime.date(1970, 1, 1).toordinal()


def _micros_of_day(value):
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _plain_decimal(value):
    return format(value if isinstance(value, decimal.Decimal) else decimal.Decimal(str(value)), "f")


def _string(value):
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, (dict, list)) else str(value)


_VALUES = {
    c.BOOLEAN: bool, c.INT16: int, c.INT32: int, c.INT64: int, c.FLOAT32: float, c.FLOAT64: float, c.BYTES: bytes, c.STRING: _string,
    c.DECIMAL: _plain_decimal, c.DATE: _days, c.TIME: _micros_of_day, c.TIMESTAMP: _micros,
}  # fmt: skip
