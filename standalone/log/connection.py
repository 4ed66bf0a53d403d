"""A connection to a broker: requests out, responses in, on a blocking socket with deadlines.

kafka-python's transport reads 4 KiB at a time, which costs a thread switch per 4 KiB while another Python thread is busy. Here a
response of any size takes two calls without the GIL, and a request is sent from where it is in memory.
"""

import collections
import contextlib
import itertools
import os
import select
import socket
import struct

import numpy as np
from kafka.protocol.api_header import RequestHeader

from standalone.log import connection_setup, security, steps
from standalone.log.broker_errors import disconnected, timed_out, unsupported
from standalone.log.connection_setup import why
from standalone.log.frames import LARGEST_FRAME, SOFTWARE, header_tags, response_class

READ_AHEAD_BYTES = 64 * 1024
MOST_PARTS = os.sysconf("SC_IOV_MAX")


class Connection:
    """Connected, versions negotiated and authenticated once opened. Used by one thread at a time; only `abort` may come from another."""

    def __init__(self, host, port, config, clock, client_id=None):
        """Create it unconnected; `open` and `opening` connect it."""
        self.host, self.port = host, port
        self.versions = {}  # api key -> (lowest, highest) version that the broker supports
        self.features = {}  # name -> level of the cluster's enabled features
        self._config, self._clock = config, clock
        self.client_id = (config["client.id"] if client_id is None else client_id) or SOFTWARE[0]
        self._pending = {}  # correlation -> (response class, version)
        self._correlations = itertools.count(1)
        self._unsent = collections.deque()
        self._ahead = bytearray(READ_AHEAD_BYTES)
        self._begin = self._end = 0  # bounds of the bytes read ahead
        self._session_ends = None
        self._tls = security.uses_tls(config)
        self._io_timeout = None
        self._socket = None
        self.name = f"{host}:{port}"
        self.last_used = clock.monotonic()

    @classmethod
    def open(cls, host, port, config, clock, timeout=None, **options):
        """Open a connection and wait for it. Raise LogRetriableError if the broker is unreachable, LogFatalError if it rejects the client."""
        return steps.finish(cls.opening(host, port, config, clock, timeout, **options), clock)

    @classmethod
    def opening(cls, host, port, config, clock, timeout=None, client_id=None, credentials=None):
        """Steps (steps.py) to an open connection. All connections to a cluster share `credentials` (security.Credentials)."""
        made = cls(host, port, config, clock, client_id)
        deadline = clock.monotonic() + (timeout or config.seconds("socket.connection.setup.timeout.ms"))
        credentials = credentials or security.Credentials(config, clock)
        try:
            yield from connection_setup.steps(made, config, clock, credentials, deadline)
        except BaseException:
            made.close()
            raise
        made.last_used = clock.monotonic()
        return made

    # ---- requests

    def version(self, request, ceiling=None):
        """The highest version of a request (class or instance) that both sides support, at most `ceiling`."""
        lowest, highest = self.versions.get(request.API_KEY, (1, 0))
        best = min(highest, request.max_version, highest if ceiling is None else ceiling)
        if best < lowest:
            raise unsupported(f"The broker at {self.name} supports no version of {request.name} that this client supports.")
        return best

    def send(self, request, ceiling=None, client_id=None):
        """Send a kafka-python message in the negotiated version; return its correlation id. Pass `client_id` for another client's request."""
        version = self.version(request, ceiling)
        correlation = next(self._correlations)
        request.API_VERSION = version
        request.with_header(correlation, client_id or self.client_id)
        frame = request.encode(header=True, framed=True)
        self._expect(correlation, request, version, request.expect_response())
        self._unsent.append(memoryview(frame))
        self.pump(block=True)
        return correlation

    def send_raw(self, request_class, version, parts, answered=True, block=True):
        """Send a body as a list of buffers without joining or copying them; return its correlation id.

        With block=False unsent bytes are buffered: call `pump` when `fileno()` is writable, while `wants_write`.
        """
        correlation = next(self._correlations)
        header = RequestHeader(
            request_api_key=request_class.API_KEY,
            request_api_version=version,
            correlation_id=correlation,
            client_id=self.client_id,
        ).encode(flexible=request_class.flexible_version_q(version))
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        size = len(header) + sum(map(len, views))
        self._expect(correlation, request_class, version, answered)
        self._unsent.append(memoryview(struct.pack(">i", size) + header))
        self._unsent.extend(views)
        self.pump(block)
        return correlation

    def _expect(self, correlation, request, version, answered):
        if answered:
            self._pending[correlation] = (response_class(request), version)

    @property
    def wants_write(self):
        return bool(self._unsent)

    def pump(self, block=False):
        """Send the remaining bytes: all of them, or what the socket accepts now."""
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent[0]) if self._tls else self._sendmsg(block)
                if not sent:
                    return
                while sent:
                    first = self._unsent[0]
                    if len(first) > sent:
                        self._unsent[0] = first[sent:]
                        break
                    sent -= len(first)
                    self._unsent.popleft()
        except TimeoutError as problem:
            raise timed_out(f"The broker at {self.name} took no bytes for {self._io_timeout:.0f} s.") from problem
        except OSError as problem:
            raise self._lost(problem) from problem

    def _sendmsg(self, block):
        parts = list(itertools.islice(self._unsent, MOST_PARTS))
        try:
            return self._socket.sendmsg(parts, (), 0 if block else socket.MSG_DONTWAIT)
        except BlockingIOError:
            if block:
                raise TimeoutError from None
            return 0

    # ---- responses

    def receive(self, timeout=None):
        """Return (correlation id, body without its header as a memoryview that shares no memory); None after `timeout` seconds.

        Without a timeout, raise if the broker takes longer than request.timeout.ms.
        """
        if timeout is not None and not self.has_buffered() and not self.wait_readable(timeout):
            return None
        frame = self._frame()
        self.last_used = self._clock.monotonic()
        (correlation,) = struct.unpack_from(">i", frame)
        kind, version = self._pending[correlation] if correlation in self._pending else (None, None)
        if kind is None:
            raise self._lost(f"an answer to request {correlation}, which was never sent")
        try:
            return correlation, frame[4 + header_tags(frame, kind, version) :]
        except Exception as problem:
            raise self._unreadable(kind, problem) from problem

    def decode(self, correlation, body):
        """Decode a response body and drop its correlation id."""
        kind, version = self._pending.pop(correlation)
        try:
            return kind.decode(body, version=version)
        except Exception as problem:  # decoders raise anything on invalid bytes
            raise self._unreadable(kind, problem) from problem

    def forget(self, correlation):
        """Return (response class, version) for a body that the caller decodes, and drop its correlation id."""
        return self._pending.pop(correlation)

    def receive_message(self, timeout=None):
        """Return (correlation id, response), or None after `timeout` seconds."""
        received = self.receive(timeout)
        return received and (received[0], self.decode(*received))

    def calling(self, request, timeout, ceiling=None, client_id=None):
        """Steps (steps.py) to the response to this request; no other may be in flight."""
        self.send(request, ceiling, client_id)
        deadline = self._clock.monotonic() + timeout
        while not self.has_buffered() and not self.wait_readable(0):
            if self._clock.monotonic() >= deadline:
                raise timed_out(f"The broker at {self.name} did not answer {request.name} within {timeout:.1f} s.")
            yield steps.Wait(self, select.POLLIN, deadline)
        return self.receive_message()[1]

    @property
    def outstanding(self):
        """Number of requests in flight."""
        return len(self._pending)

    def has_buffered(self):
        """Whether part of a response is buffered already, so `fileno()` may never become readable for it."""
        return self._end > self._begin or (self._tls and self._socket.pending() > 0)

    def wait_readable(self, seconds):
        return bool(self._poll_in.poll(max(0, seconds) * 1000))

    def fileno(self):
        return self._socket.fileno()

    def _frame(self):
        while self._end - self._begin < 4:
            self._read_ahead()
        (size,) = struct.unpack_from(">i", self._ahead, self._begin)
        if not 4 <= size <= LARGEST_FRAME:
            raise self._lost(f"an answer that is not a Kafka response, but announces {size} bytes")
        self._begin += 4
        frame = memoryview(np.empty(size, np.uint8))  # unlike a bytearray, not zeroed
        got = min(size, self._end - self._begin)
        frame[:got] = memoryview(self._ahead)[self._begin : self._begin + got]
        self._begin += got
        while got < size:
            got += self._recv_into(frame[got:], 0 if self._tls else socket.MSG_WAITALL)
        return frame

    def _read_ahead(self):
        if self._begin:
            rest = self._ahead[self._begin : self._end]
            self._ahead[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
        self._end += self._recv_into(memoryview(self._ahead)[self._end :], 0)

    def _recv_into(self, view, flags):
        try:
            got = self._socket.recv_into(view, 0, flags)
        except (BlockingIOError, TimeoutError) as problem:
            raise timed_out(f"The broker at {self.name} did not answer within {self._io_timeout:.0f} s.") from problem
        except OSError as problem:
            raise self._lost(problem) from problem
        if not got:
            raise self._lost("closed by the other side")
        return got

    # ---- lifecycle

    @property
    def stale(self):
        """Whether the broker may close it at any moment: idle too long, or the login nearly expired."""
        now, idle = self._clock.monotonic(), self._config["connections.max.idle.ms"]
        if self._session_ends is not None and now > self._session_ends:
            return True
        return idle >= 0 and now - self.last_used > idle / 1000

    def abort(self):
        """Fail another thread's calls on it, now and later; that thread still has to close it."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                # Shut down the kernel socket: SSLSocket.shutdown would first drop the encryption, and the other thread would send plain text.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self):
        self.abort()
        if self._socket is not None:
            self._socket.close()
        self._unsent.clear()

    def _lost(self, reason):
        return disconnected(f"The connection to the broker at {self.name} is lost: {why(reason)}.")

    def _unreadable(self, kind, problem):
        return self._lost(f"an answer that is no {kind.__name__} ({type(problem).__name__}: {problem})")

    def _set_io_timeout(self, seconds):
        """Set the timeout of each read or write.

        It is set on the kernel's socket, not Python's: Python would poll before each call and could not wait for a whole response.
        """
        self._io_timeout = seconds
        if self._tls:
            self._socket.settimeout(seconds)
            return
        self._socket.settimeout(None)
        value = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, value)

    def opened(self, opened, versions, session_ends):
        """Take over what connection setup has established; requests may follow."""
        self._socket, self.versions, self._session_ends = opened, versions, session_ends
        self._poll_in = select.poll()
        self._poll_in.register(opened, select.POLLIN)
        self._set_io_timeout(self._config.seconds("request.timeout.ms"))
