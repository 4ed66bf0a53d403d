"""Heartbeats: keeps every group membership of the process alive from one thread, however long its task is busy."""

import threading

from standalone.errors import LogError, LogRetriableError
from standalone.log.link import Link, Waker, wait

_LOOK_SECONDS = 0.25  # what is due within it goes together: a hundred members must not wake this thread a hundred times


class Heartbeats:
    """`run` wants a thread of its own, which the caller gives it; `add`, `remove` and `stop` may come from any."""

    def __init__(self, clock):
        self._clock = clock
        self._lock = threading.Lock()
        self._groups = set()
        self._links = {}  # (cluster, node) -> Link: one connection serves all groups that a broker coordinates
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
        """Until `stop`."""
        while not self._stopped:
            self.turn()
        for link in self._links.values():
            link.close()
        self._waker.close()

    def stop(self):
        self._stopped = True
        self._waker.wake()

    def turn(self):
        """Send what is due soon, and hear what comes until the next look at what is due."""
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look_at = self._send_due(now)
        links = list(self._links.values())
        wait(links, self._waker, min([self._look_at, *(link.deadline for link in links)]) - self._clock.monotonic())
        for link in links:
            link.serve()

    def _send_due(self, now):
        """When to look again."""
        with self._lock:
            groups = list(self._groups)
        unreachable = {}  # cluster -> error: one cluster that is down must not hold up the heartbeats to another
        look_at = now + min([_LOOK_SECONDS, *(group.heartbeat_seconds / 4 for group in groups)])
        for group in groups:
            if group.heartbeat_due() <= look_at:
                self._send(group, unreachable)
        return look_at

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
