"""Heartbeats: keeps all group memberships of the process alive from one thread, even while their tasks are busy.

It never waits for one broker: while one coordinator is looked up or connected to, the others are served. And no response ends the thread:
a group that cannot process one retries.
"""

import functools
import logging
import threading

from standalone.errors import LogRetriableError
from standalone.log.link import Link, Waker, wait
from standalone.log.retry import Backoff
from standalone.log.steps import Underway

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.25  # heartbeats due within it are sent together, so that a hundred members do not wake this thread a hundred times


class Heartbeats:
    """`run` needs its own thread, provided by the caller; `add`, `remove` and `stop` may be called from any thread."""

    def __init__(self, clock):
        self._clock = clock
        self._lock = threading.Lock()
        self._groups = set()
        self._brokers = {}  # (cluster, node) -> _Broker: one connection for all groups with this coordinator
        self._lookups = {}  # group -> Underway, the coordinator lookup
        self._waker = Waker()
        self._look_at = 0
        self._stopped = False

    def add(self, group):
        with self._lock:
            self._groups.add(group)
        self._waker.wake()

    def remove(self, group):
        with self._lock:
            self._groups.discard(group)

    def run(self):
        """Run until `stop`."""
        while not self._stopped:
            self.turn()
        for each in [*self._lookups.values(), *self._brokers.values()]:
            each.close()
        self._waker.close()

    def stop(self):
        self._stopped = True
        self._waker.wake()

    def turn(self):
        """Send the heartbeats that are due, then handle responses until the next are."""
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look_at = self._send_due(now)
        links = [broker.link for broker in self._brokers.values() if broker.link is not None]
        underway = self._underway()
        until = min([self._look_at, *(link.deadline for link in links), *(each.until for each in underway)])
        wait(links, self._waker, until - self._clock.monotonic(), underway)
        for link in links:
            self._guarded(link.serve, link)
        for each in underway:
            self._guarded(each.advance)
        self._lookups = {group: lookup for group, lookup in self._lookups.items() if not lookup.over}

    def _underway(self):
        opening = [broker.opening for broker in self._brokers.values() if broker.opening is not None]
        return [*self._lookups.values(), *opening]

    def _guarded(self, act, link=None):
        """Contain errors to one response or group: all others need this thread."""
        try:
            return act()
        except Exception as problem:
            log.exception("A heartbeat response could not be processed; retrying")
            if link is not None:
                self._guarded(functools.partial(link.close, LogRetriableError(f"The connection is closed: {problem}.")))

    def _send_due(self, now):
        """Return when to check again."""
        with self._lock:
            groups = list(self._groups)
        look_at = now + min([_LOOK_SECONDS, *(group.heartbeat_seconds / 4 for group in groups)])
        for group in groups:
            self._guarded(group.keep_place)
            if group.heartbeat_due() <= look_at:
                self._guarded(functools.partial(self._send, group, now))
        return look_at

    def _send(self, group, now):
        node = group.coordinator
        if node is None:
            if group not in self._lookups:
                self._lookups[group] = Underway(group.finding_coordinator(), functools.partial(self._looked_up, group))
            return
        key = group.cluster.shared, node
        broker = self._brokers.get(key)
        if broker is None:
            broker = self._brokers[key] = _Broker(node, group.cluster, self._clock)
        if broker.link is not None and not broker.link.usable:
            broker.hang_up()
        if broker.link is None:
            broker.open(now)
            if broker.failure is not None:
                group.heartbeat_failed(node, broker.failure)
            return
        heartbeat = group.heartbeat(node)
        if heartbeat is None:
            return  # its task has just sent one
        request, handler = heartbeat
        try:
            broker.link.send(request, handler, client_id=group.client_id)
        except LogRetriableError as error:
            group.heartbeat_failed(node, error)

    def _looked_up(self, group, node, error):
        if error is not None:
            group.heartbeat_failed(None, error)
        self._look_at = 0


class _Broker:
    """A coordinator's connection, opened without blocking, with backoff between attempts."""

    def __init__(self, node, cluster, clock):
        self.link = None
        self.opening = None  # Underway
        self.failure = None  # why the last attempt failed
        self._node, self._cluster, self._clock = node, cluster, clock
        self._backoff, self._not_before = Backoff(cluster.config, "reconnect.backoff"), 0

    def open(self, now):
        if self.opening is None and now >= self._not_before:
            self.failure = None
            self.opening = Underway(self._cluster.connecting(self._node), self._opened)
            self.opening.advance()

    def _opened(self, connection, error):
        self.opening, self.failure = None, error
        if error is not None:
            self._not_before = self._clock.monotonic() + self._backoff.next()
            return
        self._backoff.reset()
        self.link = Link(connection, self._node, self._clock, self._cluster.config.seconds("request.timeout.ms"))

    def hang_up(self):
        self.link.close()
        self.link = None

    def close(self):
        if self.opening is not None:
            self.opening.close()
        if self.link is not None:
            self.hang_up()
