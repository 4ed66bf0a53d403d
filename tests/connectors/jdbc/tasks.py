"""A JDBC source's tasks polled by hand, with the offsets that a worker would have stored."""

import json

from connectors.jdbc.source import JdbcSourceConnector, JdbcSourceTask
from standalone.connector import OffsetReader
from tests.connectors.polled import PolledTask


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
        """The connector's only task, begun after a record or from offsets, {partition as JSON: offset}."""
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


class DrivenTask(PolledTask):
    def __init__(self, config, reader):
        super().__init__(JdbcSourceTask(), config, reader)

    def poll(self):
        found = self._task.poll()
        return [] if found is None else found.records()

    def close(self):
        self._task.stop()
        self._task.close()
