"""The sockets for syslog messages: UDP, TCP and TLS, served by the caller of `receive`.

Nothing is read between calls: TCP's senders wait, and the kernel drops UDP datagrams that exceed its buffer, and counts them.
"""

import contextlib
import logging
import selectors
import socket
import ssl
import struct
import time
import urllib.parse
from dataclasses import dataclass

from connectors.logs.syslog_framing import Framing
from standalone import ConnectError

log = logging.getLogger(__name__)

UDP, TCP, TLS = "udp", "tcp", "tls"
PORTS = {UDP: 514, TCP: 601, TLS: 6514}

READ_BYTES = 1 << 16
BATCH_BYTES = 1 << 20  # maximum size of a batch
SECONDS_BETWEEN_TELLINGS = 10.0
_RXQ_OVFL = 40  # SO_RXQ_OVFL: the kernel reports how many datagrams it has dropped
_NUMBER = struct.Struct("I")


@dataclass(frozen=True)
class Address:
    protocol: str
    host: str
    port: int

    @classmethod
    def of(cls, text):
        """Parse tcp://0.0.0.0:601. Raises ValueError with the reason."""
        found = urllib.parse.urlsplit(text if "://" in text else f"{text}://")
        if found.scheme not in PORTS:
            raise ValueError(f"'{text}' must begin with {', '.join(f'{each}://' for each in PORTS)}")
        port = PORTS[found.scheme] if found.port is None else found.port
        return cls(found.scheme, found.hostname or "0.0.0.0", port)

    def __str__(self):
        return f"{self.protocol}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Message:
    data: bytes
    peer: str
    protocol: str


class Listeners:
    def __init__(self, addresses, framing, most_bytes, most_connections, buffer_bytes, context, waker):
        self._framing, self._most_bytes, self._most_connections = framing, most_bytes, most_connections
        self._buffer_bytes, self._context = buffer_bytes, context
        self._selector = selectors.DefaultSelector()
        self._waker = waker
        self._selector.register(waker.descriptor, selectors.EVENT_READ, None)
        self._connections = set()
        self._accepting = []
        self._unread = {}  # connections that may have unread data, which a TLS connection buffers itself. Ordered
        self.dropped = 0  # datagrams
        self.cut = 0  # messages
        self._told = (0, 0)
        self._told_at = 0.0
        try:
            self.addresses = [self._open(each) for each in addresses]
        except BaseException:
            self.close()
            raise

    def receive(self, seconds):
        """Messages received so far; waits for the first for at most so long."""
        found, size = [], 0
        ready = [key.data for key, _ in self._selector.select(0 if self._unread else max(seconds, 0)) if key.data is not None]
        for each in [*(each for each in self._unread if each not in ready), *ready]:
            if size >= BATCH_BYTES and isinstance(each, _Connection):
                self._unread[each] = True
                continue
            before = len(found)
            each.read(found)
            size += sum(len(message.data) for message in found[before:])
        self._tell()
        return found

    def close(self):
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                key.data.socket.close()
        self._connections.clear()
        self._selector.close()

    # --- For the sockets -----------------------------------------------------------------------------------------------

    def _open(self, address):
        family, kind, _, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_DGRAM if address.protocol == UDP else socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if address.protocol == UDP:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._buffer_bytes)
                opened.setsockopt(socket.SOL_SOCKET, _RXQ_OVFL, 1)
            opened.bind(where)
            if address.protocol != UDP:
                opened.listen(128)
        except OSError as error:
            opened.close()
            raise ConnectError(f"'{address}' cannot be opened: {error.strerror} (errno {error.errno}). Set 'listen' to another address.") from error
        opened.setblocking(False)
        one = _Datagrams(self, opened) if address.protocol == UDP else _Door(self, opened, self._context if address.protocol == TLS else None)
        self._selector.register(opened, selectors.EVENT_READ, one)
        if isinstance(one, _Door):
            self._accepting.append(one)
        bound = Address(address.protocol, address.host, opened.getsockname()[1])
        log.info("Listening for syslog messages at %s.", bound)
        return bound

    def came(self, accepted, peer, context):
        connection = _Connection(self, accepted, peer, context, Framing(self._framing, self._most_bytes))
        self._connections.add(connection)
        self._selector.register(accepted, selectors.EVENT_READ, connection)
        if len(self._connections) >= self._most_connections:
            log.warning("%d connections are open, the limit of max.connections; further ones wait.", len(self._connections))
            for door in self._accepting:
                self._selector.unregister(door.socket)

    def went(self, connection):
        if len(self._connections) >= self._most_connections:
            for door in self._accepting:
                self._selector.register(door.socket, selectors.EVENT_READ, door)
        self._connections.discard(connection)
        self._unread.pop(connection, None)
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def wants(self, connection, events):
        self._selector.modify(connection.socket, events, connection)

    def has_more(self, connection, it_has):
        if it_has:
            self._unread[connection] = True
        else:
            self._unread.pop(connection, None)

    def _tell(self):
        """Log losses, at most this often."""
        now, lost = time.monotonic(), (self.dropped, self.cut)
        if lost == self._told or now - self._told_at < SECONDS_BETWEEN_TELLINGS:
            return
        self._told, self._told_at = lost, now
        told = "Since the start, the kernel dropped %d datagrams (receive.buffer.bytes), and %d messages were truncated (max.message.bytes)."
        log.warning(told, *lost)


class _Datagrams:
    def __init__(self, listeners, opened):
        self._listeners, self.socket = listeners, opened
        self._dropped = 0

    def read(self, found):
        most, size = self._listeners._most_bytes, 0
        while size < BATCH_BYTES:
            try:
                data, told, _, peer = self.socket.recvmsg(READ_BYTES, socket.CMSG_SPACE(_NUMBER.size))
            except OSError:
                return  # nothing left to read, or a stray ICMP error
            for level, kind, number in told:
                if (level, kind) == (socket.SOL_SOCKET, _RXQ_OVFL):
                    (dropped,) = _NUMBER.unpack(number)
                    self._listeners.dropped += (dropped - self._dropped) & 0xFFFFFFFF
                    self._dropped = dropped
            if len(data) > most:
                self._listeners.cut += 1
            size += len(data)
            if data := data[:most].rstrip(b"\r\n\0"):
                found.append(Message(data, peer[0], UDP))


class _Door:
    """A listening socket."""

    def __init__(self, listeners, opened, context):
        self._listeners, self.socket, self._context = listeners, opened, context

    def read(self, found):
        try:
            accepted, peer = self.socket.accept()
        except OSError:
            return  # the client has already closed the connection
        accepted.setblocking(False)
        if self._context is not None:
            accepted = self._context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        self._listeners.came(accepted, peer[0], self._context)


class _Connection:
    def __init__(self, listeners, accepted, peer, context, framing):
        self._listeners, self.socket, self._peer, self._framing = listeners, accepted, peer, framing
        self._protocol = TCP if context is None else TLS
        self._shakes_hands = context is not None

    def read(self, found):
        try:
            if self._shakes_hands:
                self.socket.do_handshake()
                self._shakes_hands = False
                self._listeners.wants(self, selectors.EVENT_READ)
            data = self.socket.recv(READ_BYTES)
        except (ssl.SSLWantReadError, BlockingIOError):
            self._listeners.has_more(self, False)
            return
        except ssl.SSLWantWriteError:
            self._listeners.has_more(self, False)
            self._listeners.wants(self, selectors.EVENT_READ | selectors.EVENT_WRITE)
            return
        except OSError as error:
            if self._shakes_hands:
                log.warning("A connection from %s was refused: %s", self._peer, error)
            data = b""
        messages = self._framing.feed(data) if data else self._framing.end()
        found += [Message(each, self._peer, self._protocol) for each in messages if each]
        self._listeners.cut += self._framing.cut
        self._framing.cut = 0
        if data:
            self._listeners.has_more(self, self._protocol == TLS)
        else:
            if self._protocol == TLS and not self._shakes_hands:
                with contextlib.suppress(OSError, ValueError):
                    self.socket.unwrap()  # the sender may wait for the TLS close
            self._listeners.went(self)
