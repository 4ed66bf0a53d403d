"""SinkTaskContext: requests of a sink task, carried out between puts."""

from standalone.connector import SinkTaskContext
from standalone.errors import ConnectError, RetriableError
from standalone.pipeline.spark.job import SparkGone
from standalone.runtime.tasks.assigned import shown


class SinkContext(SinkTaskContext):
    """`put_back(pairs)` has the runner fetch records again that the chain has not delivered; `reporter()` returns an ErrantRecordReporter or
    None; `spark(work)` runs work in the worker's Spark session."""

    def __init__(self, connector, number, config, assigned, put_back, reporter, spark=None):
        self.connector = connector
        self.task = number
        self.configs = config
        self._assigned = assigned
        self._put_back = put_back
        self._reporter = reporter
        self._spark = spark
        self._commit = False
        self._rewinds = {}
        self._timeout = None

    # ---------------------------------------------------------------- called by the task
    def assignment(self):
        return set(self._assigned.open)

    def offset(self, offsets):
        self._must_be_ours(offsets, "read from another offset")
        self._rewinds.update(offsets)

    def pause(self, *partitions):
        self._must_be_ours(partitions, "paused")
        self._assigned.pause(set(partitions))
        self._put_back(set(partitions))

    def resume(self, *partitions):
        self._must_be_ours(partitions, "resumed")
        self._assigned.resume(set(partitions))

    def errant_record_reporter(self):
        return self._reporter()

    def spark(self, work):
        try:
            return self._spark(work)
        except SparkGone as error:
            raise RetriableError(f"{error}") from error

    def request_commit(self):
        self._commit = True

    def timeout(self, ms):
        self._timeout = ms / 1000

    # ---------------------------------------------------------------- called by the runner
    def take_timeout(self, default=float("inf")):
        seconds, self._timeout = self._timeout, None
        return default if seconds is None else seconds

    def take_commit(self):
        asked, self._commit = self._commit, False
        return asked

    def take_rewinds(self):
        """{pair: offset}"""
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def release(self, pairs):
        """Forget rewinds of revoked partitions: if they are assigned again, they start at the committed offset."""
        self._rewinds = {pair: offset for pair, offset in self._rewinds.items() if pair not in pairs}

    def _must_be_ours(self, partitions, what):
        strange = set(partitions) - self._assigned.open
        if strange:
            raise ConnectError(f"{shown(strange)} cannot be {what} by this task: not assigned to it.")
