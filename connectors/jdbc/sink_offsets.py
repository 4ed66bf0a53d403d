"""Exactly-once: the offset after each partition's last row is stored in a table, in the transaction of the rows.

A task reads it when it gets the partition; it takes precedence over the committed offset of the group. A task that finds another offset
than its own last one has been replaced by another task, and writes no rows.
"""

from standalone import ConnectError

_COLUMNS = ("connector", "topic", "part", "next_offset")
_KINDS = ("VARCHAR(249)", "VARCHAR(249)", "INTEGER", "BIGINT")


class StoredOffsets:
    def __init__(self, dialect, parsed, connector):
        self._dialect = dialect
        self._table = dialect.table(parsed["exactly.once.table"])
        self._connector = connector
        self._known = {}  # (topic, partition) -> next offset, or None if there is none yet
        self._tried = {}  # the same, for a transaction whose outcome is unknown

    def read(self, connection, partitions):
        """{(topic, partition): next offset} of those that have one; creates the table if it does not exist."""
        if self._dialect.columns(connection, self._table) is None:
            self._dialect.create(connection, self._table, [(name, kind, False, None) for name, kind in zip(_COLUMNS, _KINDS)], list(_COLUMNS[:3]))
        found = self._stored(connection)
        connection.commit()
        self._known.update({pair: found.get(pair) for pair in partitions})
        return {pair: found[pair] for pair in partitions if pair in found}

    def release(self, partitions):
        for pair in partitions:
            self._known.pop(pair, None)

    def already(self, pair):
        """The rows of the partition below this offset are in the database."""
        return self._known.get(pair) or 0

    def store(self, connection, ends):
        """Store {(topic, partition): next offset} in the transaction. `stored` confirms them after the commit."""
        self._tried = dict(ends)
        for pair, end in ends.items():
            known = self._known.get(pair)
            if known is None:
                self._run(
                    connection, f"INSERT INTO {self._name} ({self._listed}) VALUES ({{}}, {{}}, {int(pair[1])}, {int(end)})", self._connector, pair[0]
                )
                continue
            changed = self._run(
                connection,
                f"UPDATE {self._name} SET {self._column(3)} = {int(end)} WHERE {self._where} AND {self._column(3)} = {int(known)}",
                self._connector, pair[0], partition=pair[1],
            )  # fmt: skip
            if changed != 1:
                raise ConnectError(
                    f"The offset of {pair[0]}-{pair[1]} in table '{self._table}' is not {known}, which this task wrote: another task owns the "
                    "partition now, or the table was changed. Nothing was written; a restart reads the offset again."
                )

    def stored(self, ends):
        """The transaction is committed."""
        self._known.update(ends)
        self._tried = {}

    def settle(self, connection):
        """After the connection was lost during a commit: determine whether it succeeded. Any other offset than those two is another task's."""
        if self._tried:
            found = self._stored(connection)
            connection.commit()
            self._known.update({pair: end for pair, end in self._tried.items() if found.get(pair) == end})
            self._tried = {}

    def alter(self, connection, offsets):
        """Set {(topic, partition): next offset, or None to delete it}."""
        self.read(connection, list(offsets))
        for pair, end in offsets.items():
            self._run(connection, f"DELETE FROM {self._name} WHERE {self._where}", self._connector, pair[0], partition=pair[1])
            if end is not None:
                self._known[pair] = None
                self.store(connection, {pair: end})
        connection.commit()

    # --- SQL -------------------------------------------------------------------------------------------------------------
    @property
    def _name(self):
        return self._dialect.full(self._table)

    def _column(self, at):
        return self._dialect.quoted(_COLUMNS[at])

    @property
    def _listed(self):
        return ", ".join(map(self._dialect.quoted, _COLUMNS))

    @property
    def _where(self):
        return f"{self._column(0)} = {{}} AND {self._column(1)} = {{}} AND {self._column(2)} = {{partition}}"

    def _run(self, connection, sql, *texts, partition=None):
        return self._dialect.run(connection, sql.replace("{partition}", str(int(partition)) if partition is not None else ""), texts)

    def _stored(self, connection):
        rows = self._dialect.rows(connection, f"SELECT {self._listed} FROM {self._name} WHERE {self._column(0)} = {{}}", [self._connector])
        return {(topic, int(partition)): int(offset) for _, topic, partition, offset in rows}
