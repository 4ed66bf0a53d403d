"""RelayedGroup: the group of a consumer whose membership lives in another process, which assigns partitions and commits for it.

The other process is an ordinary member (group.py): the broker fences commits by its membership, and it alone assigns partitions here. `relay`
connects to it: commit({pair: (offset, metadata, epoch)}, seconds), which raises LogError, and released(pairs).
"""

import collections
import contextlib
import threading

from standalone.errors import LogError
from standalone.log.commits import Committed
from standalone.log.group_link import ASSIGNED, LOST, REVOKED


class RelayedGroup:
    """`give`, `take_back` and `lose` may be called from any thread, everything else from the consumer's."""

    links: list = []
    underway: list = []
    watched: set = set()
    wakes_at = float("inf")

    def __init__(self, relay, waker):
        self.commits = self
        self.acting = contextlib.nullcontext()  # no other thread acts for it
        self._relay, self._waker = relay, waker
        self._lock = threading.Lock()
        self._events = collections.deque()
        self._marks = {}  # pair -> Committed, the group's commits

    # ---- called by the relay

    def give(self, pairs):
        """Assign more partitions: {pair: (offset, metadata, epoch), or None without a commit}."""
        self._tell(ASSIGNED, pairs)

    def take_back(self, pairs):
        """Revoke these after their records are committed."""
        self._tell(REVOKED, pairs)

    def lose(self, pairs):
        """These already belong to another member."""
        self._tell(LOST, pairs)

    def _tell(self, event, pairs):
        with self._lock:
            self._events.append((event, pairs))
        self._waker.wake()

    # ---- the interface of a consumer's group

    def advance(self):
        with self._lock:
            if not self._events:
                return None
            event, pairs = self._events[0]
            if event is ASSIGNED:
                self._marks.update(pairs)
            return event, sorted(pairs)

    def taken(self, pairs):
        self._done()

    def let_go(self, event, pairs):
        with self._lock:
            asked = list(self._events[0][1])
            for pair in asked:
                self._marks.pop(pair, None)
        self._done()
        if event is REVOKED:
            self._relay.released(asked)

    def _done(self):
        with self._lock:
            self._events.popleft()

    def hear(self):
        """Nothing to do: the relay calls back."""

    def subscribe(self, topics):
        """Nothing to do: the member subscribes."""

    def polling(self, now_polling):
        """Nobody counts: a task that is silent loses its control channel."""

    def partitions_counted(self, counts):
        """Nothing to do: the member watches them."""

    def close(self, timeout_s, leave=True):
        """The control channel ends with the task."""

    # ---- commits

    def write(self, offsets, timeout_s):
        self._relay.commit(offsets, timeout_s)

    def write_async(self, offsets, on_done):
        try:
            self._relay.commit(offsets, None)
        except LogError as error:
            on_done(error)
        else:
            on_done(None)

    def read(self, pairs, timeout_s):
        with self._lock:
            found = {pair: self._marks.get(pair) for pair in pairs}
        return {pair: Committed(*mark) for pair, mark in found.items() if mark is not None}

    def read_async(self, pairs, on_done):
        on_done(self.read(pairs, None), None)
