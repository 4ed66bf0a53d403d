"""Writes rows: all batches of a put in one transaction. If the database rejects rows, bisects them to find the bad ones, and writes the rest."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc.dialects.base import RECORD
from connectors.jdbc.sink_fields import Fields
from connectors.jdbc.sink_keys import INSERT, UPDATE
from connectors.jdbc.sink_table import SinkTable
from standalone import DataError

_SAVEPOINT = "connect_rows"


class BadRecord(Exception):
    """A record that cannot be written; `error` is the reason."""

    def __init__(self, record, error):
        super().__init__(str(error))
        self.record, self.error = record, error


class Rows:
    """Rows of one table with the same columns. `numbers` are their positions in their batch."""

    def __init__(self, batch, numbers, target, fields, keys, is_delete):
        self.batch, self.numbers, self.target = batch, numbers, target
        self.fields, self.keys, self.is_delete = fields, keys, is_delete

    def __len__(self):
        return len(self.numbers)

    def cut(self, low, high):
        return Rows(self.batch, self.numbers[low:high], self.target, self.fields, self.keys, self.is_delete)

    def record(self, at):
        row = int(self.numbers[at])
        return self.batch.slice(row, row + 1).records()[0]


class Converted:
    """The fields of a batch, and for known tables their values in the dialect's form."""

    def __init__(self, fields, keys, has_value):
        self.fields, self.keys, self.has_value = fields, keys, has_value
        self.by_target = {}  # SinkTable -> _Prepared

    def of(self, dialect, target, is_delete):
        found = None if is_delete else self.by_target.get(target)
        return found if found is not None and found.is_current() else _Prepared(dialect, target, self.keys if is_delete else self.fields)


class Writer:
    def __init__(self, dialect, parsed, offsets):
        self._dialect, self._parsed, self._offsets = dialect, parsed, offsets
        self._fields = Fields(parsed)
        self._mode = parsed["insert.mode"].lower()
        self._most = parsed["batch.size"] if "batch.size" in parsed.originals else 0
        self._deletes = parsed["delete.enabled"]
        self._targets = {}  # table's name -> SinkTable

    def forget(self):
        """Forget the cached table definitions."""
        self._targets.clear()

    def prepare(self, batch):
        """Convert a batch before its put, while another thread writes earlier ones. Raises what put would raise for it."""
        converted = Converted(*self._fields.of(batch))
        for topic, _ in _by_topic(batch) if converted.fields else ():
            target = self._targets.get(self._table_name(topic))
            if target is not None and target.columns is not None:
                prepared = _Prepared(self._dialect, target, converted.fields)
                prepared.convert()
                converted.by_target[target] = prepared
        return converted

    def write(self, connection, batches, finds_bad):
        """Write batches and commit. Return all bad records, [(record, error)], if `finds_bad`; otherwise raise the first as BadRecord."""
        bad, runs, ends = [], [], {}
        if self._offsets is not None:
            self._offsets.settle(connection)
        for batch in filter(len, map(self._new_part, batches)):
            # First, because some databases commit when a table is created or altered.
            try:
                runs += self._runs(connection, batch)
            except DataError as error:
                self._refuse(batch.records(), error, bad, finds_bad)
            ends[batch.origin] = int(batch.offsets[-1]) + 1
        self._dialect.begin(connection)
        for rows in runs:
            step = self._most or len(rows)
            for low in range(0, len(rows), step):
                self._write_rows(connection, rows.cut(low, low + step), bad, finds_bad)
        if self._offsets is not None:
            self._offsets.store(connection, ends)
        connection.commit()
        if self._offsets is not None:
            self._offsets.stored(ends)
        return bad

    def _new_part(self, batch):
        """The rows that the database does not have yet."""
        if self._offsets is None:
            return batch
        start = int(np.searchsorted(batch.offsets, self._offsets.already(batch.origin)))
        return batch.slice(start, len(batch)) if start else batch

    @staticmethod
    def _refuse(records, error, bad, finds_bad):
        if not finds_bad:
            raise BadRecord(records[0], error) from error
        bad += [(record, error) for record in records]

    # --- Rows in order ---------------------------------------------------------------------------------
    def _runs(self, connection, batch):
        converted = batch.prepared or Converted(*self._fields.of(batch))
        fields, keys, has_value = converted.fields, converted.keys, converted.has_value
        if pc.all(has_value).as_py() is not True and not self._deletes:
            raise DataError("A tombstone cannot be written: it has no fields. With delete.enabled=true it deletes the row with its key.")
        has_value, found = has_value.to_numpy(zero_copy_only=False), []
        for topic, numbers in _by_topic(batch):
            target = self._target(topic)
            target.ready(connection, fields or keys)
            # Deletes and writes may have the same key: keep their order.
            present = has_value[numbers]
            for run in np.split(numbers, np.flatnonzero(present[1:] != present[:-1]) + 1):
                is_delete = not has_value[run[0]]
                prepared = converted.of(self._dialect, target, is_delete)
                found.append(Rows(batch, run, target, prepared, [key.name for key in keys], is_delete))
        return found

    def _table_name(self, topic):
        return self._parsed["table.name.format"].replace("${topic}", topic)

    def _target(self, topic):
        name = self._table_name(topic)
        if name not in self._targets:
            self._targets[name] = SinkTable(self._dialect, self._dialect.table(name), self._parsed)
        return self._targets[name]

    # --- Writing ---------------------------------------------------------------------------------------------------------
    def _write_rows(self, connection, rows, bad, finds_bad):
        """Write rows; if the database rejects one, write each half separately, down to the single row."""
        dialect = self._dialect
        dialect.savepoint(connection, _SAVEPOINT)
        try:
            self._execute(connection, rows)
        except (dialect.error, DataError) as error:
            if isinstance(error, dialect.error) and dialect.blame(error) != RECORD:
                raise
            dialect.back_to(connection, _SAVEPOINT)
            dialect.release(connection, _SAVEPOINT)
            if len(rows) == 1:
                self._refuse([rows.record(0)], error, bad, finds_bad)
                return
            middle = len(rows) // 2
            for part in (rows.cut(0, middle), rows.cut(middle, len(rows))):
                self._write_rows(connection, part, bad, finds_bad)
        else:
            dialect.release(connection, _SAVEPOINT)

    def _execute(self, connection, rows):
        names, arrays = rows.fields.take(rows.numbers)
        table, keys = rows.target.table, rows.keys
        if self._mode == INSERT and not rows.is_delete:
            self._dialect.insert(connection, table, names, arrays)
            return
        last = _last_of_each([arrays[names.index(key)] for key in keys])
        if len(last) < len(rows):
            arrays = [array.take(last) for array in arrays]
        if rows.is_delete:
            self._dialect.delete(connection, table, keys, [arrays[names.index(key)] for key in keys])
        elif self._mode == UPDATE:
            self._dialect.update(connection, table, names, keys, arrays)
        else:
            self._dialect.upsert(connection, table, names, keys, arrays)


class _Prepared:
    """Fields of a batch in the dialect's form: converted for all rows at once, on first use at the latest."""

    def __init__(self, dialect, target, fields):
        self._dialect, self._target, self._fields = dialect, target, fields
        self._columns = [target.columns[field.name] for field in fields]
        self._arrays = None

    def is_current(self):
        """Whether the table still has the columns for which the fields were converted."""
        known = self._target.columns or {}
        return all(known.get(column.name) is column for column in self._columns)

    def convert(self):
        self._arrays = [self._one(*each) for each in zip(self._fields, self._columns)]

    def take(self, numbers):
        """(names, arrays) of these rows."""
        names = [field.name for field in self._fields]
        if self._arrays is None:
            try:
                self.convert()
            except DataError:
                if len(numbers) > 1:
                    raise
                rows = pa.array(numbers)  # check rows one by one
                return names, [self._one(*each, rows) for each in zip(self._fields, self._columns)]
        whole = len(numbers) == len(self._arrays[0])
        return names, self._arrays if whole else [array.take(pa.array(numbers)) for array in self._arrays]

    def _one(self, field, column, rows=None):
        array = field.array if rows is None else field.array.take(rows)
        try:
            found = self._dialect.prepared(field.schema, array, column, field.as_timestamp)
        except (pa.ArrowException, OverflowError) as error:
            raise DataError(f"Field '{field.name}' cannot be written: {error}") from error
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _by_topic(batch):
    """[(topic, numbers of its rows)]: transforms may have set multiple topics in one batch."""
    if not isinstance(batch.topic, list):
        return [(batch.topic, np.arange(len(batch)))]
    found = {}
    for row, topic in enumerate(batch.topic):
        found.setdefault(topic, []).append(row)
    return [(topic, np.array(rows)) for topic, rows in found.items()]


def _last_of_each(keys):
    """The number of the last row of each key, ascending: a statement accepts each key only once."""
    names = [f"k{at}" for at in range(len(keys))]
    table = pa.table([*keys, pa.array(np.arange(len(keys[0])))], names=[*names, "row"])
    return np.sort(table.group_by(names).aggregate([("row", "max")])["row_max"].to_numpy())
