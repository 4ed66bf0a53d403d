"""A table that is written to: what it has, what auto.create and auto.evolve make of it, and what it does not take."""

import logging

from connectors.jdbc import column as c
from connectors.jdbc.dialects.base import DATE, DECIMAL, TIME, TIMESTAMP
from standalone import ConnectError, DataError

log = logging.getLogger(__name__)

_NUMBERS = (*c.INTEGERS, c.FLOAT32, c.FLOAT64, c.DECIMAL)
_MOMENTS = (c.DATE, c.TIME, c.TIMESTAMP)
# What a field's type may be written to. Strings go wherever they may be exact: decimals, days, JSON, UUIDs.
_INTEGER = (*_NUMBERS, c.BOOLEAN)
_FITS = {
    "int8": _INTEGER, "int16": _INTEGER, "int32": _INTEGER, "int64": _INTEGER, "float32": (c.FLOAT32, c.FLOAT64, c.DECIMAL),
    "float64": (c.FLOAT32, c.FLOAT64, c.DECIMAL), "boolean": (c.BOOLEAN, *c.INTEGERS, c.DECIMAL), "string": (c.STRING, c.DECIMAL, *_MOMENTS, c.ARRAY),
    "bytes": (c.BYTES,), DECIMAL: _NUMBERS, DATE: (c.DATE, c.TIMESTAMP), TIME: (c.TIME,), TIMESTAMP: (c.TIMESTAMP, c.DATE), "array": (c.ARRAY,),
}  # fmt: skip


class SinkTable:
    """The columns are looked up when they are first needed, and again where they do not serve: somebody else may have changed the table."""

    def __init__(self, dialect, table, parsed):
        self.table = table
        self._dialect = dialect
        self._creates, self._evolves = parsed["auto.create"], parsed["auto.evolve"]
        self._key_names = parsed["pk.fields"]
        self.columns = None  # {name: Column}
        self._checked = set()  # what fits, by names and schemas

    def forget(self):
        self.columns = None
        self._checked.clear()

    def ready(self, connection, fields):
        """The table takes these fields. Raises ConnectError, or DataError where records cannot be written to it as it is."""
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
            raise DataError(f"Table '{self.table}' has columns that may not be null and that the record has not: {', '.join(needed)}.")
        self._checked.add(told)

    def _look(self, connection):
        found = self._dialect.columns(connection, self.table)
        self.columns = None if found is None else {column.name: column for column in found}

    def _create(self, connection, fields):
        if not self._creates:
            raise ConnectError(
                f"There is no table '{self.table}', and auto.create is not set. Create it, look at table.name.format, or set auto.create=true."
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
                f"Table '{self.table}' has no column for {names}, and auto.evolve is not set. Add it, set auto.evolve=true, or choose by "
                "fields.whitelist."
            )
        for field in fields:
            if not field.schema.optional and field.schema.default is None:
                raise DataError(
                    f"Table '{self.table}' has no column '{field.name}'. It cannot be added: the field may not be null and has no default, and "
                    "rows that are there "
                    f"would have nothing in it."
                )
        self._dialect.add(connection, self.table, [self._said(field) for field in fields])
        log.info("Added to table '%s': %s", self.table, names)
        self._look(connection)

    def _said(self, field):
        kind = self._dialect.sql_type(field.schema, field.is_key, field.as_timestamp)
        default = None if field.schema.default is None else self._dialect.default_literal(field.schema.default, field.schema)
        return field.name, kind, field.nullable, default

    def _hold(self, connection, field):
        """A column of another type than the field's is widened if that loses nothing, and else refused."""
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
                f"Field '{field.name}' is of type {name}, and column '{field.name}' of table '{self.table}' is {column.type_name}: the field's "
                "type has changed, or the "
                f"table is another's. Change the column, or cast the field by a transform."
            )
