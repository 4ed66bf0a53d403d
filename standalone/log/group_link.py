"""The base of both group protocols: the link to the coordinator, and non-blocking requests to it.

The subclasses join and receive assignments: group.py (classic) and consumer_protocol.py (KIP-848).
"""

import threading

from standalone.errors import LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, java_class, timed_out
from standalone.log.commits import Commits
from standalone.log.link import Link, wait
from standalone.log.retry import Backoff, Outage
from standalone.log.steps import Underway
from standalone.log.subscription import ASK_SECONDS

REVOKED, LOST, ASSIGNED = "revoked", "lost", "assigned"  # events that `advance` reports to the consumer


class GroupLink:
    """Used by the task's thread while it holds `acting`, except the methods under "for Heartbeats"; when those learn something, they wake
    the task through `waker`."""

    def __init__(self, cluster, config, clock, waker, group_id, instance_id=None):
        self.cluster, self.group_id, self.instance_id = cluster, group_id, instance_id
        self.client_id = cluster.client_id
        self._config, self._clock, self._waker = config, clock, waker
        self.commits = Commits(self, cluster, config, clock, waker)
        self._backoff = Backoff(config, "retry.backoff")
        self._link = None
        self._opening = self._asking = None  # Underway: connecting to the coordinator; fetching topic metadata
        self._unsent = []  # (request, handler, timeout, ceiling), queued without a connection
        self._outage = Outage(f"Group {group_id}: its coordinator answers again.")
        self.acting = threading.RLock()  # held by whoever acts for the member: its task during poll, Heartbeats otherwise
        self._is_kept, self._unheard = False, []  # whether Heartbeats acts; responses to pass to the task
        self._lock = threading.Lock()  # guards what the heartbeat thread shares
        self._coordinator = None
        self._polling, self._last_poll = False, clock.monotonic()

    @property
    def links(self):
        return [self._link] if self._link is not None else []

    def polling(self, now_polling):
        """Set whether the task is inside `poll`: max.poll.interval.ms counts while it is not."""
        with self._lock:
            self._polling, self._last_poll = now_polling, self._clock.monotonic()

    def answered(self):
        self._outage.ends()

    def _is_away(self, now):
        """Whether the task has exceeded max.poll.interval.ms; holds the lock."""
        return not self._polling and now - self._last_poll > self._config.seconds("max.poll.interval.ms")

    _AWAY = ("Group %s: the task has not polled for %d ms (max.poll.interval.ms): it leaves the group, and uncommitted records "
             "will be redelivered.")

    def _fatal(self, code, what, message=None):
        if code == codes.FENCED_INSTANCE_ID:
            return LogFatalError(
                f"{what}: another member has taken group.instance.id '{self.instance_id}'. Another worker runs the same connector "
                "with the same state: stop one of the two, or give each its own state.dir.",
                java_class("FencedInstanceIdException"),
            )
        error = broker_error(code, what, message)
        return LogFatalError(" ".join(filter(None, [str(error), self._hints().get(code)])), error.java_class)

    def _hints(self):
        """Return {error code: what to do about it}."""
        return {}

    # ---- the coordinator

    def send(self, request, handler, timeout_s=None, ceiling=None):
        """Send to the coordinator, now or once it is found and connected; `handler(None, error)` if that fails."""
        self._unsent.append((request, handler, timeout_s, ceiling))
        if self._opening is not None:
            return
        if self._link is not None and self._link.usable and self._link.node == self._coordinator:
            self._send_unsent()
        else:
            self._opening = Underway(self._reaching_coordinator(), self._reached)
            self._opening.advance()

    def _reaching_coordinator(self):
        node = self._coordinator or (yield from self.finding_coordinator())
        if self._link is not None and self._link.usable and self._link.node == node:
            return self._link
        connection = yield from self.cluster.connecting(node)
        return Link(connection, node, self._clock, self._config.seconds("request.timeout.ms"))

    def _reached(self, link, error):
        self._opening = None
        if error is None:
            former, self._link = self._link, link
            if former is not None and former is not link:
                former.close(LogRetriableError(f"The connection to the coordinator of group '{self.group_id}' is being replaced."))
            return self._send_unsent()
        self.forget_coordinator()
        unsent, self._unsent = self._unsent, []
        for _, handler, _, _ in unsent:
            handler(None, error)

    def _send_unsent(self):
        unsent, self._unsent = self._unsent, []
        for request, handler, timeout_s, ceiling in unsent:
            try:
                self._link.send(request, handler, timeout_s, ceiling)
            except LogRetriableError as error:
                handler(None, error)

    @property
    def underway(self):
        """Return pending lookups and connections as Underway steps (steps.py) of the task's thread."""
        return [each for each in (self._opening, self._asking) if each is not None]

    def forget_coordinator(self):
        """Drop the coordinator after it has reported that it is not the coordinator or not available."""
        with self._lock:
            self._coordinator = None

    def wait_for(self, outcome, deadline, what):
        """Serve this link until the response to a request has filled `outcome`."""
        while not outcome:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise timed_out(f"{what}: no answer in time.")
            wait(self.links, self._waker, min([left, *(each.until - self._clock.monotonic() for each in self.underway)]), self.underway)
            self.serve()

    def for_task(self, handler):
        """Wrap a handler so that it runs on the task's thread only."""

        def heard(answer, error):
            if self._is_kept:
                self._unheard.append((handler, answer, error))
            else:
                handler(answer, error)

        return heard

    def hear(self):
        """Handle the responses that arrived for the task while it was busy."""
        while self._unheard:
            handler, answer, error = self._unheard.pop(0)
            handler(answer, error)

    def serve(self):
        """Handle received responses and continue pending steps."""
        if not self._is_kept:
            self.hear()
        for link in self.links:
            link.serve()
        for each in self.underway:
            each.advance()

    # ---- for Heartbeats, on its thread

    def keep_place(self):
        """Act for a busy task where the group cannot wait for it."""

    @property
    def coordinator(self):
        """The Node to send heartbeats to, or None if unknown."""
        return self._coordinator

    def finding_coordinator(self):
        """Steps (steps.py) to find the coordinator."""
        node = yield from self.cluster.finding_coordinator(self.group_id, ASK_SECONDS)
        with self._lock:
            self._coordinator = node
        return node

