"""The whole worker process: what is opened, in which order, and closed again."""

import logging
import time

from standalone import properties
from standalone.clock import SYSTEM
from standalone.errors import AlreadyExistsError, ConnectError
from standalone.runtime.herder import Herder, check_target
from standalone.runtime.worker import Worker

log = logging.getLogger(__name__)


class Process:
    """`open`, `create_connectors`, `close`. Also what the test kit runs in place of a process."""

    def __init__(self, clock=SYSTEM):
        self._clock = clock
        self._began = time.monotonic()
        self.worker = None
        self.herder = None
        self.rest = None

    def open(self, props):
        """Everything but connectors. Raises ConnectError: what was opened is closed by `close`."""
        from standalone.rest.server import RestServer

        self.worker = Worker(props, self._clock)
        self.rest = RestServer(self.worker.config).bind()
        self.worker.open(self.rest.advertised())
        self.herder = Herder(self.worker, self.worker.state, self._clock)
        self.worker.watch(self.herder)
        self.rest.start(self.herder, self.worker)

    def create_connectors(self, files):
        """The connectors of these files, then those that were made by REST. Raises at the first file that will not do."""
        found = []
        for path in files:
            connector = properties.load_connector(path)
            if connector.name in [other.name for other in found]:
                raise AlreadyExistsError(f"{path}: there is a connector '{connector.name}' already, from another file of this command.")
            found.append(connector)
            target = check_target(connector.initial_state) if connector.initial_state else None
            try:
                self.herder.create(connector.name, connector.config, target, from_file=True)
            except ConnectError as error:
                raise type(error)(f"The connector of {path} cannot be created: {error}") from error
        self.herder.restore({connector.name for connector in found})
        self.worker.starting = False
        log.info("Started in %.2f s: REST on %s", time.monotonic() - self._began, ", ".join(self.rest.addresses))

    def close(self):
        """Stop connectors, make offsets durable, let go of everything. Every step is tried, whatever became of the others."""
        steps = []
        if self.herder is not None:
            steps.append(lambda: self.herder.close(self.worker.graceful_seconds))
        if self.rest is not None:
            steps.append(self.rest.stop)
        if self.worker is not None:
            steps.append(self.worker.close)
        for step in steps:
            try:
                step()
            except Exception:
                log.exception("While stopping")
