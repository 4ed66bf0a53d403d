"""The whole worker process: startup and shutdown, in order."""

import logging
import threading
import time

from standalone import files, kernels, properties
from standalone.clock import SYSTEM
from standalone.errors import AlreadyExistsError, ConnectError
from standalone.runtime.herder import Herder, check_target
from standalone.runtime.streaming import Streaming
from standalone.runtime.worker import Worker

log = logging.getLogger(__name__)

_NEEDED = ("state", "offsets", "heartbeats", "rest", "embedded-log")  # threads without which the worker does no work


class Process:
    """`open`, `create_connectors`, `close`. The test kit runs it without a separate process.

    `over` is set when the process should end: all finite sources have finished; or `failed` holds a permanent failure
    (task.failure.exit); or `rest_failed`: the REST API has stopped. `session`: a SessionHolder
    that was launched early.
    """

    def __init__(self, clock=SYSTEM, over=None, session=None):
        self._clock = clock
        self._session = session
        self.over = over or threading.Event()
        self.failed = None
        self.rest_failed = False
        self._began = time.monotonic()
        self.worker = None
        self.herder = None
        self.rest = None
        self._threads = []  # this worker's threads of those in _NEEDED

    def open(self, props):
        """Open everything except connectors. Raises ConnectError; `close` then closes what was opened."""
        from standalone.rest.server import RestServer

        others = set(threading.enumerate())
        self.worker = Worker(props, self._clock, self._session)
        files.allow_only(self.worker.config[files.KEY])
        self.rest = RestServer(self.worker.config).bind()
        self.worker.open(self.rest.advertised())
        self.herder = Herder(self.worker, self.worker.state, self._clock, self._failed_for_good)
        self.worker.watch(self.herder)
        self.worker.note_end = self._source_has_ended
        self.worker.streaming = Streaming(self.worker, self.herder, self._clock, self._failed_for_good)
        self.rest.start(self.herder, self.worker, self._not_served)
        self._threads = [thread for thread in threading.enumerate() if thread.name in _NEEDED and thread not in others]

    def create_connectors(self, files):
        """Create the connectors of these files, then those created by REST, then the queries. Raises at the first invalid file.

        A file whose name ends in .sql holds SQL statements.
        """
        found = []
        statements = [path for path in files if str(path).lower().endswith(".sql")]
        for path in files:
            if path in statements:
                continue
            connector = properties.load_connector(path)
            if connector.name in [other.name for other in found]:
                raise AlreadyExistsError(f"{path}: the connector '{connector.name}' already exists, from another file of this command.")
            found.append(connector)
            target = check_target(connector.initial_state) if connector.initial_state else None
            try:
                self.herder.create(connector.name, connector.config, target, from_file=True)
            except ConnectError as error:
                raise type(error)(f"The connector '{connector.name}' of {path} cannot be created: {error}") from error
        self.herder.restore({connector.name for connector in found})
        self._restore_queries(statements)
        self.worker.starting = False
        self._source_has_ended()  # they may have finished meanwhile
        kernels.ready()  # a second process compiles missing kernels in the background
        log.info("Started in %.2f s: REST on %s", time.monotonic() - self._began, ", ".join(self.rest.addresses))

    def _restore_queries(self, files):
        try:
            self.worker.streaming.restore(files)
        except OSError as error:
            raise ConnectError(f"{error.filename} cannot be read: {error.strerror}.") from error
        except ConnectError as error:
            if files:
                raise type(error)(f"The statements of {', '.join(map(str, files))} failed: {error}") from error
            log.error("The stored queries cannot be started: %s", error)  # connectors run without them

    def health_problem(self, seconds):
        """Why the worker is unhealthy, as far as can be determined within that time; None if it is healthy."""
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        if ended:
            return f"its thread '{ended[0]}' has ended"
        if not self.herder.answers_within(seconds):
            return f"the state of its connectors could not be read within {seconds:.0f} s"
        if not self.worker.state.answers_within(seconds):
            return f"its state on disk could not be read within {seconds:.0f} s"
        return self.worker.health_problem()

    def _failed_for_good(self, what, trace):
        if self.worker.config["task.failure.exit"] and not self.over.is_set():
            log.error("%s failed permanently: the worker stops (task.failure.exit)", what)
            self.failed = what
            self.over.set()

    def _source_has_ended(self):
        if not self.worker.starting and self.herder.have_ended() and not self.over.is_set():
            log.info("All sources have finished: the worker stops")
            self.over.set()

    def _not_served(self, error):
        log.error("The worker stops because its REST API failed: %s: %s", type(error).__name__, error)
        self.rest_failed = True
        self.over.set()

    def close(self):
        """Stop connectors, make offsets durable, close everything. Each step runs even if an earlier one failed."""
        steps = []
        if self.herder is not None:
            steps.append(lambda: self.herder.close(self.worker.graceful_seconds))
        if self.worker is not None and self.worker.streaming is not None:
            steps.append(lambda: self.worker.streaming.close(self.worker.graceful_seconds))
        if self.rest is not None:
            steps.append(self.rest.stop)
        if self.worker is not None:
            steps += [self.worker.close, self.worker.config.providers.close]
        elif self._session is not None:
            steps.append(lambda: self._session.stop(0))
        for step in steps:
            try:
                step()
            except Exception:
                log.exception("While stopping")
