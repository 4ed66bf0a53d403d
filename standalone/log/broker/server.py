"""The embedded log: a durable single-node server of Kafka's protocol inside this process.

    log = EmbeddedLog("state/log", "127.0.0.1:9092", {"embedded.log.retention.ms": "86400000"})
    log.start()
    ... any Kafka client, with bootstrap.servers=log.bootstrap ...
    log.stop()

Threads: the owner holds all state and processes all requests in a selector loop; no other module of the broker uses threads. A second thread
waits for the disk (fsync, deletion), so that a slow disk does not delay responses; a third compacts; a fourth answers heartbeats that change
nothing, even while the owner is blocked (heartbeats.py). `start`, `stop` and `sync` may be called from any thread.
"""

import fcntl
import functools
import logging
import os
import queue
import resource
import selectors
import socket
import threading
from collections import deque
from struct import Struct
from struct import error as StructError

from standalone import clock as clocks
from standalone.errors import LogError, StartError
from standalone.log.broker import listeners, options, topics_api
from standalone.log.broker.call import Call
from standalone.log.broker.connection import Connection
from standalone.log.broker.heartbeats import Heartbeats, Repeat
from standalone.log.broker.login_error import LoginError
from standalone.log.broker.node import Node
from standalone.log.broker.nulls import refuse_nulls
from standalone.log.broker.operations import CLUSTER_NAME
from standalone.log.broker.primitives import skip_tags
from standalone.log.broker.refusal import Refusal
from standalone.log.broker.requests import API_VERSIONS, BEFORE_LOGIN, HANDLERS, WITH_RECORDS, refusal_of
from standalone.log.broker.sasl_api import FAILED_LOGIN_SECONDS
from standalone.log.broker.security import Security
from standalone.log.broker.timers import Timers
from standalone.private import open_private

LOCK_FILE = ".lock"
_KEY_AND_VERSION = Struct(">hh")
_HEADER = Struct(">hhih")  # key, version, correlation id, length of the client's id
# As kafka-python's decoders raise them.
_UNREADABLE = (StructError, AssertionError, ValueError, LookupError, TypeError, EOFError, MemoryError, OverflowError)
_ACCEPT_PAUSE_SECONDS = 1.0
_IDLE_CHECK_SECONDS = 60.0
_STOP_SECONDS = 60.0

logger = logging.getLogger(__name__)


class EmbeddedLog:
    """`config` holds `embedded.log.*` keys, as strings or values; `listener` is host:port or a list (listeners.py); port 0 picks a free port."""

    def __init__(self, directory, listener=listeners.DEFAULT, config=None, clock=clocks.SYSTEM):
        self._directory = os.path.abspath(directory)
        self._settings = options.settings(config or {})
        self._security = Security(listener, self._settings)
        self._clock = clock
        self._lock = None
        self._owner = None
        self._node = None

    @property
    def bootstrap(self):
        """host:port for clients on this machine, once started."""
        return self._security.listeners[0].bootstrap

    def bootstrap_of(self, protocol):
        """Like `bootstrap`, for the first listener with this protocol; None if there is none."""
        return next((listener.bootstrap for listener in self._security.listeners if listener.protocol == protocol), None)

    @property
    def own_settings(self):
        """Client settings with Java's names, including the address, for clients of this process, which may do everything."""
        return self._security.own_settings

    def start(self):
        """Raise StartError if the port or folder is in use, or the folder cannot be read."""
        try:
            self._take_folder()
            for each in self._security.all_listeners:
                each.start()
            self._owner = _BrokerThread(self._security, self._settings, self._clock)
            self._node = self._owner.start(self._directory, self._settings)
        except BaseException:
            self._let_go()
            raise
        logger.info("The embedded log serves %s from %s.", self.bootstrap, self._directory)

    def sync(self):
        """Wait until everything acknowledged so far is durable. Raise LogError if it cannot be."""
        if self._node is None or not self._node.is_dirty:
            return
        outcome = queue.SimpleQueue()
        self._owner.post(lambda: self._node.flush(outcome.put), refuse=lambda: outcome.put(["The embedded log has stopped."]))
        errors = outcome.get()
        if errors:
            raise LogError(errors[0])

    def sizes(self):
        """Return [(topic, partition, bytes on disk, start offset, end offset)]."""
        if self._node is None:
            return []
        told = queue.SimpleQueue()

        def tell():
            told.put([(p.topic, p.number, p.size, p.start, p.end) for p in self._node.topics.partitions()])

        self._owner.post(tell, refuse=lambda: told.put([]))
        return told.get()

    def stop(self):
        """fsync everything, close every connection. May be called twice."""
        if self._owner is not None:
            self._owner.stop()
        self._let_go()

    def _let_go(self):
        for each in self._security.all_listeners:
            each.stop()
        if self._lock is not None:
            self._lock.close()
        self._owner = self._node = self._lock = None

    def _take_folder(self):
        try:
            os.makedirs(self._directory, exist_ok=True)
            self._lock = open_private(os.path.join(self._directory, LOCK_FILE), "a+")
        except OSError as error:
            raise StartError(f"embedded.log.dir: the folder {self._directory} cannot be used: {error.strerror}.") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = self._lock.read().strip()
            raise StartError(
                f"embedded.log.dir: the folder {self._directory} is in use by another process{f' ({holder})' if holder else ''}. "
                "Two workers cannot share an embedded log: stop the other one, or give this one its own folder."
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"pid {os.getpid()}")
        self._lock.flush()


class _BrokerThread:
    """The thread that owns the node: a selector loop."""

    def __init__(self, security, settings, clock):
        self._security = security
        self._idle_seconds = settings["embedded.log.connections.max.idle.ms"] / 1000
        # Leave half of the process's file descriptors to segments and connectors.
        self._most_connections = min(settings["embedded.log.max.connections"], resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._connections = set()
        self._refused_connections = 0
        self._timers = Timers(clock)
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._posted = deque()
        self._door = threading.Lock()  # guards against posts to an owner that has ended
        self._ended = False
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._waiting = deque()  # connections whose next request already arrived while one was answered late
        self._turns = 0
        self._stopping = False
        self._disk = _Disk(self.post, "embedded-log-disk")
        self._compactor = _Disk(self.post, "embedded-log-compaction")  # a separate thread, so that fsyncs do not wait for it
        self._heartbeats = Heartbeats(lambda connection, alive: self.post(lambda: self._take_back(connection, alive), refuse=lambda: None))
        self._heartbeat_thread = threading.Thread(target=self._heartbeats.run, name="embedded-log-heartbeats", daemon=True)
        self._node = None
        self._thread = None

    # --- Called by other threads

    def start(self, directory, settings):
        started = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(directory, settings, started), name="embedded-log", daemon=True)
        self._thread.start()
        node = started.get()
        if isinstance(node, BaseException):
            self._thread.join()
            raise node
        return node

    def post(self, action, refuse=None):
        """Run `action` on the owner thread, or `refuse` if it has stopped."""
        with self._door:
            if not self._ended:
                self._posted.append((action, refuse))
                try:
                    self._wake_in.send(b"\0")
                except BlockingIOError:
                    pass  # a wake-up is already pending
                return
        if refuse:
            refuse()

    def stop(self):
        self.post(self._begin_stop)
        self._thread.join(_STOP_SECONDS)

    # --- The event loop

    def _run(self, directory, settings, started):
        try:
            self._node = Node(directory, settings, self._clock, self._timers, self._disk.hand_over, self._compactor.hand_over)
            self._security.settle(self._node)
            self._node.api_versions = [(key, row.low, row.high) for key, row in sorted(HANDLERS.items())]
        except OSError as error:
            started.put(StartError(f"embedded.log.dir: {error.filename or directory} cannot be read or written: {error.strerror}."))
            return
        except BaseException as error:
            started.put(error)
            return
        self._disk.start()
        self._compactor.start()
        self._heartbeat_thread.start()
        self._drop_the_idle()
        for listener in self._security.all_listeners:
            self._listen(listener)
        self._selector.register(self._wake_out, selectors.EVENT_READ, self._drain)
        started.put(self._node)
        while not self._stopping:
            try:
                self._turn()
            except Exception:
                logger.exception("The embedded log met its own error; it continues.")
        self._end()

    def _turn(self):
        """Process all small requests and one large request or response: so no heartbeat waits for more than one megabyte of work."""
        large, produces = None, self._node.produces
        ready = self._selector.select(0 if self._waiting or self._posted else self._timers.seconds_left())
        produces.is_open = len(ready) > 1
        for key, events in ready:
            connection = key.data
            if not isinstance(connection, Connection):
                connection()
            elif not connection.is_at_a_large_one:
                self._serve(connection, events)
            elif large is None or connection.turn < large[0].turn:
                large = connection, events  # the others are found again in the next turn
        produces.finish()
        if large is not None:
            self._turns += 1
            large[0].turn = self._turns
            self._serve(*large)
        self._timers.run_due()
        while self._posted:
            self._posted.popleft()[0]()
        produces.is_open = len(self._waiting) > 1
        for _ in range(len(self._waiting)):
            connection = self._waiting.popleft()
            if not connection.is_closed and not connection.is_lent:
                self._settle(connection, connection.go_on())
        produces.finish()

    def _serve(self, connection, events):
        if connection.is_closed or connection.is_lent:
            return
        alive = True
        if events & selectors.EVENT_WRITE:
            alive = connection.flush() and connection.work()
        if alive and events & selectors.EVENT_READ:
            alive = connection.receive()
        self._settle(connection, alive)

    def _settle(self, connection, alive):
        if alive:
            self.watch(connection)
        else:
            self.drop(connection)

    def watch(self, connection):
        """Update the connection's selector events."""
        if connection.is_closed or connection.at_work or connection.is_lent:  # whoever works on it calls this afterwards
            return
        if connection.repeat is not None and connection.is_at_rest:
            self._lend(connection)
            return
        events = selectors.EVENT_READ if connection.wants_to_read else 0
        if connection.wants_to_write:
            events = selectors.EVENT_WRITE
        elif connection.holds_a_request:
            self._waiting.append(connection)
        if events != connection.events:
            if not connection.events:
                self._selector.register(connection.sock, events, connection)
            elif not events:
                self._selector.unregister(connection.sock)
            else:
                self._selector.modify(connection.sock, events, connection)
            connection.events = events

    def _lend(self, connection):
        """Hand the connection to the heartbeat thread until another kind of request arrives."""
        self._unwatch(connection)
        connection.is_lent = True
        self._heartbeats.hand_over(connection)

    def _take_back(self, connection, alive):
        connection.is_lent, connection.on_frame = False, self._handle
        self._settle(connection, alive and connection.work())

    def _unwatch(self, connection):
        if connection.events:
            self._selector.unregister(connection.sock)
            connection.events = 0

    def drop(self, connection):
        if connection.is_closed:
            return
        self._unwatch(connection)
        self._connections.discard(connection)
        connection.close()

    def _drop_the_idle(self):
        """Close connections without a pending request that were silent for connections.max.idle.ms."""
        if self._idle_seconds < 0:
            return
        oldest = self._clock.monotonic() - self._idle_seconds
        for connection in [c for c in self._connections if c.active_at < oldest and (not c.busy or c.wants_to_write)]:
            if connection.is_lent:
                connection.repeat = None  # otherwise it would be lent again at once
                self._heartbeats.ask_back(connection)
                continue
            logger.debug("%s: closed a connection that was idle for %d s.", connection.peer, self._idle_seconds)
            self.drop(connection)
        self._timers.after(min(max(self._idle_seconds / 4, 0.01), _IDLE_CHECK_SECONDS), self._drop_the_idle)

    def _refuse_connection(self, sock):
        sock.close()
        self._refused_connections += 1
        if self._refused_connections == 1:
            logger.warning(
                "The embedded log serves %d connections and takes no more (embedded.log.max.connections, and half of the files that "
                "this process may open: ulimit -n).",
                len(self._connections),
            )
            self._timers.after(_IDLE_CHECK_SECONDS, self._count_refused)

    def _count_refused(self):
        if self._refused_connections > 1:
            logger.warning("The embedded log refused %d connections within %d s.", self._refused_connections, _IDLE_CHECK_SECONDS)
        self._refused_connections = 0

    def _listen(self, listener):
        self._selector.register(listener.socket, selectors.EVENT_READ, functools.partial(self._accept, listener))

    def _accept(self, listener):
        try:
            sock, _ = listener.socket.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # Probably out of file descriptors; without a pause this loop would spin.
            logger.error("The embedded log cannot take a connection: %s.", error.strerror)
            self._selector.unregister(listener.socket)
            self._timers.after(_ACCEPT_PAUSE_SECONDS, lambda: self._listen(listener))
            return
        if len(self._connections) >= self._most_connections:
            self._refuse_connection(sock)
            return
        try:
            connection = self._security.connection(listener, sock, self._handle, self._clock)
        except OSError as error:
            logger.debug("A connection was gone before it was served: %s.", error)
            sock.close()
            return
        self._connections.add(connection)
        self.watch(connection)

    def _drain(self):
        try:
            self._wake_out.recv(4096)
        except BlockingIOError:
            pass

    # --- Requests

    def _handle(self, connection, frame):
        try:
            self._dispatch(connection, frame)
        except Exception:
            logger.exception("A request from %s could not be done; the connection is closed.", connection.peer)
            self.drop(connection)

    def _dispatch(self, connection, frame):
        if connection.client.sends_tokens:
            self._take_token(connection, frame)
            return
        key, version = _KEY_AND_VERSION.unpack_from(frame)
        row = HANDLERS.get(key)
        flexible = row is not None and row.request.flexible_version_q(version)
        correlation_id, client_id, at = _read_header(frame, flexible)
        needs = row.needs if row is not None else None
        call = Call(self, connection, version, correlation_id, client_id, needs, self._node.authorizer)
        if not self._is_let_in(connection.client, key):
            call.hang_up(f"request {key} of who has not logged in, or whose login is over")
            return
        if row is None or not row.low <= version <= row.high:
            self._refuse(call, key, row)
            return
        try:
            request = row.request.decode(frame[at:], version=version)
            refuse_nulls(request, version)
        except _UNREADABLE as error:
            call.hang_up(f"request {key} version {version}, which cannot be read: {error}")
            return
        if key in WITH_RECORDS:
            connection.repeat = None  # a connection that sends records is not lent for the heartbeats in between
        writes = self._node.store.writes
        try:
            if row.named:
                call.require(row.first_need, CLUSTER_NAME if row.named == CLUSTER_NAME else getattr(request, row.named) or "")
            response = row.handler(self._node, call, request)
        except Refusal as refusal:
            response = refusal_of(key, version, refusal)
            if response is None:
                call.hang_up(f"request {key} version {version} that is refused: {refusal}")
                return
        if response is None:
            return
        if self._node.store.writes == writes:
            if call.still_true is not None:
                connection.repeat = self._repeat(key, frame, connection.client, call, response)
            call.answer(response)
        else:
            self._answer_when_durable(call, response)

    def _repeat(self, key, frame, client, call, response):
        acls, changes = self._node.authorizer.acls, self._node.authorizer.acls.changes

        def still_true():
            return acls.changes == changes and self._is_let_in(client, key) and call.still_true()

        return Repeat(frame, response, still_true)

    def _is_let_in(self, client, key):
        if key in BEFORE_LOGIN:
            return True
        return client.is_known and (client.ends_ms is None or self._clock.now_ms() < client.ends_ms)

    def _take_token(self, connection, frame):
        """Process a raw token from a client that logs in without request framing, as before Kafka 1.0."""
        call = Call(self, connection, 0, 0, None)
        try:
            call.answer_token(connection.client.step(bytes(frame)))
        except LoginError as error:
            why = f"a login that failed ({error})"
            self._timers.after(FAILED_LOGIN_SECONDS, lambda: call.hang_up(why))

    def _answer_when_durable(self, call, response):
        """Respond after the handler's writes are fsynced."""

        def synced(errors):
            if errors:
                call.hang_up(f"a request whose outcome could not be made durable ({errors[0]})")
            else:
                call.answer(response)

        self._node.flush(synced, [self._node.store])

    def _refuse(self, call, key, row):
        """Reject an unsupported request with UNSUPPORTED_VERSION, if its response has an error field."""
        if key == API_VERSIONS:
            call.answer(topics_api.api_versions_unknown(self._node, call))
            return
        response = refusal_of(key, call.version)
        if response is not None:
            call.answer(response)
        else:
            call.hang_up(f"request {key} version {call.version}, which is not offered")

    # --- Shutdown

    def _begin_stop(self):
        self._stopping = True

    def _end(self):
        self._heartbeats.stop()
        self._heartbeat_thread.join()
        self._compactor.stop()
        self._disk.stop()
        with self._door:
            self._ended = True
        while self._posted:
            action, refuse = self._posted.popleft()
            (refuse or action)()
        for connection in list(self._connections):
            self.drop(connection)
        self._node.close()
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()


class _Disk:
    """A thread that waits for the disk: it fsyncs and deletes files, or compacts."""

    def __init__(self, post, name):
        self._post = post
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self):
        self._thread.start()

    def hand_over(self, jobs, then):
        """Run the jobs, then have the owner call `then`, if given."""
        self._queue.put((jobs, then))

    def stop(self):
        self._queue.put(None)
        self._thread.join()

    def _run(self):
        while (work := self._queue.get()) is not None:
            jobs, then = work
            for job in jobs:
                try:
                    job.run()
                except Exception:
                    logger.exception("The embedded log met its own error while it worked on the disk; it continues.")
            del work, jobs  # they may hold open files
            if then:
                self._post(then)


def _read_header(frame, flexible):
    """(correlation id, client id or None, position of the request body)"""
    _, _, correlation_id, length = _HEADER.unpack_from(frame)
    end = _HEADER.size + max(length, 0)
    client_id = str(frame[_HEADER.size : end], "utf-8") if length >= 0 else None
    return correlation_id, client_id, skip_tags(frame, end) if flexible else end
