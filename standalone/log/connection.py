"""One connection to one broker: frames out, frames in, on a blocking socket with deadlines.

kafka-python's transport reads 4 KiB at a time, which beside one busy Python thread is a thread switch per 4 KiB. Here a
response of any size costs two calls, each without the GIL, and a request goes out as it lies in memory.
"""

import collections
import contextlib
import errno
import io
import itertools
import os
import select
import socket
import ssl
import struct

import kafka.errors
import numpy as np
from kafka.protocol.api_header import RequestHeader, ResponseClassRegistry, ResponseHeader
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from standalone.errors import LogFatalError
from standalone.log import security
from standalone.log.broker_errors import disconnected, explain, java_class, raise_for, timed_out, unsupported

SOFTWARE = ("connect-standalone", "1")  # shown in the broker's list of clients
READ_AHEAD_BYTES = 64 * 1024
LARGEST_FRAME = 1 << 30
MOST_PARTS = os.sysconf("SC_IOV_MAX")
UNSUPPORTED_VERSION = 35


class Connection:
    """Open, agreed on versions and logged in, once made. Used by one thread at a time; only `abort` may come from another."""

    def __init__(self, host, port, config, clock, timeout=None):
        """Raises LogRetriableError if the broker cannot be reached, LogFatalError if it will not have us."""
        self.host, self.port = host, port
        self.versions = {}  # api key -> (lowest, highest) that the broker knows
        self._config, self._clock = config, clock
        self._pending = {}  # correlation -> (response class, version)
        self._correlations = itertools.count(1)
        self._unsent = collections.deque()
        self._ahead = bytearray(READ_AHEAD_BYTES)
        self._begin = self._end = 0  # of what was read ahead
        self._session_ends = None
        self._tls = security.uses_tls(config)
        self._io_timeout = None
        self.name = f"{host}:{port}"
        deadline = clock.monotonic() + (timeout or config.seconds("socket.connection.setup.timeout.ms"))
        self._socket = self._open(deadline)
        try:
            self._poll_in, self._poll_out = select.poll(), select.poll()
            self._poll_in.register(self._socket, select.POLLIN)
            self._poll_out.register(self._socket, select.POLLOUT)
            self._learn_versions(deadline)
            if security.uses_sasl(config):
                self._log_in(deadline)
            self._set_io_timeout(config.seconds("request.timeout.ms"))
        except BaseException:
            self.close()
            raise
        self.last_used = clock.monotonic()

    # ---- requests

    def version(self, request, ceiling=None):
        """The highest version of a request (class or instance) that both sides know, at most `ceiling`."""
        lowest, highest = self.versions.get(request.API_KEY, (1, 0))
        if not self.versions:  # this is the question for them
            lowest, highest = 0, request._max_version
        best = min(highest, request.max_version, highest if ceiling is None else ceiling)
        if best < lowest:
            raise unsupported(f"The broker at {self.name} does not know {request.name} in any version that is known here.")
        return best

    def send(self, request, ceiling=None):
        """Send a message of kafka-python's, in the version negotiated; its correlation."""
        version = self.version(request, ceiling)
        correlation = next(self._correlations)
        request.API_VERSION = version
        request.with_header(correlation, self._config["client.id"] or SOFTWARE[0])
        frame = request.encode(header=True, framed=True)
        self._expect(correlation, request, version, request.expect_response())
        self._unsent.append(memoryview(frame))
        self.pump(block=True)
        return correlation

    def send_raw(self, request_class, version, parts, answered=True, block=True):
        """Send a body given as a list of buffers, which are not joined nor copied; its correlation.

        With block=False what the socket does not take stays here: `pump` when `fileno()` is writable, while `wants_write`.
        """
        correlation = next(self._correlations)
        header = RequestHeader(
            request_api_key=request_class.API_KEY,
            request_api_version=version,
            correlation_id=correlation,
            client_id=self._config["client.id"] or SOFTWARE[0],
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
            self._pending[correlation] = (ResponseClassRegistry._response_class_registry[request.API_KEY], version)

    @property
    def wants_write(self):
        return bool(self._unsent)

    def pump(self, block=False):
        """Write what is still unsent, all of it or what the socket takes now."""
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
        """(correlation, the response's body behind its header as a memoryview of its own memory); None if `timeout` seconds pass.

        Without a timeout the broker has request.timeout.ms, and what exceeds that raises.
        """
        if timeout is not None and not self.has_buffered() and not self.wait_readable(timeout):
            return None
        frame = self._frame()
        self.last_used = self._clock.monotonic()
        (correlation,) = struct.unpack_from(">i", frame)
        response_class, version = self._pending[correlation] if correlation in self._pending else (None, None)
        if response_class is None:
            raise self._lost(f"an answer to request {correlation}, which was never made")
        return correlation, frame[4 + self._header_tags(frame, response_class, version) :]

    def decode(self, correlation, body):
        """The response message in a body; the correlation is done with."""
        response_class, version = self._pending.pop(correlation)
        return response_class.decode(body, version=version)

    def forget(self, correlation):
        """For a body that the caller reads itself: (response class, version), and the correlation is done with."""
        return self._pending.pop(correlation)

    def receive_message(self, timeout=None):
        """(correlation, response message), or None if `timeout` seconds pass."""
        received = self.receive(timeout)
        return received and (received[0], self.decode(*received))

    def call(self, request, timeout=None, ceiling=None):
        """Send and wait for the answer to this very request, while nothing else is outstanding."""
        self.send(request, ceiling)
        received = self.receive_message(timeout)
        if received is None:
            raise timed_out(f"The broker at {self.name} did not answer {request.name} within {timeout:.1f} s.")
        return received[1]

    @property
    def outstanding(self):
        """How many requests wait for an answer."""
        return len(self._pending)

    def has_buffered(self):
        """Whether the start of a response was read already, so that `fileno()` need not become readable for it."""
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
            raise self._lost(f"an answer that is no Kafka response, but announces {size} bytes")
        self._begin += 4
        frame = memoryview(np.empty(size, np.uint8))  # not zeroed first, as a bytearray would be
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

    @staticmethod
    def _header_tags(frame, response_class, version):
        """The bytes of the tagged fields in the response's header: one, in practice, or none."""
        if response_class.API_KEY == ApiVersionsRequest.API_KEY or not response_class.flexible_version_q(version):
            return 0
        if frame[4] == 0:
            return 1
        stream = io.BytesIO(frame)
        ResponseHeader.decode(stream, flexible=True)
        return stream.tell() - 4

    # ---- life

    @property
    def stale(self):
        """Whether the broker may hang up on it at any moment: idle for too long, or the login's time is nearly over."""
        now, idle = self._clock.monotonic(), self._config["connections.max.idle.ms"]
        if self._session_ends is not None and now > self._session_ends:
            return True
        return idle >= 0 and now - self.last_used > idle / 1000

    def abort(self):
        """Fail what another thread is doing on it, now and later; that thread still has to close it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.abort()
        self._socket.close()
        self._unsent.clear()

    def _lost(self, reason):
        if isinstance(reason, ssl.SSLError):
            reason = reason.reason or reason
        protocol = self._config["security.protocol"]
        hint = "" if self.versions else f" Does its listener speak {protocol} (security.protocol)?"
        return disconnected(f"The connection to the broker at {self.name} is lost: {_why(reason)}.{hint}")

    def _open(self, deadline):
        """A connected socket, through TLS if asked for; every address of the name is tried."""
        try:
            addresses = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as problem:
            raise disconnected(f"The host name in {self.name} cannot be resolved: {_why(problem)}.") from problem
        reasons = []
        for family, kind, protocol, _, address in addresses:
            opened = socket.socket(family, kind, protocol)
            try:
                opened.settimeout(self._left(deadline))
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for key, option in (("send.buffer.bytes", socket.SO_SNDBUF), ("receive.buffer.bytes", socket.SO_RCVBUF)):
                    if self._config[key] >= 0:
                        opened.setsockopt(socket.SOL_SOCKET, option, self._config[key])
                opened.connect(address)
                if opened.getsockname() == opened.getpeername():
                    # A port of this machine that nobody listens on may be given to the very socket that asks for it, which then talks to
                    # itself and keeps the broker from having its port back.
                    raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
                return self._wrap(opened) if self._tls else opened
            except OSError as problem:
                opened.close()
                reasons.append(_why(problem))
            except BaseException:
                opened.close()
                raise
        reasons = " and ".join(dict.fromkeys(reasons))
        raise disconnected(f"The broker at {self.name} cannot be reached: {reasons}.")

    def _wrap(self, opened):
        context = security.ssl_context(self._config)
        try:
            return context.wrap_socket(opened, server_hostname=self.host.rstrip("."))
        except ssl.SSLError as problem:
            reason = getattr(problem, "verify_message", "") or problem.reason or problem
            message = f"TLS with the broker at {self.name} failed: {reason}."
            raise LogFatalError(message, java_class("SslAuthenticationException")) from problem

    def _left(self, deadline):
        return max(0.001, deadline - self._clock.monotonic())

    def _set_io_timeout(self, seconds):
        """For each single read or write from here on.

        Set on the kernel's socket, not Python's: Python would poll before each call and could not wait for all of a response.
        """
        self._io_timeout = seconds
        if self._tls:
            self._socket.settimeout(seconds)
            return
        self._socket.settimeout(None)
        value = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, value)

    def _call_before(self, request, deadline):
        self._set_io_timeout(self._left(deadline))
        return self.call(request, self._left(deadline))

    def _learn_versions(self, deadline):
        highest = ApiVersionsRequest.max_version
        while True:
            request = ApiVersionsRequest(client_software_name=SOFTWARE[0], client_software_version=SOFTWARE[1], max_version=highest)
            answer = self._call_before(request, deadline)
            known = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
            if answer.error_code != UNSUPPORTED_VERSION or highest == 0:
                break
            highest = min(highest - 1, known.get(ApiVersionsRequest.API_KEY, (0, 0))[1])
        raise_for(answer.error_code, f"Asking the broker at {self.name} for its versions")
        self.versions = known

    def _log_in(self, deadline):
        mechanism = security.sasl_mechanism(self._config, self.host)
        name = self._config["sasl.mechanism"]
        try:
            handshake = self._call_before(SaslHandshakeRequest(mechanism=name), deadline)
            if handshake.error_code:
                offered = ", ".join(handshake.mechanisms) or "none"
                raise self._refused(f"{explain(handshake.error_code)}; it offers {offered}. Set sasl.mechanism to one of them")
            answer = None
            while not mechanism.is_done():
                answer = self._call_before(SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes()), deadline)
                if answer.error_code:
                    raise self._refused(explain(answer.error_code, answer.error_message))
                mechanism.receive(answer.auth_bytes)
        except (kafka.errors.KafkaError, ValueError) as problem:
            raise self._refused(problem) from problem
        if not mechanism.is_authenticated():
            raise self._refused("the exchange ended without proof")
        if answer is not None and answer.session_lifetime_ms:
            self._session_ends = self._clock.monotonic() + 0.85 * answer.session_lifetime_ms / 1000

    def _refused(self, reason):
        name = self._config["sasl.mechanism"]
        message = f"Login at the broker at {self.name} by {name} failed: {reason}."
        return LogFatalError(message, java_class("SaslAuthenticationException"))


def _why(reason):
    """Without Python's number in brackets."""
    if isinstance(reason, TimeoutError) or getattr(reason, "errno", None) == errno.ETIMEDOUT:
        return "no answer in time"
    text = getattr(reason, "strerror", None) or str(reason)
    return text[:1].lower() + text[1:]
