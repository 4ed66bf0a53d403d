"""A target table: its columns, auto.create and auto.evolve, and whether records fit it."""

import logging

from connectors.jdbc import column as c
from connectors.jdbc.dialects.base import DATE, DECIMAL, TIME, TIMESTAMP
from standalone import ConnectError, DataError

log = logging.getLogger(__name__)

_NUMBERS = (*c.INTEGERS, c.FLOAT32, c.FLOAT64, c.DECIMAL)
_MOMENTS = (c.DATE, c.TIME, c.TIMESTAMP)
# Column types that a field's type may be written to. Strings fit all types with an exact text form: decimals, dates, JSON, UUIDs.
_INTEGER = (*_NUMBERS, c.BOOLEAN)
_FITS = {
    "int8": _INTEGER, "int16": _INTEGER, "int32": _INTEGER, "int64": _INTEGER, "float32": (c.FLOAT32, c.FLOAT64, c.DECIMAL),
    "float64": (c.FLOAT32, c.FLOAT64, c.DECIMAL), "boolean": (c.BOOLEAN, *c.INTEGERS, c.DECIMAL), "string": (c.STRING, c.DECIMAL, *_MOMENTS, c.ARRAY),
    "bytes": (c.BYTES,), DECIMAL: _NUMBERS, DATE: (c.DATE, c.TIMESTAMP), TIME: (c.TIME,), TIMESTAMP: (c.TIMESTAMP, c.DATE), "array": (c.ARRAY,),
}  # fmt: skip


class SinkTable:
    """The columns are read on first use, and again if they do not fit: another client may have altered the table."""

    def __init__(self, dialect, table, parsed):
        self.table = table
        self._dialect = dialect
        self._creates, self._evolves = parsed["auto.create"], parsed["auto.evolve"]
        self._key_names = parsed["pk.fields"]
        self.columns = None  # {name: Column}
        self._checked = set()  # fields known to fit, by names and schemas

    def forget(self):
        self.columns = None
        self._checked.clear()

    def ready(self, connection, fields):
        """Make the table accept these fields. Raises ConnectError, or DataError if the records do not fit the table."""
        told = tuple((field.name, field.schema, field.as_timestamp) for field in fields)
        if told in self._checked:
            return
        if self.columns is None or any(field.name not in self.columns for field in fields):
            self._look(connection)
        if self.columns is None:
            self._create(connection, fields)
        missing = [field for field in fields if field.name not in self.columns]
        if missing:
            self._add(connection, missing)
        for field in fields:
            self._hold(connection, field)
        names = {field.name for field in fields}
        needed = [column.name for column in self.columns.values() if column.name not in names and not column.nullable and not column.has_default]
        if needed:
            raise DataError(f"Table '{self.table}' has NOT NULL columns that the record does not have: {', '.join(needed)}.")
        self._checked.add(told)

    def _look(self, connection):
        found = self._dialect.columns(connection, self.table)
        self.columns = None if found is None else {column.name: column for column in found}

    def _create(self, connection, fields):
        if not self._creates:
            raise ConnectError(
                f"There is no table '{self.table}', and auto.create is false. Create it, check table.name.format, or set auto.create=true."
            )
        keys = [field.name for field in fields if field.is_key]
        keys.sort(key=lambda name: self._key_names.index(name) if name in self._key_names else len(keys))
        try:
            self._dialect.create(connection, self.table, [self._said(field) for field in fields], keys)
        except self._dialect.error as error:
            raise ConnectError(f"Table '{self.table}' cannot be created: {self._dialect.said(error)}") from error
        log.info("Created table '%s'", self.table)
        self._look(connection)

    def _add(self, connection, fields):
        names = ", ".join(field.name for field in fields)
        if not self._evolves:
            raise DataError(
                f"Table '{self.table}' has no column for {names}, and auto.evolve is false. Add it, set auto.evolve=true, or select fields by "
                "fields.whitelist."
            )
        for field in fields:
            if not field.schema.optional and field.schema.default is None:
                raise DataError(
                    f"Table '{self.table}' has no column '{field.name}', and it cannot be added: the field is required and has no default, so that "
                    "existing rows would have no value for it."
                )
        self._dialect.add(connection, self.table, [self._said(field) for field in fields])
        log.info("Added to table '%s': %s", self.table, names)
        self._look(connection)

    def _said(self, field):
        kind = self._dialect.sql_type(field.schema, field.is_key, field.as_timestamp)
        default = None if field.schema.default is None else self._dialect.default_literal(field.schema.default, field.schema)
        return field.name, kind, field.nullable, default

    def _hold(self, connection, field):
        """Widen a column of another type than the field's if no value changes; otherwise refuse the field."""
        column, schema = self.columns[field.name], field.schema
        name = TIMESTAMP if field.as_timestamp else schema.name if schema.logical else schema.type
        if self._evolves:
            wanted = self._dialect.plain_type(self._dialect.sql_type(schema, field.is_key, field.as_timestamp))
            if (self._dialect.plain_type(column.type_name), wanted) in self._dialect.widenings:
                self._dialect.widen(connection, self.table, field.name, self._dialect.sql_type(schema))
                log.info("Widened column '%s' of table '%s' from %s to %s", field.name, self.table, column.type_name, wanted)
                self._look(connection)
                column = self.columns[field.name]
        if self._dialect.is_strict and column.kind not in _FITS.get(name, (c.STRING,)):
            raise DataError(
                f"Field '{field.name}' is of type {name}, but column '{field.name}' of table '{self.table}' is {column.type_name}: the field's "
                "type has changed, or the table belongs to other data. Alter the column, or cast the field with a transform."
            )
