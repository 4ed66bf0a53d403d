"""JdbcSource: publish the rows of tables or of a query, and the rows added or changed later.

table.py         table names and filters     table_reader.py   reads one table or query
modes.py         the modes' SQL              place.py          offsets
dialects/        the databases               column.py         types
"""

import logging
import threading
import time

from connectors.jdbc import keys
from connectors.jdbc.column import Mapping
from connectors.jdbc.database import Database
from connectors.jdbc.dialects.base import PASSING
from connectors.jdbc.place import Place
from connectors.jdbc.source_keys import BULK, INCREMENTING, SOURCE, TASK, TIMESTAMP
from connectors.jdbc.table import Choice
from connectors.jdbc.table_reader import TableReader, stored_place
from standalone import ConfigError, ConnectError, ExactlyOnceSupport, SourceConnector, SourceTask

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0  # poll returns after this time even without rows
RETRY_SECONDS = 1.0
STOP_SECONDS = 5


class JdbcSourceConnector(SourceConnector):
    """Publish the rows of tables or of a query, and the rows added or changed later: one topic for each table."""

    java_name = "io.confluent.connect.jdbc.JdbcSourceConnector"
    config_def = SOURCE
    passing = keys.PASSING

    _monitor = None

    def validate(self, config):
        try:
            return _errors(SOURCE.parse(config))
        except ConfigError as error:
            return {name: message for name, message in error.errors.items() if name not in SOURCE}

    def exactly_once_support(self, config):
        """Bulk mode has no offset to resume from."""
        return ExactlyOnceSupport.UNSUPPORTED if config.get("mode", "").lower() == BULK else ExactlyOnceSupport.SUPPORTED

    def start(self, config):
        self.config = config
        parsed = SOURCE.parse(config)
        errors = _errors(parsed)
        if errors:
            raise ConfigError.of(errors, "JdbcSource cannot start")
        self._stopped = threading.Event()
        self._database = Database(parsed, self._stopped)
        self._tables = None
        if not _is_query(parsed):
            self._choice, self._parsed = Choice(parsed), parsed
            self._look()
            self._monitor = threading.Thread(target=self._watch, name="jdbc-tables", daemon=True)
            self._monitor.start()

    def task_configs(self, max_tasks):
        if self._tables is None:
            return [{**self.config, "tables": "", "tables.fetched": "true"}]
        names = [self._database.dialect.full(table, always=True) for table in self._tables]
        count = min(max_tasks, len(names))
        shares = [names[at * len(names) // count : (at + 1) * len(names) // count] for at in range(count)]
        return [{**self.config, "tables": ",".join(share), "tables.fetched": "true"} for share in shares]

    def stop(self):
        self._stopped.set()
        if self._monitor is not None:
            self._monitor.join(STOP_SECONDS)
        self._database.drop()

    def alter_offsets(self, config, offsets):
        for partition, offset in offsets:
            if not partition or not ({"table", "query"} & set(partition)):
                raise ConnectError(f'The source partition {partition!r} must be {{"table": "<full name>", "protocol": "1"}} or {{"query": "query"}}.')
            if offset is not None:
                Place.of(offset)
        return True

    # --- Tables ----------------------------------------------------------------------------------------------------------
    def _look(self):
        """List the tables; return whether the list has changed."""
        parsed, dialect = self._parsed, self._database.dialect
        try:
            found = dialect.tables(self._database.connection, parsed["table.types"], parsed["catalog.pattern"], parsed["schema.pattern"])
            dialect.end_read(self._database.connection)
        except dialect.error as error:
            self._database.drop()
            raise ConnectError(f"Cannot list the tables of {self._database.location.shown}: {dialect.said(error)}") from error
        tables = sorted(table for table in found if self._choice.take(table))
        if not parsed["topic.qualified"]:
            _refuse_same_names(tables)
        if not tables:
            log.warning(
                "No table of %s passes the filters (%d tables found). Check table.*, schema.pattern and catalog.pattern",
                self._database.location.shown,
                len(found),
            )
        changed, self._tables = tables != self._tables, tables
        return changed

    def _watch(self):
        pause = self._parsed["table.poll.interval.ms"] / 1000
        while not self._stopped.wait(pause):
            try:
                if self._look():
                    log.info("The list of tables has changed: assigning the tables to tasks again")
                    self.context.request_task_reconfiguration()
            except ConnectError as error:
                if not self._stopped.is_set():
                    log.warning("%s Retrying in %.0f s", error, pause)


class JdbcSourceTask(SourceTask):
    """Reads its share of the tables, one query at a time, each table when its poll interval is over."""

    java_name = "io.confluent.connect.jdbc.source.JdbcSourceTask"

    def start(self, config):
        self.config = config
        parsed = self._parsed = TASK.parse(config)
        self._stopped = threading.Event()
        self._database = Database(parsed, self._stopped)
        dialect = self._database.dialect
        numeric = parsed["numeric.mapping"] or ("precision_only" if parsed["numeric.precision.mapping"] else "none")
        mapping = Mapping(
            numeric.lower(),
            parsed["timestamp.granularity"], parsed["db.timezone"],
        )  # fmt: skip
        self._pause = parsed["poll.interval.ms"] / 1000
        self._failures = 0
        self._readers = []
        for table in [None] if _is_query(parsed) else map(dialect.table, parsed["tables"]):
            reader = TableReader(parsed, dialect, mapping, table, Place())
            if parsed["mode"].lower() != BULK:
                stored = stored_place(self.context.offset_reader, reader.partition, table, self._database.location.database)
                reader = TableReader(parsed, dialect, mapping, table, stored)
            self._readers.append(reader)

    def poll(self):
        if self._stopped.is_set():
            return None
        reader = next((each for each in self._readers if each.is_reading), None) or min(self._readers, key=lambda each: each.due, default=None)
        if reader is None or not reader.is_reading and not self._is_due(reader):
            return None
        dialect = self._database.dialect
        try:
            batch = reader.next(self._database.connection)
        except dialect.error as error:
            reader.forget()
            self._failed(error)
            return None
        self._failures = 0
        if batch is None:
            reader.due = time.monotonic() + self._pause
        return batch

    def _is_due(self, reader):
        wait = reader.due - time.monotonic()
        if wait > 0:
            self._stopped.wait(min(wait, IDLE_SECONDS))
        return reader.due <= time.monotonic() and not self._stopped.is_set()

    def _failed(self, error):
        dialect, most = self._database.dialect, self._parsed["query.retry.attempts"]
        self._database.drop()
        if self._stopped.is_set():
            return
        self._failures += 1
        where, said = self._database.location.shown, dialect.said(error, trimmed=bool(self._parsed["query.masked"].value))
        if dialect.blame(error) != PASSING:
            raise ConnectError(f"The query to {where} failed: {said}") from (None if self._parsed["query.masked"].value else error)
        if 0 <= most < self._failures:
            raise ConnectError(f"The query to {where} failed {self._failures} times, more than query.retry.attempts allows: {said}") from error
        log.warning("The query to %s failed and is retried: %s", where, said)
        self._stopped.wait(RETRY_SECONDS)

    def stop(self):
        self._stopped.set()
        self._database.interrupt()

    def close(self):
        if any(reader.is_reading for reader in self._readers):
            self._database.interrupt()
        for reader in self._readers:
            reader.forget()
        self._database.drop()


def _is_query(parsed):
    return bool(parsed["query"] or (parsed["query.masked"] and parsed["query.masked"].value))


def _errors(parsed):
    """Return {key: message} for errors that involve several keys or the URL."""
    errors = {}
    mode = parsed["mode"].lower()
    if not parsed["connection.url"]:
        errors["connection.url"] = "is missing: set the jdbc: URL of the database"
    else:
        try:
            Database(parsed)
        except ConfigError as error:
            errors.update(error.errors)
    if not mode:
        errors["mode"] = "is missing: set bulk, incrementing, timestamp or timestamp+incrementing"
    filters = [name for name in ("table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list") if parsed[name]]
    old, new = [name for name in filters if name.endswith("list") and "." not in name[6:]], [name for name in filters if name.endswith(".list")]
    if len(old) > 1 or old and new:
        errors[filters[-1]] = f"cannot be combined with {filters[0]}: use table.whitelist or table.blacklist alone"
    if filters and _is_query(parsed):
        errors["query"] = f"cannot be combined with {filters[0]}: the connector reads either a query or tables"
    if parsed["query"] and parsed["query.masked"] and parsed["query.masked"].value:
        errors["query.masked"] = "cannot be combined with query"
    if mode in (TIMESTAMP, f"{TIMESTAMP}+{INCREMENTING}") and not parsed["timestamp.column.name"] and not parsed["timestamp.columns.mapping"]:
        errors["timestamp.column.name"] = f"is missing: mode={mode} requires it or timestamp.columns.mapping"
    return errors


def _refuse_same_names(tables):
    names = [table.name for table in tables]
    twice = next((table for table in tables if names.count(table.name) > 1), None)
    if twice is not None:
        full = ", ".join(table.full for table in tables if table.name == twice.name)
        raise ConnectError(
            f"Tables with the same name would share one topic: {full}. Select one with schema.pattern or table.include.list, or set "
            f"topic.qualified=true, which adds the schema to the topic names."
        )


JdbcSourceConnector.task_class = JdbcSourceTask
