"""One client's socket, non-blocking: requests in, responses out.

A connection's requests are processed one at a time and answered in order, as in Kafka. A large request is received into its own buffer,
which grows with the bytes received, since the length is only the client's claim. The connection reuses the buffer for the next request:
a handler must use or copy its view before it returns. File slices are sent by sendfile.
"""

import os
import socket
from collections import deque
from struct import Struct

from standalone.log.broker.segments import FileSlice

MAX_FRAME = 100 << 20
MAX_FRAME_OF_STRANGERS = 512 << 10  # before the login
_SMALL = 64 << 10
_KEPT = 4 << 20  # larger buffers are released after use
_SIZE = Struct(">i")


class Connection:
    """`on_frame(connection, view)` is called for each request and must lead to one `finish_request`, at once or later."""

    def __init__(self, sock, client, on_frame, clock):
        self.sock = sock
        self.client = client  # see client.py
        self.is_closed = False
        self.busy = False  # a request is not answered yet
        self.at_work = False
        self.events = 0  # what the selector watches, by the server
        self.turn = 0  # in which the server did something large for it last
        self.on_hang_up = None  # of the request that waits
        self.endings = {}  # key -> what is to be done when the connection ends
        self.on_frame = on_frame
        self.repeat = None  # the last heartbeat's response (heartbeats.py)
        self.is_lent = False  # to the heartbeat thread
        self._held = None  # a request received on the wrong thread, for the other one
        self._clock = clock
        self.active_at = clock.monotonic()  # when bytes last came or went
        self._small = bytearray(_SMALL)
        self._low = self._high = 0  # bounds of the unread bytes in the small buffer
        self._body = bytearray(0)
        self._wanted = self._have = 0  # bytes of the request in the body buffer
        self._out = deque()
        try:
            self.peer = sock.getpeername()[0]
            self.local = sock.getsockname()[:2]
        except OSError:  # disconnected before it was served
            self.peer, self.local = "", ("", 0)

    @property
    def wants_to_write(self):
        return bool(self._out)

    @property
    def is_at_a_large_one(self):
        """Whether a large request is being received or a large response sent."""
        return self._wanted > 0 or bool(self._out)

    @property
    def is_at_rest(self):
        """Whether nothing is in flight in either direction."""
        return not (self.busy or self._out or self._wanted or self.wants_to_write or self.holds_a_request)

    @property
    def holds_a_request(self):
        """Whether `work` would find a request."""
        if self._held is not None:
            return True
        if self.busy or self._out:
            return False
        if self._wanted:
            return self._have == self._wanted
        filled = self._high - self._low
        if filled < _SIZE.size:
            return False
        size = _SIZE.unpack_from(self._small, self._low)[0] + _SIZE.size
        return size <= filled or size > _SMALL

    @property
    def wants_to_read(self):
        if self._wanted:
            return self._have < self._wanted
        return self._high - self._low < _SMALL

    # --- Receiving

    def receive(self):
        """Receive what is available; return False if the client has disconnected."""
        self.active_at = self._clock.monotonic()
        try:
            if self._wanted:
                return self._receive_body()
            if self._low:
                self._small[: self._high - self._low] = self._small[self._low : self._high]
                self._low, self._high = 0, self._high - self._low
            count = self._take(memoryview(self._small)[self._high :])
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._high += count
        return count > 0 and self.work()

    def _receive_body(self):
        view = memoryview(self._body)
        while self._have < self._wanted:
            if self._have == len(self._body):
                self._grow()
                view = memoryview(self._body)
            count = self._take(view[self._have : self._wanted])
            if not count:
                return False
            self._have += count
        return self.work()

    def _take(self, view):
        return self.sock.recv_into(view)

    def go_on(self):
        """Continue after other connections had their turn: process what `holds_a_request` reports."""
        return self.work()

    def work(self):
        """Process complete requests until one must wait; return False if the connection must close."""
        self.at_work = True
        try:
            return self._work()
        finally:
            self.at_work = False

    def _work(self):
        if self._held is not None:
            frame, self._held = self._held, None
            self.on_frame(self, frame)
        while not self.busy and not self._out and not self.is_closed:
            if self._wanted:
                if self._have < self._wanted:
                    return True
                frame = memoryview(self._body)[: self._wanted]
                self._wanted = self._have = 0
                self._do(frame)
                if len(self._body) > _KEPT:
                    self._body = bytearray(0)
                continue
            filled = self._high - self._low
            if filled < _SIZE.size:
                return True
            size = _SIZE.unpack_from(self._small, self._low)[0]
            if not 0 < size <= (MAX_FRAME if self.client.is_known else MAX_FRAME_OF_STRANGERS):
                return False
            begin = self._low + _SIZE.size
            if begin + size <= self._high:
                self._low = begin + size
                self._do(memoryview(self._small)[begin : begin + size])
            elif size + _SIZE.size > _SMALL:
                self._begin_body(size, begin)
            else:
                return True
        return not self.is_closed

    def _grow(self):
        grown = bytearray(min(self._wanted, 2 * len(self._body)))
        grown[: self._have] = self._body
        self._body = grown

    def _begin_body(self, size, begin):
        if len(self._body) < _SMALL:
            self._body = bytearray(_SMALL)
        self._have = self._high - begin
        self._body[: self._have] = self._small[begin : self._high]
        self._wanted, self._low, self._high = size, 0, 0

    def _do(self, frame):
        self.busy = True
        self.on_frame(self, frame)

    def hold(self, frame):
        """Called by `on_frame`: keep the request in place for a later `work`."""
        self._held = frame

    # --- Sending

    def send(self, pieces):
        """Send bytes and FileSlices in order; return whether the connection is alive."""
        self._out.extend(pieces)
        return self.flush()

    def flush(self):
        """Send what the socket accepts now; return False if the client has disconnected."""
        self.active_at = self._clock.monotonic()
        try:
            while self._out:
                piece = self._out.popleft()
                rest = self._send_slice(piece) if isinstance(piece, FileSlice) else self._send_bytes(piece)
                if rest:
                    self._out.appendleft(rest)
                    return True
        except OSError:
            return False
        return True

    def _send_slice(self, piece):
        file, position, length = piece
        while length:
            try:
                count = os.sendfile(self.sock.fileno(), file.fd, position, length)
            except BlockingIOError:
                return FileSlice(file, position, length)
            if not count:
                raise OSError("the file is shorter than it was")
            position += count
            length -= count
        return None

    def _send_bytes(self, piece):
        view = memoryview(piece)
        more = socket.MSG_MORE if self._out else 0
        while view:
            try:
                view = view[self._give(view, more) :]
            except BlockingIOError:
                return view
        return None

    def _give(self, view, more):
        return self.sock.send(view, more)

    def close(self):
        if self.is_closed:
            return
        self.is_closed = True
        self._out.clear()
        waiting, self.on_hang_up = self.on_hang_up, None
        if waiting:
            waiting()
        endings, self.endings = self.endings, {}
        for action in endings.values():
            action()
        self.sock.close()
