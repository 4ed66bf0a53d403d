"""Connection setup: name resolution, TCP, TLS, API versions, login. Non-blocking.

Each step yields what it waits for (steps.py), so a broker that drops packets does not delay others. Only the resolution of host
names blocks, since the system offers nothing else.
"""

import errno
import os
import select
import socket
import ssl
import struct

import kafka.errors
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from standalone.errors import LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log import security
from standalone.log.broker_errors import disconnected, explain, java_class, raise_for, timed_out
from standalone.log.frames import SOFTWARE, header_tags, response_class
from standalone.log.steps import Wait

LARGEST_ANSWER = 16 << 20  # of a response during setup
# Alerts for bytes damaged in transit or a peer in trouble: they may not occur on the next attempt.
PASSING_ALERTS = ("BAD_RECORD_MAC", "DECRYPT_ERROR", "INTERNAL_ERROR", "CLOSE_NOTIFY", "USER_CANCELLED", "RECORD_OVERFLOW", "UNEXPECTED_MESSAGE",
                  "DECODE_ERROR")
# OpenSSL's own errors about incompatible settings of the two sides.
NO_COMMON_GROUND = ("UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "NO_SHARED_CIPHER", "NO_CIPHERS_AVAILABLE", "UNKNOWN_PROTOCOL")


def steps(connection, config, clock, credentials, deadline):
    """Steps to `connection.opened`. Raise LogRetriableError if the broker is unreachable, LogFatalError if it rejects the client."""
    yield from _Setup(connection, config, clock, credentials, deadline).steps()


class _Setup:
    def __init__(self, connection, config, clock, credentials, deadline):
        self._connection, self._config, self._clock, self._credentials, self._deadline = connection, config, clock, credentials, deadline
        self._name, self._host, self._port = connection.name, connection.host, connection.port
        self._socket = None
        self._correlation = 0

    def steps(self):
        try:
            yield from self._connect()
            try:
                versions = yield from self._versions()
                session_ends = (yield from self._log_in(versions)) if security.uses_sasl(self._config) else None
            except TimeoutError as problem:
                raise timed_out(f"The broker at {self._name} did not answer in time.{self._hint}") from problem
            except OSError as problem:
                raise self._failed(problem) from problem
            self._connection.opened(self._socket, versions, session_ends)
        except BaseException:
            if self._socket is not None:
                self._socket.close()
            raise

    # ---- TCP and TLS

    def _connect(self):
        """Try each address of the name in turn."""
        try:
            addresses = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as problem:
            raise disconnected(f"The host name in {self._name} cannot be resolved: {why(problem)}.") from problem
        reasons, deadline = [], self._deadline
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            now = self._clock.monotonic()
            self._deadline = now + max(0.05, deadline - now) / (len(addresses) - number)  # a dead address leaves the next one its share
            try:
                self._socket = socket.socket(family, kind, protocol)
                yield from self._connect_to(address)
                if security.uses_tls(self._config):
                    yield from self._wrap()
                self._deadline = deadline
                return
            except LogFatalError:
                raise
            except (OSError, LogRetriableError) as problem:
                self._socket.close()
                reasons.append(why(problem))
        reasons = " and ".join(dict.fromkeys(reasons))
        raise disconnected(f"The broker at {self._name} cannot be reached: {reasons}.")

    def _connect_to(self, address):
        opened = self._socket
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for key, option in (("send.buffer.bytes", socket.SO_SNDBUF), ("receive.buffer.bytes", socket.SO_RCVBUF)):
            if self._config[key] >= 0:
                opened.setsockopt(socket.SOL_SOCKET, option, self._config[key])
        code = opened.connect_ex(address)
        if code == errno.EINPROGRESS:
            yield from self._wait(select.POLLOUT)
            code = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        if opened.getsockname() == opened.getpeername():
            # A self-connection: the kernel may give a free local port to the very socket that connects to it. It would block the port
            # for the broker.
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    def _wrap(self):
        context = self._credentials.tls()
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=self._host.rstrip("."), do_handshake_on_connect=False)
            while True:
                try:
                    return self._socket.do_handshake()
                except ssl.SSLWantReadError:
                    yield from self._wait(select.POLLIN)
                except ssl.SSLWantWriteError:
                    yield from self._wait(select.POLLOUT)
        except ssl.SSLError as problem:
            raise self._tls_failed(problem) from problem

    def _tls_failed(self, problem):
        """Only alerts and verification errors are final; a peer that just closes may be overloaded, or a balancer without brokers."""
        reason = getattr(problem, "verify_message", "") or problem.reason or str(problem)
        message = f"TLS with the broker at {self._name} failed: {reason}."
        if is_final(problem):
            return LogFatalError(message, java_class("SslAuthenticationException"))
        return disconnected(f"{message}{self._hint}")

    # ---- the first requests

    def _versions(self):
        highest = ApiVersionsRequest.max_version
        while True:
            request = ApiVersionsRequest(client_software_name=SOFTWARE[0], client_software_version=SOFTWARE[1])
            answer = yield from self._ask(request, highest)
            known = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys or ()}
            if answer.error_code != codes.UNSUPPORTED_VERSION or highest == 0:
                raise_for(answer.error_code, f"Asking the broker at {self._name} for its versions")
                self._connection.features = {each.name: each.max_version_level for each in answer.finalized_features or ()}
                return known
            highest = min(highest - 1, known.get(ApiVersionsRequest.API_KEY, (0, 0))[1])

    def _log_in(self, versions):
        """Return when the login expires, by the clock; None if never."""
        name = self._config["sasl.mechanism"]
        mechanism = self._credentials.mechanism(self._host)
        try:
            handshake = yield from self._ask(SaslHandshakeRequest(mechanism=name), self._version(SaslHandshakeRequest, versions))
            if handshake.error_code:
                offered = ", ".join(handshake.mechanisms) or "none"
                raise self._refused(f"{explain(handshake.error_code)}; it offers {offered}. Set sasl.mechanism to one of them")
            answer, version = None, self._version(SaslAuthenticateRequest, versions)
            while not mechanism.is_done():
                answer = yield from self._ask(SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes()), version)
                if answer.error_code:
                    self._credentials.refused()
                    raise self._refused(explain(answer.error_code, answer.error_message))
                mechanism.receive(answer.auth_bytes)
        except (kafka.errors.KafkaError, ValueError) as problem:
            raise self._refused(problem) from problem
        if not mechanism.is_authenticated():
            raise self._refused("the SASL exchange ended before authentication was complete")
        lifetime = answer.session_lifetime_ms if answer is not None else 0
        return self._clock.monotonic() + 0.85 * lifetime / 1000 if lifetime else None

    @staticmethod
    def _version(request, versions):
        lowest, highest = versions.get(request.API_KEY, (0, 0))
        return max(lowest, min(highest, request.max_version))

    def _refused(self, reason):
        message = f"Login at the broker at {self._name} by {self._config['sasl.mechanism']} failed: {reason}."
        return LogFatalError(message, java_class("SaslAuthenticationException"))

    # ---- frames

    def _ask(self, request, version):
        self._correlation += 1
        request.API_VERSION = version
        request.with_header(self._correlation, self._connection.client_id)
        yield from self._write(request.encode(header=True, framed=True))
        (size,) = struct.unpack(">i", (yield from self._read(4)))
        if not 4 <= size <= LARGEST_ANSWER:
            raise disconnected(
                f"The connection to the broker at {self._name} is lost: its answer, announced as {size} bytes, is not a Kafka response.{self._hint}"
            )
        frame = yield from self._read(size)
        kind = response_class(request)
        try:
            return kind.decode(frame[4 + header_tags(frame, kind, version) :], version=version)
        except Exception as problem:  # decoders raise anything on invalid bytes
            raise disconnected(f"The broker at {self._name} sent an invalid response to {request.name}: {problem}.{self._hint}") from problem

    def _write(self, data):
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                yield from self._wait(select.POLLOUT)
            except ssl.SSLWantReadError:
                yield from self._wait(select.POLLIN)

    def _read(self, size):
        found = bytearray()
        while len(found) < size:
            try:
                part = self._socket.recv(size - len(found))
            except (BlockingIOError, ssl.SSLWantReadError):
                yield from self._wait(select.POLLIN)
                continue
            except ssl.SSLWantWriteError:
                yield from self._wait(select.POLLOUT)
                continue
            if not part:
                raise ConnectionError("closed by the other side")
            found += part
        return bytes(found)

    def _wait(self, events):
        yield Wait(self._socket, events, self._deadline)
        if self._clock.monotonic() >= self._deadline:
            poller = select.poll()
            poller.register(self._socket, events)
            if not poller.poll(0):
                raise TimeoutError

    def _failed(self, problem):
        """Map an error during the first requests: with TLS 1.3 the broker rejects our certificate only here."""
        if isinstance(problem, ssl.SSLError):
            return self._tls_failed(problem)
        return disconnected(f"The connection to the broker at {self._name} is lost: {why(problem)}.{self._hint}")

    @property
    def _hint(self):
        return f" Does its listener speak {self._config['security.protocol']} (security.protocol)?"


def is_final(problem):
    """Whether a TLS failure is permanent: an untrusted certificate, a fatal alert, no common protocol or cipher."""
    reason = problem.reason or ""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return True
    return reason in NO_COMMON_GROUND or ("ALERT" in reason and not any(passing in reason for passing in PASSING_ALERTS))


def why(reason):
    """Return the error's message without Python's errno prefix."""
    if isinstance(reason, TimeoutError) or getattr(reason, "errno", None) == errno.ETIMEDOUT:
        return "no answer in time"
    if isinstance(reason, ssl.SSLError):
        reason = reason.reason or reason
    text = getattr(reason, "strerror", None) or str(reason)
    return text[:1].lower() + text[1:].rstrip(".")
