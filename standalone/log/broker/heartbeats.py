"""Answer heartbeats that change nothing on their own thread, which never waits for disk or record I/O.

Most heartbeats get the same response as the previous one. So the owner leaves that response and its conditions with the connection (`Repeat`)
and hands the connection over until another request comes. Members thus keep their sessions even if the owner is blocked by an fsync, an SQLite
commit or megabytes of records.

A connection belongs to one thread at a time. This thread only reads the owner's state, except that it extends the member's session.
"""

import logging
import selectors
import socket
from collections import deque

_HEAD, _TAIL = slice(0, 4), slice(8, None)  # of a request, before and after its correlation id

logger = logging.getLogger(__name__)


class Repeat:
    """A response that stays valid for the same request while `still_true()`, which any thread may call."""

    def __init__(self, frame, response, still_true):
        self._head, self._tail = bytes(frame[_HEAD]), bytes(frame[_TAIL])
        response.with_header(correlation_id=0)
        encoded = response.encode(header=True, framed=True)
        self._before, self._behind = encoded[:4], encoded[8:]
        self._still_true = still_true

    def answer_to(self, frame):
        """Return the response, or None if only the owner knows it."""
        if frame[_HEAD] != self._head or frame[_TAIL] != self._tail or not self._still_true():
            return None
        return b"".join((self._before, frame[4:8], self._behind))


class Heartbeats:
    """`run` needs its own thread. It calls `give_back(connection, alive)`: the connection may hold a request, or have been closed by the client."""

    def __init__(self, give_back):
        self._give_back = give_back
        self._selector = selectors.DefaultSelector()
        self._posted = deque()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._stopping = False

    # --- Called by the owner

    def hand_over(self, connection):
        connection.on_frame = self._answer
        self._post(lambda: self._selector.register(connection.sock, selectors.EVENT_READ, connection))

    def ask_back(self, connection):
        """Ask for a connection; it returns through `give_back`, unless it already has."""
        self._post(lambda: self._let_go(connection, True))

    def stop(self):
        """Stop `run`; then no connection is in use here, and the owner closes them all."""
        self._stopping = True
        self._wake()

    def _post(self, action):
        self._posted.append(action)
        self._wake()

    def _wake(self):
        try:
            self._wake_in.send(b"\0")
        except BlockingIOError:
            pass  # a wake-up is already pending

    # --- The loop

    def run(self):
        """Run until `stop`."""
        while not self._stopping:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._wake_out.recv(4096)
                else:
                    self._serve(key.data)
            while self._posted:
                self._posted.popleft()()
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()

    def _serve(self, connection):
        try:
            alive = connection.receive()
        except Exception:
            logger.exception("A heartbeat of %s could not be answered; the connection is closed.", connection.peer)
            alive = False
        if not alive or not connection.is_at_rest:
            self._let_go(connection, alive)

    def _let_go(self, connection, alive):
        if connection.sock in self._selector.get_map():
            self._selector.unregister(connection.sock)
            self._give_back(connection, alive)

    def _answer(self, connection, frame):
        repeat = connection.repeat  # the owner may clear it
        answer = repeat.answer_to(frame) if repeat is not None else None
        if answer is None:
            connection.hold(frame)
        else:
            connection.busy = False
            connection.send([answer])
