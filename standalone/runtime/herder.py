"""The one that decides which connectors there are, with which configurations and in which states.

    queries.py      what may be asked
    connector.py    one connector, and what is done with it

Looking up and noting states happens under a lock that nobody holds while waiting for anything. Who changes a connector has its `changing`
until the change is stored, and orders it then; what is ordered is done in the connector's mailbox, and callers wait for it for a bounded
time. A name that is deleted is taken until nothing of it runs any more.
"""

import concurrent.futures
import contextlib
import logging
import threading
from typing import Any, NamedTuple

from standalone.errors import AlreadyExistsError, BadRequestError, ConfigError, ConflictError, trace_of
from standalone.runtime.calls import CALL_SECONDS, Abandoned, Mailbox, call_plugin
from standalone.runtime.configuration.plugin_options import HIDDEN
from standalone.runtime.connector import STARTED, Connector, plan_of
from standalone.runtime.metrics import Starts
from standalone.runtime.queries import Queries
from standalone.runtime.supervision.restarts import Timers
from standalone.runtime.supervision.state import well_formed
from standalone.runtime.tasks.lifecycle import FAILED, PAUSED, RESTARTING, STOPPED

log = logging.getLogger(__name__)

TARGET_STATES = (STARTED, PAUSED, STOPPED)
_ASKED = (
    *("names", "info", "config", "status", "task_status", "tasks", "history", "pipeline", "topics", "reset_topics", "offsets", "plugins"),
    *("plugin_options", "examine", "same_connector", "worker_value", "census", "runners", "have_ended", "answers_within"),
)


class Shared(NamedTuple):
    """What all connectors have in common."""

    worker: Any
    state: Any
    lock: Any
    clock: Any
    timers: Timers
    closing: threading.Event
    failed_for_good: Any  # called with (what, trace), under the lock
    starts: Any  # "connector" and "task" -> metrics.Starts
    forget: Any  # called with a Connector that is deleted, once nothing of it runs any more


class Herder:
    """Whatever Queries answers may be asked of it, too."""

    def __init__(self, worker, state, clock, failed_for_good=lambda what, trace: None):
        self._worker = worker
        self._state = state
        self._lock = threading.RLock()
        self._connectors = {}
        self._making = threading.Lock()  # who makes a connector has it until that is stored
        self._closed = concurrent.futures.Future()  # done when the worker stops: nobody waits any longer
        self.starts = {"connector": Starts(), "task": Starts()}
        self._shared = Shared(worker, state, self._lock, clock, Timers(clock), threading.Event(), failed_for_good, self.starts, self._forget)
        self._queries = Queries(worker, state, self._lock, self._connectors)
        for name in _ASKED:
            setattr(self, name, getattr(self._queries, name))

    # ---------------------------------------------------------------- making
    def restore(self, from_files):
        """Start the connectors that were made by REST, all at once; `from_files` are names that the command line brings anew."""
        started = []
        for name, config, target, from_file in self._state.connectors():
            if not from_file and name not in from_files:
                started.append(Mailbox(name).post(lambda each=(name, config, target): self._restore(*each)))
        concurrent.futures.wait(started, CALL_SECONDS)

    def _restore(self, name, config, target):
        try:
            self.create(name, config, target, wait=False)
        except Exception as error:  # it stays, to be looked at and mended
            log.error("The connector '%s', stored earlier, cannot be started: %s", name, trace_of(error))
            with self._lock:
                connector = self._connectors.setdefault(name, Connector(name, self._shared))
                connector.take(config, target)
            connector.note(connector.part, FAILED, trace_of(error))

    def create(self, name, config, target=None, replace=False, from_file=False, wait=True):
        """Make a connector, or give one another configuration; returns (info, whether it is new). Raises ConfigError, AlreadyExistsError."""
        return self._configure(name, lambda connector: {"name": name, **config}, target, from_file, wait, must_be_new=not replace)

    def patch(self, name, changes):
        """Change some keys of its configuration; a value of None takes the key away."""

        def merged(connector):
            if connector is None:
                self._queries.get(name)  # raises
            config = {**connector.config, **{key: value for key, value in changes.items() if value != HIDDEN}}
            config = {key: value for key, value in config.items() if value is not None}
            if not config.get("name", "").strip():
                raise ConfigError.of({"name": "is missing; a connector keeps its name"})
            return config

        return self._configure(name, merged)[0]

    def _configure(self, name, config_of, target=None, from_file=False, wait=True, must_be_new=False):
        """Validate what `config_of(connector or None)` says, store it and order it; once more where the connector changed meanwhile."""
        if name != well_formed(name):
            raise BadRequestError(f"A connector cannot be named '{well_formed(name)}': half a surrogate pair is no letter.")
        validated = None
        while True:
            connector, config = self._look_before(name, config_of)
            if config != validated:  # else only the connector changed meanwhile, and nothing that it is to have
                plan, version = self._validated(name, config)
                validated = config
            if must_be_new and connector is not None:  # as in Java what is wrong with a configuration is told first
                raise AlreadyExistsError(f"There is a connector '{name}' already. Change it with PUT /connectors/{name}/config.")
            with self._changing(connector):
                if self._look_again(name, connector, config_of) != config:
                    continue
                new = connector is None
                target = (target or self._stored_target(name, config, from_file) or STARTED) if new else connector.target
                self._state.put_connector(name, config, target, from_file)
                with self._lock:
                    connector = self._connectors.setdefault(name, connector or Connector(name, self._shared))
                    connector.take(config, target, plan, version)
                    started = connector.start_anew(plan)
            if wait:
                self._bounded(started, name, "start")
            return self._queries.info_of(connector), new

    def _validated(self, name, config):
        bound = lambda future: self._bounded(future, name, "validate")  # noqa: E731
        return call_plugin(lambda: plan_of(self._worker, {**config, "name": name}), connector=name, method="The validation", wait=bound)

    def _look_before(self, name, config_of):
        """(the Connector, or None if it is to be made; the configuration that it is to have)"""
        while True:
            with self._lock:
                connector = self._connectors.get(name)
                if connector is None or not connector.is_ending:
                    return connector, self._wanted(connector, config_of)
            self._bounded(connector.ended, name, "end, having been deleted,")

    def _look_again(self, name, connector, config_of):
        """The configuration that it is to have now, or None if the name is another's, or its own no more."""
        with self._lock:
            there = self._connectors.get(name)
            is_other = there is not connector or there is not None and there.is_ending
            return None if is_other else self._wanted(there, config_of)

    def _wanted(self, connector, config_of):
        config = config_of(connector)
        return config if connector is None else self._with_secrets(connector, config)

    @contextlib.contextmanager
    def _changing(self, connector):
        """Nobody else changes what is stored of the connector meanwhile; of None: nobody else makes one."""
        lock = self._making if connector is None else connector.changing
        if not lock.acquire(timeout=CALL_SECONDS):
            raise ConflictError(f"Another change has not been stored within {CALL_SECONDS:.0f} s: the disk of state.dir may hang.")
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def _changing_known(self, name):
        """The same of the connector that has this name now. Raises NotFoundError, also where it was deleted by who was quicker."""
        while True:
            connector = self._queries.get(name)
            with self._changing(connector):
                if connector is self._queries.get(name):
                    yield connector
                    return

    def _stored_target(self, name, config, from_file):
        """A file's connector stays paused or stopped over a restart."""
        for stored, old_config, target, was_from_file in self._state.connectors() if from_file else ():
            if stored == name:
                if old_config != config:
                    before = "its file had before" if was_from_file else "it was given by REST"
                    log.info("The connector '%s' has another configuration in its file than %s: the file's configuration is taken", name, before)
                if target != STARTED:
                    log.info("The connector '%s' stays %s, as it was left; resume it to start it", name, target)
                return target
        return None

    def _with_secrets(self, connector, config):
        """What an answer showed as hidden and came back stands for what is stored."""
        return {key: connector.config.get(key, value) if value == HIDDEN and key in connector.secrets else value for key, value in config.items()}

    def delete(self, name):
        with self._changing_known(name) as connector:
            self._state.delete_connector(name, self._worker.id)
            with self._lock:
                ended = connector.delete()
        self._bounded(ended, name, "stop")

    def _forget(self, connector):
        """It is deleted, and nothing of it runs any more: the name is free."""
        self._worker.topics.forget(connector.name)
        with self._lock:
            if self._connectors.get(connector.name) is connector:
                del self._connectors[connector.name]

    # ---------------------------------------------------------------- offsets
    def change_offsets(self, name, entries):
        """Set [(partition, offset or None)] of a stopped connector; whether it said that it needs nothing more."""
        return self._with_offsets(name, lambda offsets: offsets.change(entries))

    def reset_offsets(self, name):
        return self._with_offsets(name, lambda offsets: offsets.reset())

    def _with_offsets(self, name, act):
        connector = self._queries.get(name)

        def in_turn():
            if connector.target != STOPPED or connector.part.state != STOPPED:
                why = "is not STOPPED: its offsets can be changed only then."
                raise BadRequestError(f"The connector '{name}' {why} PUT /connectors/{name}/stop first.")
            return connector.change_offsets(act)

        if connector.target != STOPPED:
            in_turn()
        self._queries.plan_of(connector)
        return self._bounded(connector.post(in_turn), name, "change its offsets")

    # ---------------------------------------------------------------- states
    def pause(self, name):
        self._change_target(name, PAUSED)

    def resume(self, name):
        self._change_target(name, STARTED)

    def stop(self, name):
        self._change_target(name, STOPPED)

    def _change_target(self, name, target):
        with self._changing_known(name) as connector:
            self._state.put_target_state(name, target)
            with self._lock:
                connector.follow(target)

    def restart(self, name, include_tasks=False, only_failed=False):
        """Restart the connector and, if asked, its tasks; the status as it is when all is on its way."""
        with self._lock:
            connector = self._queries.get(name)
            own = not only_failed or connector.part.state == FAILED
            tasks = [task for task in connector.tasks if include_tasks and (not only_failed or task.state == FAILED)]
            for part in ([connector.part] if own else []) + tasks:
                part.cancel_restart()
                part.attempts.forget()
                connector.note(part, RESTARTING)
            shown = self._queries.status_of(connector)
            done = connector.restart(own, [task.number for task in tasks])
        if not include_tasks and not only_failed:
            self._bounded(done, name, "restart")
        return shown

    def restart_task(self, name, number):
        with self._lock:
            connector = self._queries.get(name)
            task = connector.task(number)
            task.cancel_restart()
            task.attempts.forget()
            done = connector.restart(False, [number])
        self._bounded(done, name, "restart")

    def close(self, seconds):
        """Stop all connectors at once; whether all ended within that time."""
        with self._lock:
            self._shared.closing.set()
            if not self._closed.done():
                self._closed.set_result(None)
            connectors = list(self._connectors.values())
        self._shared.timers.close()
        _, left = concurrent.futures.wait([connector.close() for connector in connectors], timeout=seconds + 1)
        return not left

    # ---------------------------------------------------------------- waiting
    def _bounded(self, future, name, doing):
        """What the future brings, waiting neither for ever nor beyond the worker's end."""
        done, _ = concurrent.futures.wait([future, self._closed], CALL_SECONDS, concurrent.futures.FIRST_COMPLETED)
        if future in done:
            try:
                return future.result()
            except Abandoned:
                raise ConflictError(f"The connector '{name}' did not {doing}: something else was asked of it meanwhile.") from None
        if done:
            raise ConflictError(f"The worker is stopping: the connector '{name}' may not {doing} any more.")
        raise ConflictError(f"The connector '{name}' did not {doing} within {CALL_SECONDS:.0f} s: its own code hangs.")


def check_target(text):
    """A target state out of an `initial_state` (RUNNING, PAUSED, STOPPED)."""
    state = {"RUNNING": STARTED, **{name: name for name in TARGET_STATES}}.get(str(text).upper())
    if state is None:
        raise BadRequestError(f"'{text}' is no initial_state. There are RUNNING, PAUSED and STOPPED.")
    return state
