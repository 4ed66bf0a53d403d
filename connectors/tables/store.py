"""Tables through Spark: created, widened, appended to, merged into. What Iceberg and Delta do each in its own way is in their modules.

All of it runs within one job of the worker's Spark session, in a session of the connector's own beside it: settings of catalogs and commits there
are nobody else's.
"""

import contextlib
import threading

from connectors.tables.columns import DELETES, NUMBER, changes, columns_in_sql, fitted, quote, words_of
from connectors.tables.keys import partitions
from standalone import ConnectError, DataError, RetriableError

VIEW = "__connect_rows"
_AGAIN = (  # what passes by itself, in the words of Java's errors
    "ConnectException", "SocketTimeout", "CommitFailedException", "CommitStateUnknown", "ConcurrentAppend", "ConcurrentWrite",
    "ConcurrentTransaction", "ConcurrentModification", "No space left", "TTransportException", "ServiceUnavailable", "NoRouteToHost", "UnknownHost",
)  # fmt: skip
_OTHER_SPARK = ("IncompatibleClassChangeError", "NoSuchMethodError", "NoClassDefFoundError", "AbstractMethodError", "NoSuchFieldError")


class Tables:
    label = package = None  # of the kind, for messages
    classes = None  # one that its jar has
    wants_text = ""

    def __init__(self, config, originals, connector):
        self.config, self.originals, self.connector = config, originals, connector
        self._of = self._session = None

    # --- What the task asks for, within a job ---

    def commit(self, session, table, settings, buffer):
        """Write what the table does not have yet of a buffer, and its offsets with it, in one commit (of Delta: in one for each partition).

        Returns how many rows were written. It may be asked again after any error."""
        own = self.own(session)
        name = self.name(table)
        with _lock_of(name), self._told(table):  # a task that was left behind may be at it still: it is waited for
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
        """The connector's own session beside that one."""
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
                f"{self.label} is not among Spark's jars. Put into the worker's properties: spark.jars.packages={self.package} (fetched from Maven "
                f"at Spark's next start), or spark.jars=/path/to/the.jar{self.wants_text}; then restart the worker."
            ) from error

    @contextlib.contextmanager
    def _told(self, table):
        """Errors of Spark's as a user and the worker understand them."""
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
                    f"The jar of {self.label} is made for another Spark than the one that runs ({self._of.version}): {text[:300]} "
                    "Jars are to be had for Spark 4.1: pip install 'connect-standalone[tables]' installs that."
                ) from error
            if any(word in text for word in _AGAIN):
                raise RetriableError(f"Table {table} cannot be written for now: {text}") from error
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
        """The rows as in Spark, with the columns of the table, which has all of theirs then."""
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

    # --- What each kind does in its own way ---

    def configure(self, own):
        """Settings of the own session."""

    def name(self, table):
        """The table in SQL."""
        raise NotImplementedError

    def exists(self, own, table):
        raise NotImplementedError

    def create(self, own, table, columns, parts, settings):
        raise NotImplementedError

    def offsets(self, own, table, pairs):
        """{pair: next offset} that the table tells; pairs that it knows nothing of are left out."""
        raise NotImplementedError

    def append(self, own, table, frame, settings):
        raise NotImplementedError

    def _write_all(self, own, table, settings, buffer, offsets):
        raise NotImplementedError


def _merge(name, ids, columns):
    """Of rows with equal ids the last counts."""
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
    """What Java says, without its frames."""
    lines = [line for line in str(error).splitlines() if not line.startswith(("\tat ", "\t..."))]
    return " ".join(" ".join(lines).split())[:1500]


