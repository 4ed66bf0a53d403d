"""RelayedGroup: the group of a consumer whose member is another process, which gives it partitions and commits for it.

The other process is a member as any (group.py): by its membership commits are fenced, and it alone decides who reads what. `relay` is the way
to it: commit({pair: (offset, metadata, epoch)}, seconds), which raises LogError, and released(pairs).
"""

import collections
import contextlib
import threading

from standalone.errors import LogError
from standalone.log.commits import Committed
from standalone.log.group_link import ASSIGNED, LOST, REVOKED


class RelayedGroup:
    """`give`, `take_back` and `lose` may be called from any thread, all else by the consumer's."""

    links: list = []
    underway: list = []
    watched: set = set()
    wakes_at = float("inf")

    def __init__(self, relay, waker):
        self.commits = self
        self.acting = contextlib.nullcontext()  # nobody else acts for it
        self._relay, self._waker = relay, waker
        self._lock = threading.Lock()
        self._events = collections.deque()
        self._marks = {}  # pair -> Committed, of what the group has committed

    # ---- told by the relay

    def give(self, pairs):
        """Read these, too: {pair: (offset, metadata, epoch), or None where the group has committed nothing}."""
        self._tell(ASSIGNED, pairs)

    def take_back(self, pairs):
        """Let these go, when what was put is committed."""
        self._tell(REVOKED, pairs)

    def lose(self, pairs):
        """These are another's already."""
        self._tell(LOST, pairs)

    def _tell(self, event, pairs):
        with self._lock:
            self._events.append((event, pairs))
        self._waker.wake()

    # ---- the consumer's group

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
        """What the relay says comes by itself."""

    def subscribe(self, topics):
        """The member does."""

    def polling(self, now_polling):
        """Nobody counts: a task that is silent loses its control channel."""

    def partitions_counted(self, counts):
        """The member does."""

    def close(self, timeout_s, leave=True):
        """The control channel ends with the task."""

    # ---- its commits

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
