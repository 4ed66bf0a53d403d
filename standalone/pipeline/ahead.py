"""A sink's batches in order, one ahead of its task where that is of use: while the task puts what came of one, processes of our own
(processes.py) are at the next.
"""

import collections

Done = collections.namedtuple("Done", "topic partition records result")


class Ahead:
    """Of one pipeline. What is under way is forgotten when its partition is given up, or is not to be put now."""

    def __init__(self, pipeline):
        self._pipeline = pipeline
        self._begun = None

    @property
    def is_busy(self):
        return self._begun is not None

    def work(self, topic, partition, records):
        """[Done]: what was under way, and this unless it now is."""
        before, self._begun = self._begun, None
        self._begun = self._pipeline.begin_sink(topic, partition, records, before)
        done = [] if before is None else [self._end(before)]
        return done if self.is_busy else [*done, Done(topic, partition, records, self._pipeline.sink(topic, partition, records))]

    def finish(self):
        """[Done] of what is under way."""
        before, self._begun = self._begun, None
        return [] if before is None else [self._end(before)]

    def forget(self, pairs):
        """Let go of what is under way if it is of these partitions: its (topic, partition) and first offset, or None."""
        if self._begun is None or (self._begun.topic, self._begun.partition) not in pairs:
            return None
        begun, self._begun = self._begun, None
        begun.job.abandon()
        return (begun.topic, begun.partition), int(begun.records.offsets[0])

    def _end(self, begun):
        return Done(begun.topic, begun.partition, begun.records, self._pipeline.end_sink(begun))
