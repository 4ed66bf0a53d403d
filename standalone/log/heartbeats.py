"""Heartbeats: keeps every group membership of the process alive from one thread, however long its task is busy."""

import threading

from standalone.errors import LogError, LogRetriableError
from standalone.log.link import Link, Waker, wait


class Heartbeats:
    """`run` wants a thread of its own, which the caller gives it; `add`, `remove` and `stop` may come from any."""

    def __init__(self, clock):
        self._clock = clock
        self._lock = threading.Lock()
        self._groups = set()
        self._links = {}  # (cluster, node) -> Link: one connection serves all groups that a broker coordinates
        self._waker = Waker()
        self._stopped = False

    def add(self, group):
        with self._lock:
            self._groups.add(group)
        self._waker.wake()

    def remove(self, group):
        with self._lock:
            self._groups.discard(group)

    def run(self):
        """Until `stop`."""
        while not self._stopped:
            self.turn()
        for link in self._links.values():
            link.close()
        self._waker.close()

    def stop(self):
        self._stopped = True
        self._waker.wake()

    def turn(self, most_seconds=1.0):
        """Send what is due and hear what comes, until something is due again or `most_seconds` have passed."""
        with self._lock:
            groups = list(self._groups)
        unreachable = {}  # cluster -> error: one cluster that is down must not hold up the heartbeats to another
        for group in groups:
            if group.heartbeat_due() <= self._clock.monotonic():
                self._send(group, unreachable)
        links = list(self._links.values())
        now = self._clock.monotonic()
        next_due = min([group.heartbeat_due() for group in groups] + [link.deadline for link in links] + [now + most_seconds])
        wait(links, self._waker, next_due - now)
        for link in links:
            link.serve()

    def _send(self, group, unreachable):
        node = None
        try:
            if group.cluster in unreachable:
                raise unreachable[group.cluster]
            node = group.heartbeat_node()
            link = self._link(group.cluster, node)
        except LogError as error:
            unreachable[group.cluster] = error
            group.heartbeat_failed(node, error)
            return
        request, handler = group.heartbeat(node)
        try:
            link.send(request, handler)
        except LogRetriableError as error:
            group.heartbeat_failed(node, error)

    def _link(self, cluster, node):
        link = self._links.get((cluster, node))
        if link is None or not link.usable:
            link = Link(cluster.connect(node), node, self._clock, cluster.config.seconds("request.timeout.ms"))
            self._links[cluster, node] = link
        return link
