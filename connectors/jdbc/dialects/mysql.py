"""MySQL and MariaDB with PyMySQL. Rows are read as the server's strings (mysql_rows.py) and written with LOAD DATA LOCAL, or with INSERT if that
is not allowed.

LOAD DATA LOCAL turns errors into warnings and continues, so the warnings are checked after each load.
"""

import contextlib
import hashlib
import os

import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import arrow
from connectors.jdbc import column as c
from connectors.jdbc.dialects import base, mysql_rows
from connectors.jdbc.dialects.base import OTHER, PASSING, RECORD, Dialect
from connectors.jdbc.dialects.mysql_values import csv, values
from connectors.jdbc.table import Table, like
from standalone import ConnectError, DataError

_KINDS = {
    "tinyint": c.INT8, "smallint": c.INT16, "mediumint": c.INT32, "int": c.INT32, "integer": c.INT32, "bigint": c.INT64, "float": c.FLOAT32,
    "double": c.FLOAT64, "decimal": c.DECIMAL, "date": c.DATE, "time": c.TIME, "datetime": c.TIMESTAMP, "timestamp": c.TIMESTAMP, "year": c.DATE,
    "binary": c.BYTES, "varbinary": c.BYTES, "tinyblob": c.BYTES, "blob": c.BYTES, "mediumblob": c.BYTES, "longblob": c.BYTES, "bit": c.BYTES,
    "geometry": c.BYTES, "point": c.BYTES, "linestring": c.BYTES, "polygon": c.BYTES, "multipoint": c.BYTES, "multilinestring": c.BYTES,
    "multipolygon": c.BYTES, "geometrycollection": c.BYTES,
}  # fmt: skip
_UNSIGNED = {"tinyint": c.INT16, "smallint": c.INT32, "mediumint": c.INT32, "int": c.INT64}
_CODES = {  # type codes of the protocol -> names
    0: "decimal", 1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 7: "timestamp", 8: "bigint", 9: "mediumint", 10: "date", 11: "time",
    12: "datetime", 13: "year", 14: "date", 15: "varchar", 16: "bit", 245: "json", 246: "decimal", 247: "enum", 248: "set", 249: "tinyblob",
    250: "mediumblob", 251: "longblob", 252: "blob", 253: "varchar", 254: "char", 255: "geometry",
}  # fmt: skip
_BINARY = 63  # the character set `binary`
_NOT_NULL, _UNSIGNED_FLAG = 1, 32
_LOST = {
    1040,
    1053,
    1077,
    1078,
    1079,
    1152,
    1153,
    1158,
    1159,
    1160,
    1161,
    1184,
    1205,
    1213,
    1317,
    1614,
    1927,
    2002,
    2003,
    2006,
    2013,
    2014,
    2055,
    3024,
    4031,
}
_REFUSED = {1048, 1062, 1264, 1265, 1292, 1366, 1367, 1364, 1406, 1416, 1451, 1452, 1525, 1526, 1557, 1586, 1690, 3140, 3819, 4025, 1411}
_NO_LOAD = {1148, 3948, 4166, 2068}
_SYSTEM = ("information_schema", "performance_schema", "mysql", "sys")
_ISOLATIONS = ("READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE")


class MySql(Dialect):
    name = "MySqlDatabaseDialect"
    reads_ahead = True
    quotes = ("`", "`")
    sql_types = {
        "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float32": "FLOAT", "float64": "DOUBLE", "boolean": "TINYINT",
        "string": "TEXT", "bytes": "VARBINARY(1024)", base.DATE: "DATE", base.TIME: "TIME(3)", base.TIMESTAMP: "DATETIME(3)",
        base.DECIMAL: lambda schema: f"DECIMAL(65,{schema.parameters['scale']})",
    }  # fmt: skip
    key_types = {"string": "VARCHAR(256)", "bytes": "VARBINARY(256)"}
    widenings = (
        ("tinyint", "smallint"), ("tinyint", "int"), ("tinyint", "bigint"), ("smallint", "int"), ("smallint", "bigint"), ("int", "bigint"),
        ("float", "double"), ("varchar", "text"),
    )  # fmt: skip

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._loads = True  # until the server rejects it
        self._zero = self.location.properties.get("zeroDateTimeBehavior", "EXCEPTION").upper()
        self._year_is_date = self.location.properties.get("yearIsDateType", "true").lower() != "false"

    # --- Connections and errors ---------------------------------------------------------------------------------------
    def connect(self):
        import pymysql.converters

        at, given = self.location, self.location.properties
        timeout = int(given.get("connectTimeout", 10_000)) / 1000
        problem = None
        for host, port in at.hosts:
            try:
                connection = pymysql.connect(
                    host=host, port=port, user=at.user, password=at.password or "", database=at.database or None, charset="utf8mb4",
                    conv=dict(pymysql.converters.encoders),
                    local_infile=True, connect_timeout=timeout or None, autocommit=False, ssl=_tls(given),
                )  # fmt: skip
                break
            except pymysql.Error as error:
                problem = error
        else:
            raise problem
        strict = "sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')"
        self.execute(connection, f"SET time_zone = '+00:00', {strict}")
        if given.get("sessionVariables"):
            self.execute(connection, f"SET SESSION {given['sessionVariables']}")
        connection.commit()
        return connection

    @property
    def error(self):
        import pymysql

        return pymysql.Error

    def blame(self, error):
        import pymysql

        code = error.args[0] if error.args and isinstance(error.args[0], int) else None
        if code in _LOST or isinstance(error, pymysql.InterfaceError) or code == 0:
            return PASSING
        if code in _REFUSED or isinstance(error, (pymysql.IntegrityError, pymysql.DataError)):
            return RECORD
        return OTHER

    # --- Names -----------------------------------------------------------------------------------------------------------
    def table(self, name):
        found = super().table(name)
        return Table(found.name, catalog=found.catalog or found.schema)

    # --- Reading ---------------------------------------------------------------------------------------------------------
    def tables(self, connection, types, catalog, schema):
        if schema:
            return []
        kinds = {"TABLE": "BASE TABLE", "VIEW": "VIEW"}
        wanted = {kinds[each.upper()] for each in types if each.upper() in kinds}
        found = self.execute(connection, "SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY 1, 2")
        mine = self.location.database.lower()
        return [
            Table(name, catalog=place)
            for place, name, kind in found
            if kind in wanted and place not in _SYSTEM and (like(catalog, place) if catalog is not None else not mine or place.lower() == mine)
        ]

    def describe(self, connection, sql):
        cursor = connection.cursor()
        try:
            cursor.execute(f"SELECT * FROM ({sql}) AS connect_described LIMIT 0")
            fields = cursor._result.fields
        finally:
            cursor.close()
        return base.check_columns([self._of_field(field) for field in fields], "The query")

    def _of_field(self, field):
        name, unsigned = _CODES.get(field.type_code, "varchar"), bool(field.flags & _UNSIGNED_FLAG)
        if name.endswith("blob") and field.charsetnr != _BINARY:
            name = "text"
        elif name in ("char", "varchar") and field.charsetnr == _BINARY:
            name = "varbinary"
        precision = field.length - (1 if field.scale else 0) - (0 if unsigned else 1) if name == "decimal" else field.length
        return self._column(field.name, name, unsigned, not field.flags & _NOT_NULL, precision, field.scale if name == "decimal" else None)

    def columns(self, connection, table):
        place = "DATABASE()" if table.catalog is None else "{}"
        texts = (table.name,) if table.catalog is None else (table.name, table.catalog)
        found = self.rows(
            connection,
            "SELECT column_name, data_type, column_type, is_nullable, column_key, extra, numeric_precision, numeric_scale, column_default "
            f"FROM information_schema.columns WHERE table_name = {{}} AND table_schema = {place} ORDER BY ordinal_position",
            texts,
        )
        if not found:
            return None
        return [
            self._column(
                name, kind.lower(), "unsigned" in full.lower(), nullable == "YES", int(precision or 0), int(scale or 0), is_key=key == "PRI",
                has_default=default is not None or "auto_increment" in extra.lower() or "generated" in extra.lower(),
                counts="auto_increment" in extra.lower(),
            )
            for name, kind, full, nullable, key, extra, precision, scale, default in found
        ]  # fmt: skip

    def _column(self, name, kind, unsigned, nullable, precision, scale, **rest):
        found = _UNSIGNED.get(kind) if unsigned else None
        found = found or _KINDS.get(kind, c.STRING)
        if kind == "bit" and precision == 1:
            found = c.INT8
        if kind == "year" and not self._year_is_date:
            found = c.INT16
        decimal = {"precision": precision, "scale": scale} if found == c.DECIMAL else {}
        return c.Column(name, found, nullable=nullable, type_name=kind, is_zoned=kind == "timestamp", **decimal, **rest)

    def chosen(self, columns):
        """Select FLOAT as a double: its text has only six digits."""
        if not any(column.type_name == "float" for column in columns):
            return "*"
        named = [("`" + column.name.replace("`", "``") + "`", column.type_name == "float") for column in columns]
        return ", ".join(f"{name} + 0E0 AS {name}" if is_float else name for name, is_float in named)

    def begin_read(self, connection):
        if self._isolation in _ISOLATIONS:
            self.execute(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {self._isolation.replace('_', ' ')}")

    def read(self, connection, sql, columns, rows):
        from pymysql.cursors import SSCursor

        cursor = SSCursor(connection)
        try:
            cursor.execute(sql)
            for count, parts in mysql_rows.read(cursor, rows):
                yield count, [values(column, part, self.zone, self._zero) for column, part in zip(columns, parts)]
        except GeneratorExit:
            connection._force_close()  # otherwise the driver would read all remaining rows
            raise
        else:
            cursor.close()

    def now(self, connection):
        return int(self.execute(connection, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")[0][0])

    def literal(self, micros, column):
        zone = "UTC" if column.is_zoned else self.zone
        return f"TIMESTAMP '{arrow.wall_text(arrow.zone_micros(micros, zone))}'"

    # --- Writing ---------------------------------------------------------------------------------------------------------
    def plain_type(self, kind):
        return kind.lower().partition("(")[0]

    def prepared(self, schema, array, target, as_timestamp=None):
        if as_timestamp or schema.name == base.TIMESTAMP:
            micros = array if as_timestamp else pc.multiply_checked(array, 1000)
            wall = micros if target.is_zoned else arrow.to_wall(micros, self.zone)
            return wall.cast(pa.timestamp("us")).cast(pa.string())
        if schema.name == base.DECIMAL:
            return arrow.decimal_texts(array)
        if schema.name == base.DATE:
            texts = array.cast(pa.timestamp("ms")).cast(pa.date32()).cast(pa.string())
            return pc.utf8_slice_codeunits(texts, 0, 4) if target.type_name == "year" else texts
        if schema.name == base.TIME:
            return array.cast(pa.int32()).cast(pa.time32("ms")).cast(pa.string())
        if schema.type in ("struct", "map", "array"):
            raise DataError(f"MySQL has no column type for a {schema.type}: flatten it, or leave '{target.name}' out by 'fields.whitelist'.")
        if schema.type == "boolean":
            return array.cast(pa.int8())
        if schema.type in ("float32", "float64") and pc.any(pc.invert(pc.is_finite(array))).as_py():
            raise DataError(f"Field '{target.name}' contains infinity or NaN, which MySQL does not support.")
        return array

    def insert(self, connection, table, names, arrays):
        self._fill(connection, self.full(table), names, arrays, self._bits(connection, table, names))

    def upsert(self, connection, table, names, keys, arrays):
        stage = self._staged(connection, table, names, arrays)
        rest = [name for name in names if name not in keys] or keys[:1]
        sets = ", ".join(f"{self.quoted(name)} = VALUES({self.quoted(name)})" for name in rest)
        listed = self._listed(names)
        self.execute(connection, f"INSERT INTO {self.full(table)} ({listed}) SELECT {listed} FROM {stage} ON DUPLICATE KEY UPDATE {sets}")

    def update(self, connection, table, names, keys, arrays):
        rest = [name for name in names if name not in keys]
        if rest:
            stage = self._staged(connection, table, names, arrays)
            sets = ", ".join(f"t.{self.quoted(name)} = s.{self.quoted(name)}" for name in rest)
            self.execute(connection, f"UPDATE {self.full(table)} AS t JOIN {stage} AS s ON {self._same(keys)} SET {sets}")

    def delete(self, connection, table, keys, arrays):
        stage = self._staged(connection, table, keys, arrays)
        self.execute(connection, f"DELETE t FROM {self.full(table)} AS t JOIN {stage} AS s ON {self._same(keys)}")

    def widen(self, connection, table, name, kind):
        self.execute(connection, f"ALTER TABLE {self.full(table)} MODIFY COLUMN {self.quoted(name)} {kind}")

    def default_literal(self, value, schema):
        if isinstance(value, str):
            return None  # TEXT columns allow no default, and backslashes would need escaping
        return str(int(value)) if isinstance(value, bool) else super().default_literal(value, schema)

    def _staged(self, connection, table, names, arrays):
        """Copy the rows to a temporary table with the same column types."""
        told = repr((table.parts, names, [(column.name, column.type_name) for column in self.columns(connection, table) or ()]))
        stage = f"`connect_stage_{hashlib.sha1(told.encode()).hexdigest()[:16]}`"
        self.execute(connection, f"CREATE TEMPORARY TABLE IF NOT EXISTS {stage} AS SELECT {self._listed(names)} FROM {self.full(table)} LIMIT 0")
        self.execute(connection, f"DELETE FROM {stage}")
        self._fill(connection, stage, names, arrays, self._bits(connection, table, names))
        return stage

    def _bits(self, connection, table, names):
        kinds = {column.name: column.type_name for column in self.columns(connection, table) or ()}
        return {name for name in names if kinds.get(name) == "bit"}

    def _fill(self, connection, target, names, arrays, bits):
        """Write rows to a table. Raises the driver's error, or DataError if the server would change a value."""
        if self._loads:
            try:
                self._load(connection, target, names, arrays, bits)
                return
            except self.error as error:
                if not error.args or error.args[0] not in _NO_LOAD:
                    raise
                self._loads = False
        places = ["%s" if not (name in bits and pa.types.is_integer(array.type)) else "CAST(%s AS UNSIGNED)" for name, array in zip(names, arrays)]
        sql = f"INSERT INTO {target} ({self._listed(names).replace('%', '%%')}) VALUES ({', '.join(places)})"
        with contextlib.closing(connection.cursor()) as cursor:
            cursor.executemany(sql, list(zip(*[array.to_pylist() for array in arrays])))

    def _load(self, connection, target, names, arrays, bits):
        parts, sets = [], []
        for at, (name, array) in enumerate(zip(names, arrays)):
            as_hex = pa.types.is_binary(array.type)
            is_bit = name in bits and pa.types.is_integer(array.type)
            parts.append(f"@v{at}" if as_hex or is_bit else self.quoted(name))
            if as_hex or is_bit:
                sets.append(f"{self.quoted(name)} = {'UNHEX' if as_hex else ''}(@v{at}{' + 0' if is_bit else ''})")
        descriptor = os.memfd_create("connect-rows")
        try:
            os.write(descriptor, b"") if not arrays else _write_all(descriptor, csv(arrays))
            with contextlib.closing(connection.cursor()) as cursor:
                cursor.execute(
                    f"LOAD DATA LOCAL INFILE '/proc/self/fd/{descriptor}' INTO TABLE {target} CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' "
                    f"OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\n' "
                    f"({', '.join(parts)}){' SET ' + ', '.join(sets) if sets else ''}"
                )
                taken = cursor.rowcount
            wrong = [row for row in self.execute(connection, "SHOW WARNINGS") if row[0] != "Note"]
        finally:
            os.close(descriptor)
        if wrong:
            raise DataError(f"The database would change a value of a row: {wrong[0][2]} (code {wrong[0][1]})")
        if taken != len(arrays[0]):
            raise ConnectError(f"The database wrote only {taken} of {len(arrays[0])} rows, without a warning.")

    def _listed(self, names):
        return ", ".join(map(self.quoted, names))

    def _same(self, keys):
        return " AND ".join(f"t.{self.quoted(key)} = s.{self.quoted(key)}" for key in keys)


def _write_all(descriptor, data):
    rest = memoryview(data)
    while len(rest):
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)


def _tls(given):
    """Convert the TLS properties of Java's drivers to PyMySQL's."""
    mode = given.get("sslMode", "").upper().replace("-", "_")
    if not mode and given.get("useSSL", given.get("requireSSL", "false")).lower() == "true":
        mode = "VERIFY_CA" if given.get("verifyServerCertificate", "false").lower() == "true" else "REQUIRED"
    if mode in ("", "DISABLED", "DISABLE", "PREFERRED"):
        return None
    checks = (
        {"verify_mode": "required", "check_hostname": mode in ("VERIFY_IDENTITY", "VERIFY_FULL")}
        if mode.startswith("VERIFY")
        else {"verify_mode": "none"}
    )
    return {"ca": given.get("serverSslCert") or given.get("sslCa"), **checks}
