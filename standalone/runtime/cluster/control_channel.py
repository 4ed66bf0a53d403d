"""The control channel between a task on an executor and the worker: multiprocessing's connections with an authkey, and messages in JSON.

    executor                                      worker
      open_channel() ─────── authkey ───────────▶ ChannelServer, a thread for each channel
      channel.send(kind, body)   channel.ask(kind, body) ─▶ its answer

Only clients with the worker's authkey get beyond the handshake, in both directions. Messages are parsed as JSON, never unpickled. Each end
sends a heartbeat every second, and closes a channel that has been silent for ten.
"""

import contextlib
import logging
import os
import socket
import struct
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener, answer_challenge, deliver_challenge

import orjson

from standalone.errors import ConnectError

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0
MOST_BYTES = 64 << 20  # maximum size of a message
KEY_BYTES = 32
_ANSWER, _HEARTBEAT = "answer", "heartbeat"


class ChannelLost(ConnectError):
    """The other end has closed it, or `is_silent`: it has sent nothing for TIMEOUT_SECONDS."""

    is_silent = False


def new_key():
    return os.urandom(KEY_BYTES)


class Channel:
    """One end. `send` and `ask` are thread-safe; `receive` is called by one thread, which passes responses to the callers of `ask`."""

    def __init__(self, connection):
        self._connection = connection
        self._sending = threading.Lock()
        self._asked = {}
        self._count = 0
        self._lost = None
        _bound(connection)

    def send(self, kind, body=None, number=None):
        data = orjson.dumps([kind, number, body])
        try:
            with self._sending:
                self._connection.send_bytes(data)
        except (OSError, ValueError) as error:
            raise ChannelLost(f"The control channel is lost: {error}.") from error

    def heartbeat(self):
        with contextlib.suppress(ChannelLost):
            self.send(_HEARTBEAT)

    def ask(self, kind, body=None, seconds=60.0):
        """Send a request and return the response. Raises ChannelLost."""
        waiting = _Waiting()
        with self._sending:
            if self._lost is not None:
                raise self._lost
            self._count += 1
            number = self._count
            self._asked[number] = waiting
        try:
            self.send(kind, body, number)
            if not waiting.done.wait(seconds):
                raise ChannelLost(f"The other end did not respond to '{kind}' within {seconds:.0f} s.")
        finally:
            with self._sending:
                self._asked.pop(number, None)
        if waiting.error is not None:
            raise waiting.error
        return waiting.answer

    def answer(self, number, body):
        self.send(_ANSWER, body, number)

    def receive(self):
        """(kind, number, body) of the next message that is neither a response nor a heartbeat. Raises ChannelLost once the channel is closed."""
        while True:
            try:
                kind, number, body = orjson.loads(self._connection.recv_bytes(MOST_BYTES))
            except (EOFError, OSError, ValueError, TypeError) as error:
                lost = ChannelLost(f"The control channel is lost: {error or type(error).__name__}.")
                lost.is_silent = isinstance(error, BlockingIOError)
                self._give_up(lost)
                raise lost from error
            if kind == _ANSWER:
                with self._sending:
                    waiting = self._asked.get(number)
                if waiting is not None:
                    waiting.answer = body
                    waiting.done.set()
            elif kind != _HEARTBEAT:
                return kind, number, body

    def close(self):
        """Thread-safe: ends `receive`."""
        with contextlib.suppress(OSError, ValueError):
            sock = socket.socket(fileno=os.dup(self._connection.fileno()))
            try:
                sock.shutdown(socket.SHUT_RDWR)
            finally:
                sock.close()

    def _give_up(self, error):
        with self._sending:
            self._lost, waiting = error, list(self._asked.values())
            with contextlib.suppress(OSError):
                self._connection.close()
        for each in waiting:
            each.error = error
            each.done.set()


class _Waiting:
    def __init__(self):
        self.done = threading.Event()
        self.answer = self.error = None


class ChannelServer:
    """The worker's end of all channels. `serve(channel)` is called on a new thread for each authenticated client."""

    def __init__(self, host, port, serve):
        self.key = new_key()
        self._serve = serve
        self._closed = False
        self._listener = Listener((host, port), "AF_INET", backlog=128)
        self.port = self._listener.address[1]
        threading.Thread(target=self._accept, name="cluster-channel", daemon=True).start()

    def close(self):
        self._closed = True
        # Closing the socket does not end accept(); a connection does.
        host, port = self._listener.address
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), 1).close()
        self._listener.close()

    def _accept(self):
        while not self._closed:
            try:
                connection = self._listener.accept()
            except OSError as error:
                if not self._closed:
                    log.warning("A task's control channel could not be accepted: %s", error)
                continue
            if not self._closed:
                threading.Thread(target=self._attend, args=(connection,), name="cluster-channel-task", daemon=True).start()

    def _attend(self, connection):
        try:
            _bound(connection)
            deliver_challenge(connection, self.key)
            answer_challenge(connection, self.key)
        except (AuthenticationError, EOFError, OSError, ValueError) as error:
            log.warning("A connection to the worker's port for tasks failed to authenticate: %s", error or type(error).__name__)
            connection.close()
            return
        channel = Channel(connection)
        try:
            self._serve(channel)
        except ChannelLost:
            pass
        except Exception:
            log.exception("A task's control channel failed and is closed")
        finally:
            channel.close()


def open_channel(address, key):
    """The executor's end of a channel to the worker at (host, port). Raises ChannelLost."""
    try:
        return Channel(Client(tuple(address), "AF_INET", authkey=key))
    except (AuthenticationError, EOFError, OSError) as error:
        raise ChannelLost(f"The worker cannot be reached at {address[0]}:{address[1]}: {error or type(error).__name__}.") from error


def _bound(connection):
    """Limit sends and receives to the time that an end may be silent."""
    limit = struct.pack("ll", int(TIMEOUT_SECONDS), 0)
    with socket.socket(fileno=os.dup(connection.fileno())) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
