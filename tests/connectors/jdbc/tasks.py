"""A JDBC source's tasks polled by hand, with the offsets that a worker would have stored."""

import json
import time

from connectors.jdbc.source import JdbcSourceConnector, JdbcSourceTask
from standalone.connector import OffsetReader, SourceTaskContext
from tests.suite.patience import PATIENCE_SECONDS

QUIET_POLLS = 3


def canonical(partition):
    return json.dumps(partition, sort_keys=True)


class Stored(OffsetReader):
    def __init__(self, offsets):
        self._offsets = {canonical(json.loads(partition)): offset for partition, offset in offsets.items()}

    def offset(self, partition):
        return self._offsets.get(canonical(partition))


class SourceDriver:
    def __init__(self, database):
        self._database = database
        self._tasks = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for task in self._tasks:
            task.close()

    def start(self, stored=None, offsets=None, **options):
        """The connector's only task, begun behind a record or from offsets, {partition as JSON: offset}."""
        config = {"name": "tested", "connection.url": self._database.url, "poll.interval.ms": "1", "topic.prefix": "t-", **options}
        if "query" not in config:
            config = {**self._database.tables, **config}
        connector = JdbcSourceConnector()
        connector.start(config)
        try:
            configs = connector.task_configs(1)
        finally:
            connector.stop()
        if stored is not None:
            offsets = {canonical(stored.source_partition): stored.source_offset}
        task = DrivenTask(configs[0], Stored(offsets or {}))
        self._tasks.append(task)
        return task


class DrivenTask:
    def __init__(self, config, reader):
        context = SourceTaskContext()
        context.connector, context.task, context.configs, context.offset_reader = "tested", 0, config, reader
        self._task = JdbcSourceTask()
        self._task.initialize(context)
        self._task.start(config)
        self._rest = []

    def poll(self):
        found = self._task.poll()
        return [] if found is None else found.records()

    def take(self, count, is_all=True):
        """So many records; with `is_all` no more may follow them."""
        records, deadline = self._rest, time.monotonic() + PATIENCE_SECONDS
        while len(records) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count} records came: {[record.value for record in records]}"
            records += self.poll()
        self._rest = records[count:]
        for _ in range(QUIET_POLLS if is_all else 0):
            self._rest += self.poll()
        assert not (is_all and self._rest), f"more than {count} records: {[record.value for record in self._rest]}"
        return records[:count]

    def close(self):
        self._task.stop()
        self._task.close()
