"""Callbacks of a source task: commit_record for each record that is acknowledged, filtered or rejected, and commit after each sync."""

import collections
import threading

import numpy as np

from standalone.connector import SourceTask


class Acknowledgements:
    """Recorded by the sender's thread, delivered on the task's own."""

    def __init__(self, task, on_news):
        self._task = task
        self._on_news = on_news  # called, on any thread, when callbacks are pending
        self._synced = threading.Event()
        self._by_batch = type(task).commit_batch is not SourceTask.commit_batch
        self._by_record = type(task).commit_record is not SourceTask.commit_record
        self._noted = collections.deque() if self._by_batch or self._by_record else None

    def several(self, out):
        """What `note` needs for one batch: {row: [how many records came of it, the position of one of them or None]}."""
        rows = [outgoing.rows for outgoing in out if outgoing.rows is not None] if self._by_record else []
        if not rows:
            return {}
        counts = np.bincount(np.concatenate(rows))
        return {row: [int(counts[row]), None] for row in np.flatnonzero(counts > 1).tolist()}

    def note(self, batch, outgoing, delivered, several):
        if self._noted is not None:
            self._noted.append((batch, outgoing, delivered, several))
            self._on_news()

    def note_sync(self):
        """The stored offsets of the task are durable."""
        self._synced.set()
        self._on_news()

    def dropped(self, batch, out, count):
        """The first `count` rows of the batch without those that produce a record."""
        if not self._by_record:
            return
        kept = np.zeros(count, bool)
        for outgoing in out:
            kept[slice(None) if outgoing.rows is None else outgoing.rows] = True
        for row in np.flatnonzero(~kept).tolist():
            self._task.commit_record(batch.records()[row], None)

    def tell(self):
        while self._noted:
            self._tell_delivered(*self._noted.popleft())
        if self._synced.is_set():
            self._synced.clear()
            self._task.commit()

    def _tell_delivered(self, batch, outgoing, delivered, several):
        if self._by_batch:
            rows = np.arange(len(outgoing.records)) if outgoing.rows is None else outgoing.rows
            for sent, partition, base_offset, _ in delivered.acks:
                self._task.commit_batch(batch, rows[sent], outgoing.topic, partition, base_offset if base_offset >= 0 else None)
        if self._by_record:
            self._tell_records(batch, outgoing, delivered, several)

    def _tell_records(self, batch, outgoing, delivered, several):
        rows = range(len(outgoing.records)) if outgoing.rows is None else outgoing.rows.tolist()
        for sent, partition, base_offset, _ in delivered.acks:
            sent = range(*sent.indices(len(rows))) if isinstance(sent, slice) else sent.tolist()
            for at, row in enumerate(sent):
                metadata = {"topic": outgoing.topic, "partition": partition, "offset": base_offset + at if base_offset >= 0 else None}
                self._tell_of(batch, rows[row], metadata, several)
        for refused, _ in delivered.failed:
            for row in np.arange(len(rows))[refused].tolist():
                self._tell_of(batch, rows[row], None, several)

    def _tell_of(self, batch, row, metadata, several):
        """A record that came of this row is acknowledged or rejected; the task is called once, after the last such record."""
        waiting = several.get(row)
        if waiting is not None:
            waiting[0] -= 1
            metadata = waiting[1] = metadata or waiting[1]
            if waiting[0]:
                return
        self._task.commit_record(batch.records()[row], metadata)
