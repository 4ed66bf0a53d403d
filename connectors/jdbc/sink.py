"""JdbcSink: writes records to database tables.

sink_fields.py    columns and keys of a record    sink_writer.py    writes rows, finds bad records
sink_table.py     creates and alters tables       sink_offsets.py   exactly-once offsets
"""

import logging
import threading

from connectors.jdbc import keys
from connectors.jdbc.database import Database
from connectors.jdbc.dialects.base import PASSING
from connectors.jdbc.sink_keys import KAFKA, NONE, RECORD_KEY, SINK, UPDATE, UPSERT
from connectors.jdbc.sink_offsets import StoredOffsets
from connectors.jdbc.sink_writer import BadRecord, Writer
from standalone import ConfigError, ConnectError, RetriableError, SinkConnector, SinkTask

log = logging.getLogger(__name__)


class JdbcSinkConnector(SinkConnector):
    """Write records to the tables of a database, by insert, upsert or update, each put in one transaction."""

    java_name = "io.confluent.connect.jdbc.JdbcSinkConnector"
    config_def = SINK
    passing = keys.PASSING

    def validate(self, config):
        try:
            return _errors(SINK.parse(config))
        except ConfigError as error:
            return {name: message for name, message in error.errors.items() if name not in SINK}

    def start(self, config):
        self.config = config
        errors = _errors(SINK.parse(config))
        if errors:
            raise ConfigError.of(errors, "JdbcSink cannot start")

    def task_configs(self, max_tasks):
        return [dict(self.config) for _ in range(max_tasks)]

    def alter_offsets(self, config, offsets):
        parsed = SINK.parse(config)
        if parsed["exactly.once"]:
            database = Database(parsed)
            try:
                StoredOffsets(database.dialect, parsed, config["name"]).alter(database.connection, offsets)
            except database.dialect.error as error:
                raise ConnectError(f"The offsets in {database.location.shown} cannot be changed: {database.dialect.said(error)}") from error
            finally:
                database.drop()
        return True


class JdbcSinkTask(SinkTask):
    java_name = "io.confluent.connect.jdbc.sink.JdbcSinkTask"
    takes_batches = True

    _database = None

    def start(self, config):
        self.config = config
        parsed = SINK.parse(config)
        self._database = Database(parsed, threading.Event())
        self._dialect = self._database.dialect
        self._offsets = StoredOffsets(self._dialect, parsed, self.context.connector) if parsed["exactly.once"] else None
        self._writer = Writer(self._dialect, parsed, self._offsets)
        self._most, self._pause_ms = parsed["max.retries"], parsed["retry.backoff.ms"]
        self._trims = parsed["trim.sensitive.log"]
        self._failures = 0
        self._reporter = self.context.errant_record_reporter()

    def open(self, partitions):
        if self._offsets is not None:
            self._go_on_from_stored(partitions)

    def prepare(self, batch):
        return self._writer.prepare(batch)

    def put(self, records):
        if not records:
            return
        try:
            bad = self._writer.write(self._database.connection, records, finds_bad=self._reporter is not None)
        except BadRecord as bad_record:
            self._back()
            raise ConnectError(f"{_where(bad_record.record)} cannot be written: {self._said(bad_record.error)}") from bad_record.error
        except self._dialect.error as error:
            self._failed(error)
        except BaseException:
            self._back()
            raise
        self._failures = 0
        for record, error in bad:
            self._reporter.report(record, error if isinstance(error, ConnectError) else ConnectError(f"The database rejects it: {self._said(error)}"))

    def _said(self, error):
        return self._dialect.said(error, self._trims) if isinstance(error, self._dialect.error) else str(error)

    def _go_on_from_stored(self, partitions):
        try:
            stored = self._offsets.read(self._database.connection, partitions)
        except self._dialect.error as error:
            self._back()
            raise ConnectError(f"The offsets in {self._database.location.shown} cannot be read: {self._said(error)}") from error
        if stored:
            self.context.offset(stored)

    def _failed(self, error):
        """The put was rolled back; if the connection was lost during the commit, the put may also be in the database."""
        self._back()
        where, said = self._database.location.shown, self._said(error)
        if self._dialect.blame(error) != PASSING:
            raise ConnectError(f"{where} rejected the records: {said}") from error
        self._failures += 1
        if self._failures > self._most:
            raise ConnectError(f"{where} could not be written to in {self._failures} attempts (max.retries={self._most}): {said}") from error
        self.context.timeout(self._pause_ms)
        raise RetriableError(f"{where} could not be written to; retrying: {said}") from error

    def _back(self):
        """Reconnect next time, and forget what the lost transaction may have changed."""
        self._database.drop()
        self._writer.forget()

    def close(self, partitions):
        if self._offsets is not None:
            self._offsets.release(partitions)

    def stop(self):
        if self._database is not None:
            self._database.drop()


def _where(record):
    return f"The record at offset {record.original_offset} of {record.origin[0]}-{record.origin[1]}"


def _errors(parsed):
    errors = {}
    mode, insert = parsed["pk.mode"].lower(), parsed["insert.mode"].lower()
    try:
        Database(parsed)
    except ConfigError as error:
        errors.update(error.errors)
    if insert in (UPSERT, UPDATE) and mode == NONE:
        errors["pk.mode"] = f"must not be none with insert.mode={insert}, which finds rows by their key"
    if parsed["delete.enabled"] and mode != RECORD_KEY:
        errors["delete.enabled"] = "needs pk.mode=record_key: a tombstone has only a key"
    if mode == KAFKA and len(parsed["pk.fields"]) not in (0, 3):
        errors["pk.fields"] = "must be empty or three columns with pk.mode=kafka: for topic, partition and offset"
    return errors


JdbcSinkConnector.task_class = JdbcSinkTask
