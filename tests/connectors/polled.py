"""A source's task that is polled by hand, as a worker would, and how many records are taken of it."""

import time

from standalone.connector import SourceTaskContext
from tests.suite.patience import PATIENCE_SECONDS

QUIET_POLLS = 3


class PolledTask:
    def __init__(self, task, config, reader):
        context = SourceTaskContext()
        context.connector, context.task, context.configs, context.offset_reader = "tested", 0, config, reader
        self._task, self._rest = task, []
        task.initialize(context)
        task.start(config)

    def poll(self):
        """A list of records."""
        raise NotImplementedError

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
