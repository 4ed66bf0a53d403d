"""Heartbeats that change nothing are answered here, on a thread that waits for no disk and for nobody's records.

A member is mostly answered what it was answered before. So the owner leaves that answer with the connection, and with it what it depends on
(`Repeat`), and hands the connection over until something else comes on it. A member keeps its place however long the owner is held up: by a
write that waits for the disk, by a commit of SQLite's, by megabytes of records before it.

A connection is one thread's at a time. The owner's state is only looked at here; nothing is written but the end of the member's session.
"""

import logging
import selectors
import socket
from collections import deque

_HEAD, _TAIL = slice(0, 4), slice(8, None)  # of a request, around its correlation id

logger = logging.getLogger(__name__)


class Repeat:
    """The answer to a request, for as long as `still_true()`, which may be asked by any thread: then it is the answer to the same request again."""

    def __init__(self, frame, response, still_true):
        self._head, self._tail = bytes(frame[_HEAD]), bytes(frame[_TAIL])
        response.with_header(correlation_id=0)
        encoded = response.encode(header=True, framed=True)
        self._before, self._behind = encoded[:4], encoded[8:]
        self._still_true = still_true

    def answer_to(self, frame):
        """None: only the owner knows it."""
        if frame[_HEAD] != self._head or frame[_TAIL] != self._tail or not self._still_true():
            return None
        return b"".join((self._before, frame[4:8], self._behind))


class Heartbeats:
    """`run` wants a thread of its own. It calls `give_back(connection, alive)`: the connection may hold a request, or its client may have gone."""

    def __init__(self, give_back):
        self._give_back = give_back
        self._selector = selectors.DefaultSelector()
        self._posted = deque()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._stopping = False

    # --- For the owner

    def hand_over(self, connection):
        connection.on_frame = self._answer
        self._post(lambda: self._selector.register(connection.sock, selectors.EVENT_READ, connection))

    def ask_back(self, connection):
        """It comes by `give_back`, unless it has come already."""
        self._post(lambda: self._let_go(connection, True))

    def stop(self):
        """Have `run` come back; no connection is looked at then, and all are the owner's to close."""
        self._stopping = True
        self._wake()

    def _post(self, action):
        self._posted.append(action)
        self._wake()

    def _wake(self):
        try:
            self._wake_in.send(b"\0")
        except BlockingIOError:
            pass  # it has been woken often enough

    # --- The loop

    def run(self):
        """Until `stop`."""
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
        repeat = connection.repeat  # the owner may forget it
        answer = repeat.answer_to(frame) if repeat is not None else None
        if answer is None:
            connection.hold(frame)
        else:
            connection.busy = False
            connection.send([answer])
