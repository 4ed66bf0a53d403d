"""How each mode finds new rows: its SQL, and the Place after each row."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import column as c
from connectors.jdbc.arrow import DAY_MS
from connectors.jdbc.place import Place
from connectors.jdbc.source_keys import BOTH, INCREMENTING, TIMESTAMP
from standalone import ConnectError

_FEW_RANGES = 100  # if there are more, the query uses one range that spans them all


class Mode:
    """The mode of one table. `take` finds its columns."""

    def __init__(self, config, table, dialect):
        self.name = config["mode"].lower()
        self._table, self._dialect = table, dialect
        self._number_name = _mapped(config["incrementing.column.mapping"], table) or config["incrementing.column.name"]
        listed = _mapped(config["timestamp.columns.mapping"], table)
        self._time_names = [each.strip() for each in listed.strip("[]").split("|")] if listed else config["timestamp.column.name"]
        self._must_not_be_null = config["validate.non.null"]
        self.number = self.times = None  # Columns

    @property
    def is_numbered(self):
        return self.name in (INCREMENTING, BOTH)

    @property
    def is_timed(self):
        return self.name in (TIMESTAMP, BOTH)

    def take(self, columns):
        """Find the columns of the mode. Raises ConnectError if one is missing or nullable."""
        what = f"table '{self._table}'" if self._table else "the query"
        if self.is_numbered:
            self.number = self._found(self._number_name, columns, "incrementing.column.name", what) if self._number_name else _counting(columns, what)
        if self.is_timed:
            if not self._time_names:
                raise ConnectError(f"mode={self.name} needs timestamp.column.name, or an entry for {what} in timestamp.columns.mapping.")
            self.times = [self._found(name, columns, "timestamp.column.name", what) for name in self._time_names]
        if self._must_not_be_null and self._table:
            if self.number is not None and self.number.nullable:
                raise ConnectError(_nullable(self.number.name, "the incrementing column", what))
            if self.times and all(column.nullable for column in self.times):
                raise ConnectError(_nullable(self.times[0].name, "the timestamp column", what))

    @staticmethod
    def _found(name, columns, key, what):
        found = next((column for column in columns if column.name == name), None)
        found = found or next((column for column in columns if column.name.lower() == name.lower()), None)
        if found is None:
            names = ", ".join(column.name for column in columns)
            raise ConnectError(f"{what} has no column '{name}' ({key}). Its columns: {names}.")
        return found

    # --- SQL -------------------------------------------------------------------------------------------------------------
    def conditions(self, begin, end):
        """Return WHERE and ORDER BY for the rows after a Place and before a time in microseconds."""
        number = self.number and self._dialect.quoted(self.number.name)
        if self.name == INCREMENTING:
            behind = f"{number} IS NOT NULL" if begin.number is None else f"{number} > {begin.number}"
            return f"WHERE {behind} ORDER BY {number} ASC"
        time, before = self._time(), f"{self._time()} < {self._literal(end)}"
        order = time if self.name == TIMESTAMP else f"{time}, {number}"
        if begin.micros is None:
            return f"WHERE {before} ORDER BY {order}"
        since = self._literal(begin.micros)
        if self.name == TIMESTAMP or begin.number is None:
            return f"WHERE {time} > {since} AND {before} ORDER BY {order}"
        return f"WHERE {before} AND (({time} = {since} AND {number} > {begin.number}) OR {time} > {since}) ORDER BY {order}"

    def missed(self, ranges):
        """Return WHERE and ORDER BY for the rows with missing ids."""
        number = self._dialect.quoted(self.number.name)
        if len(ranges) > _FEW_RANGES:
            ranges = [(ranges[0][0], ranges[-1][1])]
        parts = " OR ".join(f"{number} BETWEEN {low} AND {high}" for low, high in ranges)
        return f"WHERE {parts} ORDER BY {number} ASC"

    def _time(self):
        times = [self._dialect.moment(column) for column in self.times]
        return times[0] if len(times) == 1 else f"COALESCE({', '.join(times)})"

    def _literal(self, micros):
        return self._dialect.literal(micros, self.times[0])

    # --- Places ----------------------------------------------------------------------------------------------------------
    def numbers(self, columns, arrays):
        """Return the incrementing column as int64, or None if the mode has none."""
        if self.number is None:
            return None
        array = arrays[_at(columns, self.number)]
        try:
            whole = pc.cast(pc.replace_substring_regex(array, r"\.0*$", ""), pa.int64()) if pa.types.is_string(array.type) else array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise ConnectError(f"The incrementing column '{self.number.name}' holds a value that is not a 64-bit integer: {error}") from error
        return whole.to_numpy(zero_copy_only=False)

    def micros(self, columns, arrays):
        """Return the timestamps in microseconds as int64, or None if the mode has none."""
        if self.times is None:
            return None
        parts = []
        for column in self.times:
            if column.kind not in (c.TIMESTAMP, c.DATE):
                raise ConnectError(f"The timestamp column '{column.name}' has type {column.type_name}: it must be a timestamp or a date.")
            array = arrays[_at(columns, column)].cast(pa.int64())
            parts.append(pc.multiply(array, DAY_MS * 1000) if column.kind == c.DATE else array)
        return pc.coalesce(*parts).to_numpy(zero_copy_only=False)

    def places(self, numbers, micros, before, next_micros):
        """Return a function from a row to the Place after it. `before` is the Place before the first row, `next_micros` the time of the row
        that follows the last one, or None.

        In timestamp mode only the last row with the same timestamp advances the Place: otherwise a restart would skip the others.
        """
        if self.name != TIMESTAMP:
            return lambda row: Place(None if micros is None else int(micros[row]), int(numbers[row]))
        following = np.append(micros[1:], micros[-1] - 1 if next_micros is None else next_micros)
        ends = np.flatnonzero(following != micros)

        def place(row):
            at = int(np.searchsorted(ends, row, side="right")) - 1
            return Place(int(micros[ends[at]])) if at >= 0 else before

        return place


def _at(columns, column):
    return next(at for at, each in enumerate(columns) if each.name == column.name)


def _mapped(entries, table):
    """Return the columns of the first entry whose pattern matches the table name."""
    for entry in entries:
        pattern, _, columns = entry.rpartition(":")
        if table is not None and any(re.fullmatch(pattern, name) for name in (table.full, ".".join(table.parts[-2:]), table.name)):
            return columns
    return None


def _counting(columns, what):
    found = [column for column in columns if column.counts]
    if len(found) != 1:
        raise ConnectError(f"{what} has {len(found) or 'no'} autoincrement columns: set incrementing.column.name.")
    return found[0]


def _nullable(name, which, what):
    return f"{what}: {which} '{name}' is nullable, and rows with null in it would be skipped. Make it NOT NULL, or set validate.non.null=false."
