"""A connection with several requests in flight, each with a handler for its response.

Only `wait` blocks, on many links and a waker at once; `Link.serve` handles received responses.
"""

import collections
import contextlib
import os
import select
import threading

from standalone.errors import LogError
from standalone.log.broker_errors import timed_out


class Link:
    """Requests in order on one connection; each handler is called once: handler(response, None) or handler(None, error)."""

    def __init__(self, connection, node, clock, timeout_s):
        self.node = node
        self.connection = connection
        self._clock, self._timeout_s = clock, timeout_s
        self._awaited = collections.deque()  # (correlation, deadline, handler, read)
        self.closed = False

    def send(self, request, handler, timeout_s=None, ceiling=None, read=None, client_id=None):
        """`read(body, version)` decodes the response; without it kafka-python does."""
        try:
            correlation = self.connection.send(request, ceiling, client_id)
        except LogError as error:
            self.close(error)
            raise
        deadline = self._clock.monotonic() + (timeout_s or self._timeout_s)
        self._awaited.append((correlation, deadline, handler, read))

    @property
    def busy(self):
        return bool(self._awaited)

    @property
    def deadline(self):
        """When the oldest request times out."""
        return self._awaited[0][1] if self._awaited else float("inf")

    @property
    def usable(self):
        return not self.closed and not (self.connection.stale and not self._awaited)

    def serve(self):
        """Handle received responses; return whether there was one."""
        served = False
        while self._awaited and not self.closed:
            try:
                received = self.connection.receive(0)
                if received is None:
                    if self._clock.monotonic() >= self.deadline:
                        raise timed_out(f"The broker at {self.connection.name} has not answered in time.")
                    return served
                correlation, body = received
                expected, _, handler, read = self._awaited[0]
                if read is not None and correlation == expected:
                    _, version = self.connection.forget(correlation)
                    answer = read(body, version)
                else:
                    answer = self.connection.decode(correlation, body)
            except LogError as error:
                self.close(error)
                return True
            self._awaited.popleft()
            served = True
            handler(answer, None)
        return served

    def close(self, error=None):
        """Close the connection; pending requests fail with `error`, or are dropped without one."""
        if self.closed:
            return
        self.closed = True
        self.connection.close()
        awaited, self._awaited = self._awaited, collections.deque()
        if error is not None:
            for _, _, handler, _ in awaited:
                handler(None, error)


class Waker:
    """Interrupts `wait` from any thread."""

    def __init__(self):
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._lock = threading.Lock()  # a late `wake` must not write to a file that reuses the closed pipe's descriptor
        self._closed = False

    def wake(self):
        with self._lock, contextlib.suppress(BlockingIOError):  # a full pipe also wakes
            if not self._closed:
                os.write(self._in, b"!")

    def drain(self):
        with contextlib.suppress(BlockingIOError):
            os.read(self._out, 4096)

    def fileno(self):
        return self._out

    def close(self):
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._out)
                os.close(self._in)


def wait(links, waker, seconds, underway=()):
    """Wait until a link has a response, an item of `underway` can continue, the waker is woken, or the timeout."""
    awaited = [link for link in links if link.busy and not link.closed]
    if any(link.connection.has_buffered() for link in awaited):
        seconds = 0
    poller = select.poll()
    for link in awaited:
        poller.register(link.connection, select.POLLIN)
    for each in underway:
        each.register(poller)
    poller.register(waker, select.POLLIN)
    if any(fd == waker.fileno() for fd, _ in poller.poll(max(0, seconds) * 1000 + 0.5 if seconds > 0 else 0)):
        waker.drain()
