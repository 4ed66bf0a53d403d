"""A log, a group and a consumer of it that do what a test says: who has which partitions changes at the poll that the test chose."""

import collections
import threading

import numpy as np

from standalone.errors import LogRetriableError
from standalone.log.consumer import Fetched
from standalone.wire import ByteColumn, Records


class ScriptedLog:
    """`ends` says how many records each (topic, partition) has: the value of each is its offset.

    `meanwhile(*events)` has the polls to come do these, one each: ("revoke",), ("lose",) and ("assign", pairs).
    """

    def __init__(self, ends, per_poll=3):
        self.ends = dict(ends)
        self.per_poll = per_poll
        self.committed = {}
        self.commits_fail = 0
        self.notes = []  # what the consumer was asked, in order
        self._events = collections.deque()
        self.changed = threading.Condition()

    def meanwhile(self, *events):
        with self.changed:
            self._events.extend(events)
            self.changed.notify_all()

    def next_event(self):
        return self._events.popleft() if self._events else None

    @property
    def has_events(self):
        return bool(self._events)


class ScriptedConsumer:
    """As much of log.consumer.Consumer as a sink's runner uses."""

    def __init__(self, log, listener):
        self._log, self._listener = log, listener
        self._positions = {}
        self._paused = set()
        self._woken = False

    def subscribe(self, **_):
        self._log.notes.append("subscribe")

    def poll(self, timeout_s):
        if (event := self._log.next_event()) is not None:
            self._happens(*event)
        fetched = self._fetch()
        with self._log.changed:
            if not fetched and not self._woken and not self._log.has_events:
                self._log.changed.wait(min(timeout_s, 0.02))
            self._woken = False
        return fetched

    def _happens(self, kind, pairs=()):
        if kind == "assign":
            fresh = [pair for pair in pairs if pair not in self._positions]
            self._positions.update({pair: self._log.committed.get(pair, 0) for pair in fresh})
            self._listener.on_assigned(fresh)
            return
        mine = sorted(self._positions)
        try:
            (self._listener.on_lost if kind == "lose" else self._listener.on_revoked)(mine)
        finally:
            self._positions.clear()
            self._paused.clear()

    def _fetch(self):
        fetched = []
        for pair, position in self._positions.items():
            if pair not in self._paused and position < self._log.ends[pair]:
                end = min(self._log.ends[pair], position + self._log.per_poll)
                self._positions[pair] = end
                offsets = np.arange(position, end, dtype=np.int64)
                values = ByteColumn.of([b"%d" % offset for offset in offsets.tolist()])
                fetched.append(Fetched(*pair, Records(len(offsets), None, values, None, None, offsets), self._log.ends[pair]))
        return fetched

    def pause(self, pairs):
        self._must_be_assigned(pairs)
        self._paused |= set(pairs)

    def resume(self, pairs):
        self._must_be_assigned(pairs)
        self._paused -= set(pairs)

    def seek(self, topic, partition, offset):
        self._must_be_assigned([(topic, partition)])
        self._positions[topic, partition] = offset

    def commit(self, offsets, timeout_s):
        self._must_be_assigned(offsets)
        if self._log.commits_fail:
            self._log.commits_fail -= 1
            self._log.notes.append("commit fails")
            raise LogRetriableError("not now")
        self._log.committed.update(offsets)
        self._log.notes.append(f"commit {shown(offsets)}")

    def lag(self):
        return {}

    def expect(self, max_bytes):
        pass

    def wakeup(self):
        with self._log.changed:
            self._woken = True
            self._log.changed.notify_all()

    def close(self, timeout_s, leave):
        self._log.notes.append("leave")

    def _must_be_assigned(self, pairs):
        strange = set(pairs) - set(self._positions)
        assert not strange, f"{strange} are not assigned"


def shown(offsets):
    return " ".join(f"{topic}{partition}:{offset}" for (topic, partition), offset in sorted(offsets.items()))
