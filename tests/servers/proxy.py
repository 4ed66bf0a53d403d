"""A network that fails as told: a proxy in front of a server, which delays, cuts and swallows what is said, and garbles what Kafka's protocol can tell.

    with Proxy(port, target) as proxy:
        proxy.delay = 0.2           # each frame comes so many seconds late
        proxy.cut_every = 1         # all connections end, again and again
        proxy.garble(b"a line", 0.1)  # in one of ten frames with this text a bit of it is turned; others lose their sizes and numbers

    with Proxy(0, target, read=some_bytes) as proxy:   # a database's or another protocol's: bytes as they come, at proxy.port
        proxy.cut_behind(700)       # so many bytes more are carried, then all connections end

What is garbled is what Kafka's protocol can tell: records have a checksum, and a frame's size and number must fit. Nothing protects the rest of
a frame, an offset for one, where the connection has no TLS: no client could tell that a bit of it was turned.
"""

import contextlib
import random
import socket
import struct
import threading
import time

_SIZE = struct.Struct(">i")


class Proxy:
    def __init__(self, port, target, seed=1, read=None):
        self.target = target  # (host, port)
        self._read = read or kafka_frame
        self._left = None  # bytes until all connections are cut
        self.delay, self.cut_every, self.silent = 0, None, False
        self.garbled = self.cuts = 0
        self._garbling = (None, 0)
        self._chance = random.Random(seed)
        self._links, self._lock, self._over = set(), threading.Lock(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        for work in (self._accept, self._cut_again):
            threading.Thread(target=work, daemon=True).start()

    def garble(self, text, share):
        self._garbling = (text, share)

    def well(self):
        """As a network should be; connections that are stuck are cut."""
        self.delay, self.cut_every, self.silent, self._garbling = 0, None, False, (None, 0)
        self.cut_behind(None)
        self.cut()

    def cut_behind(self, count):
        """Carry so many bytes more, in both directions together, the last piece in part; then cut."""
        with self._lock:
            self._left = count

    def cut(self):
        """End all connections there are."""
        with self._lock:
            links, self._links = self._links, set()
        for link in links:
            self.cuts += 1
            link.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._listener.close()
        self.cut()

    def _accept(self):
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self.target, 5)
                broker.settimeout(None)  # it may be quiet for as long as it likes
                link = _Link(client, broker)
            except OSError:
                client.close()  # its broker is away
                continue
            with self._lock:
                self._links.add(link)
            threading.Thread(target=self._carry, args=(link, link.client, link.broker, False), daemon=True).start()
            threading.Thread(target=self._carry, args=(link, link.broker, link.client, True), daemon=True).start()

    def _carry(self, link, source, sink, is_answer):
        try:
            while True:
                frame = self._read(source)
                if self.delay:
                    self._over.wait(self.delay)
                if not self.silent:
                    carried, is_last = self._until_the_cut(self._maybe_garbled(frame, is_answer))
                    sink.sendall(carried)
                    if is_last:
                        self.cut()
        except OSError:
            pass
        finally:
            with self._lock:
                self._links.discard(link)
            link.close()

    def _until_the_cut(self, data):
        """(what of it is carried, whether the connections are to be cut after it)"""
        with self._lock:
            if self._left is None:
                return data, False
            carried = data[: self._left]
            self._left -= len(carried)
            if self._left:
                return carried, False
            self._left = None
            return carried, True

    def _maybe_garbled(self, frame, is_answer):
        text, share = self._garbling
        if text is None or self._chance.random() >= share:
            return frame
        at = frame.find(text)
        if at >= 0:
            at += self._chance.randrange(len(text))
        elif is_answer:
            at = 4 + self._chance.randrange(4)  # the number of the request that it answers
        else:
            at = 0  # its size
        frame[at] ^= 0x80
        self.garbled += 1
        return frame

    def _cut_again(self):
        cut_at = time.monotonic()
        while not self._over.wait(0.05):
            if self.cut_every is None:
                cut_at = time.monotonic()
            elif time.monotonic() - cut_at >= self.cut_every:
                cut_at = time.monotonic()
                self.cut()


class _Link:
    def __init__(self, client, broker):
        self.client, self.broker = client, broker
        for each in (client, broker):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        for each in (self.client, self.broker):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes who reads from it
            each.close()


def kafka_frame(source):
    """A whole frame, its size in front."""
    head = _exactly(source, _SIZE.size)
    return head + _exactly(source, _SIZE.unpack(head)[0])


def some_bytes(source):
    """What has come, of any protocol."""
    data = source.recv(1 << 16)
    if not data:
        raise ConnectionError("hung up")
    return bytearray(data)


def _exactly(source, count):
    data = bytearray()
    while len(data) < count:
        piece = source.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise ConnectionError("hung up")
        data += piece
    return data
