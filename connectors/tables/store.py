"""Tables through Spark: create, widen, append and merge. Differences between Iceberg and Delta are in their modules.

Everything runs within a job of the worker's Spark session, in a separate session per connector, so that catalog settings
do not interfere.
"""

import contextlib
import threading

from connectors.tables.columns import DELETES, NUMBER, changes, columns_in_sql, fitted, quote, words_of
from connectors.tables.keys import partitions
from standalone import ConnectError, DataError, RetriableError

VIEW = "__connect_rows"
_AGAIN = (  # transient errors, by the text of Java's exceptions
    "ConnectException", "SocketTimeout", "CommitFailedException", "CommitStateUnknown", "ConcurrentAppend", "ConcurrentWrite",
    "ConcurrentTransaction", "ConcurrentModification", "No space left", "TTransportException", "ServiceUnavailable", "NoRouteToHost", "UnknownHost",
)  # fmt: skip
_OTHER_SPARK = ("IncompatibleClassChangeError", "NoSuchMethodError", "NoClassDefFoundError", "AbstractMethodError", "NoSuchFieldError")


class Tables:
    label = package = None  # of the format, for messages
    classes = None  # a class in its jar
    wants_text = ""

    def __init__(self, config, originals, connector):
        self.config, self.originals, self.connector = config, originals, connector
        self._of = self._session = None

    # --- Called by the task, within a job ---

    def commit(self, session, table, settings, buffer):
        """Write the buffer's rows that the table does not have yet, with their offsets, in one commit (Delta: one per partition).

        Returns the number of rows written. It may be repeated after any error."""
        own = self.own(session)
        name = self.name(table)
        with _lock_of(name), self._told(table):  # waits for an abandoned task that may still commit
            exists = self.exists(own, table)
            offsets = self.offsets(own, table, buffer.pairs()) if exists else {}
            for pair, offset in offsets.items():
                buffer.drop(pair, offset)
            if not buffer.is_empty:
                if not exists:
                    self._create(own, table, settings, buffer)
                self._write_all(own, table, settings, buffer, offsets)
            return buffer.count

    def own(self, session):
        """Return the connector's own session."""
        if self._of is not session:
            self._must_have_jars(session)
            own = session.newSession()
            self.configure(own)
            self._of, self._session = session, own
        return self._session

    # --- Steps ---

    def _must_have_jars(self, session):
        loader = session._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        try:
            session._jvm.java.lang.Class.forName(self.classes, False, loader)
        except Exception as error:
            raise ConnectError(
                f"{self.label} is not among Spark's jars. Add to the worker's properties: spark.jars.packages={self.package} (fetched from Maven "
                f"at Spark's next start), or spark.jars=/path/to/the.jar{self.wants_text}; then restart the worker."
            ) from error

    @contextlib.contextmanager
    def _told(self, table):
        """Convert Spark's errors for users and the worker."""
        try:
            yield
        except DataError as error:
            raise DataError(f"Table {table} cannot be written: {error}") from error
        except ConnectError:
            raise
        except Exception as error:
            text = _words(error)
            if any(word in text for word in _OTHER_SPARK):
                raise ConnectError(
                    f"The jar of {self.label} is built for a different version of Spark than the running one ({self._of.version}): {text[:300]} "
                    "There are jars for Spark 4.1, which pip install 'connect-standalone[tables]' installs."
                ) from error
            if any(word in text for word in _AGAIN):
                raise RetriableError(f"Table {table} cannot be written now: {text}") from error
            raise ConnectError(f"Table {table} cannot be written: {text}") from error

    def _create(self, own, table, settings, buffer):
        if not settings.creates:
            raise ConnectError(
                f"There is no table {table}. Create it, or set iceberg.tables.auto-create-enabled=true; then restart the task."
            )
        wanted = words_of(own.createDataFrame(buffer.rows().slice(0, 1)).schema)
        required = () if settings.all_optional else buffer.required
        parts = partitions(settings.partition_by)
        self.create(own, table, columns_in_sql(wanted, required), parts, settings)

    def _frame(self, own, table, settings, rows):
        """Return the rows as a Spark frame with the table's columns, after adding missing columns to the table."""
        name = self.name(table)
        existing = own.table(name)
        rows = fitted(rows, existing.limit(0).toArrow(), settings.evolves, settings.ignores_case)
        frame = own.createDataFrame(rows)
        if settings.evolves:
            for change in changes(words_of(existing.schema), words_of(frame.schema)):
                own.sql(f"ALTER TABLE {name} {change}")
        return frame.coalesce(max(1, own.sparkContext.defaultParallelism)), [each for each in rows.column_names if each not in (NUMBER, DELETES)]

    def _write(self, own, table, settings, rows):
        frame, columns = self._frame(own, table, settings, rows)
        if settings.is_upsert:
            missing = [name for name in settings.ids if name not in columns]
            if missing:
                raise ConnectError(f"Table {table} has no column {', '.join(missing)}, which iceberg.tables.default-id-columns names.")
            frame.createOrReplaceTempView(VIEW)
            try:
                own.sql(_merge(self.name(table), settings.ids, columns))
            finally:
                own.catalog.dropTempView(VIEW)
        else:
            self.append(own, table, frame.drop(NUMBER, DELETES), settings)

    # --- Differs by format ---

    def configure(self, own):
        """Set up the connector's session."""

    def name(self, table):
        """Return the table's name in SQL."""
        raise NotImplementedError

    def exists(self, own, table):
        raise NotImplementedError

    def create(self, own, table, columns, parts, settings):
        raise NotImplementedError

    def offsets(self, own, table, pairs):
        """Return {pair: next offset} recorded in the table, without unknown pairs."""
        raise NotImplementedError

    def append(self, own, table, frame, settings):
        raise NotImplementedError

    def _write_all(self, own, table, settings, buffer, offsets):
        raise NotImplementedError


def _merge(name, ids, columns):
    """Merge; of rows with equal ids the last one wins."""
    on = " AND ".join(f"t.{quote(each)} <=> u.{quote(each)}" for each in ids)
    sets = ", ".join(f"{quote(each)} = u.{quote(each)}" for each in columns)
    by = ", ".join(quote(each) for each in ids)
    last = f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {NUMBER} DESC) AS __connect_nth FROM {VIEW}"
    return (
        f"MERGE INTO {name} t USING (SELECT * FROM ({last}) WHERE __connect_nth = 1) u ON {on} "
        f"WHEN MATCHED AND u.{DELETES} THEN DELETE WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT u.{DELETES} THEN INSERT ({', '.join(quote(each) for each in columns)}) "
        f"VALUES ({', '.join(f'u.{quote(each)}' for each in columns)})"
    )


_locks, _locks_lock = {}, threading.Lock()


def _lock_of(name):
    with _locks_lock:
        return _locks.setdefault(name, threading.Lock())


def _words(error):
    """Return Java's message without its stack trace."""
    lines = [line for line in str(error).splitlines() if not line.startswith(("\tat ", "\t..."))]
    return " ".join(" ".join(lines).split())[:1500]


