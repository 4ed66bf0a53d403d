"""The herder: decides which connectors exist, with which configurations and target states.

    queries.py      read-only queries
    connector.py    one connector and its operations

Reads and state changes happen under a lock that is never held while waiting. A thread that changes a connector holds its `changing` lock
until the change is stored, then queues the operation in the connector's mailbox; callers wait for it with a timeout. The name of a deleted
connector stays taken until all of its threads have ended.
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
    *("plugin_options", "examine", "same_connector", "worker_value", "count_connectors", "runners", "have_ended", "answers_within"),
)


class Shared(NamedTuple):
    """What all connectors share."""

    worker: Any
    state: Any
    lock: Any
    clock: Any
    timers: Timers
    closing: threading.Event
    failed_for_good: Any  # called with (what, trace), under the lock
    starts: Any  # "connector" and "task" -> metrics.Starts
    forget: Any  # called with a deleted Connector once all of its threads have ended


class Herder:
    """Also answers all methods of Queries."""

    def __init__(self, worker, state, clock, failed_for_good=lambda what, trace: None):
        self._worker = worker
        self._state = state
        self._lock = threading.RLock()
        self._connectors = {}
        self._making = threading.Lock()  # held while a connector is created, until it is stored
        self._closed = concurrent.futures.Future()  # done when the worker stops: ends all waits
        self.starts = {"connector": Starts(), "task": Starts()}
        self._shared = Shared(worker, state, self._lock, clock, Timers(clock), threading.Event(), failed_for_good, self.starts, self._forget)
        self._queries = Queries(worker, state, self._lock, self._connectors)
        for name in _ASKED:
            setattr(self, name, getattr(self._queries, name))

    # ---------------------------------------------------------------- creating
    def restore(self, from_files):
        """Start the connectors that were created by REST, all at once; `from_files` are names that the command line creates again."""
        started = []
        for name, config, target, from_file in self._state.connectors():
            if not from_file and name not in from_files:
                started.append(Mailbox(name).post(lambda each=(name, config, target): self._restore(*each)))
        concurrent.futures.wait(started, CALL_SECONDS)

    def _restore(self, name, config, target):
        try:
            self.create(name, config, target, wait=False)
        except Exception as error:  # it stays, so that its configuration can be read and fixed
            log.error("The connector '%s', stored earlier, cannot be started: %s", name, trace_of(error))
            with self._lock:
                connector = self._connectors.setdefault(name, Connector(name, self._shared))
                connector.take(config, target)
            connector.note(connector.part, FAILED, trace_of(error))

    def create(self, name, config, target=None, replace=False, from_file=False, wait=True):
        """Create a connector or replace its configuration; return (info, whether it is new). Raises ConfigError, AlreadyExistsError."""
        return self._configure(name, lambda connector: {"name": name, **config}, target, from_file, wait, must_be_new=not replace)

    def patch(self, name, changes):
        """Change some keys of the configuration; a value of None removes the key."""

        def merged(connector):
            if connector is None:
                self._queries.get(name)  # raises
            config = {**connector.config, **{key: value for key, value in changes.items() if value != HIDDEN}}
            config = {key: value for key, value in config.items() if value is not None}
            if not config.get("name", "").strip():
                raise ConfigError.of({"name": "is missing; a connector cannot be renamed"})
            return config

        return self._configure(name, merged)[0]

    def _configure(self, name, config_of, target=None, from_file=False, wait=True, must_be_new=False):
        """Validate the result of `config_of(connector or None)`, store it and apply it; retry if the connector changed meanwhile."""
        if name != well_formed(name):
            raise BadRequestError(f"A connector cannot be named '{well_formed(name)}': an unpaired surrogate is not a character.")
        validated = None
        while True:
            connector, config = self._look_before(name, config_of)
            if config != validated:  # else the connector changed meanwhile, but not the configuration to set
                plan, version = self._validated(name, config)
                validated = config
            if must_be_new and connector is not None:  # as in Java, errors of the configuration are reported first
                raise AlreadyExistsError(f"The connector '{name}' already exists. Change it with PUT /connectors/{name}/config.")
            with self._changing(connector):
                if self._look_again(name, connector, config_of) != config:
                    continue
                new = connector is None
                target = (target or self._stored_target(name, config, from_file) or STARTED) if new else connector.target
                self._state.put_connector(name, config, target, from_file)
                with self._lock:
                    connector = self._connectors.setdefault(name, connector or Connector(name, self._shared))
                    connector.take(config, target, plan, version)
                    started = connector.restart_with(plan)
            if wait:
                self._bounded(started, name, "start")
            return self._queries.info_of(connector), new

    def _validated(self, name, config):
        bound = lambda future: self._bounded(future, name, "validate")  # noqa: E731
        return call_plugin(lambda: plan_of(self._worker, {**config, "name": name}), connector=name, method="The validation", wait=bound)

    def _look_before(self, name, config_of):
        """(the Connector, or None if it is to be created; the configuration to set)"""
        while True:
            with self._lock:
                connector = self._connectors.get(name)
                if connector is None or not connector.is_ending:
                    return connector, self._wanted(connector, config_of)
            self._bounded(connector.ended, name, "finish its deletion")

    def _look_again(self, name, connector, config_of):
        """The configuration to set now, or None if the name now belongs to another connector or was deleted."""
        with self._lock:
            there = self._connectors.get(name)
            is_other = there is not connector or there is not None and there.is_ending
            return None if is_other else self._wanted(there, config_of)

    def _wanted(self, connector, config_of):
        config = config_of(connector)
        return config if connector is None else self._with_secrets(connector, config)

    @contextlib.contextmanager
    def _changing(self, connector):
        """Hold the connector's `changing` lock; with None, the lock for creating connectors."""
        lock = self._making if connector is None else connector.changing
        if not lock.acquire(timeout=CALL_SECONDS):
            raise ConflictError(f"Another change was not stored within {CALL_SECONDS:.0f} s: the disk of state.dir may hang.")
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def _changing_known(self, name):
        """The same for the connector that has this name now. Raises NotFoundError, also if another thread has just deleted it."""
        while True:
            connector = self._queries.get(name)
            with self._changing(connector):
                if connector is self._queries.get(name):
                    yield connector
                    return

    def _stored_target(self, name, config, from_file):
        """The stored target state: a connector created from a file stays paused or stopped over a restart."""
        for stored, old_config, target, was_from_file in self._state.connectors() if from_file else ():
            if stored == name:
                if old_config != config:
                    before = "its file had before" if was_from_file else "was set by REST"
                    log.info("The connector '%s' has another configuration in its file than %s; using the file's configuration", name, before)
                if target != STARTED:
                    log.info("The connector '%s' stays %s, as before the restart; resume it to start it", name, target)
                return target
        return None

    def _with_secrets(self, connector, config):
        """Replace masked secrets in a submitted configuration by the stored values."""
        return {key: connector.config.get(key, value) if value == HIDDEN and key in connector.secrets else value for key, value in config.items()}

    def delete(self, name):
        with self._changing_known(name) as connector:
            self._state.delete_connector(name, self._worker.id)
            with self._lock:
                ended = connector.delete()
        self._bounded(ended, name, "stop")

    def _forget(self, connector):
        """Free the name of a deleted connector whose threads have all ended."""
        self._worker.topics.forget(connector.name)
        with self._lock:
            if self._connectors.get(connector.name) is connector:
                del self._connectors[connector.name]

    # ---------------------------------------------------------------- offsets
    def change_offsets(self, name, entries):
        """Set [(partition, offset or None)] of a stopped connector; return whether the connector confirmed the change."""
        return self._with_offsets(name, lambda offsets: offsets.change(entries))

    def reset_offsets(self, name):
        return self._with_offsets(name, lambda offsets: offsets.reset())

    def _with_offsets(self, name, act):
        connector = self._queries.get(name)

        def in_turn():
            if connector.target != STOPPED or connector.part.state != STOPPED:
                why = "is not STOPPED; offsets can be changed only while it is."
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
        """Restart the connector and, on request, its tasks; return the status once all restarts are queued."""
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
        """Stop all connectors at once; return whether all ended within that time."""
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
        """The result of the future. Waits with a timeout, and no longer than the worker runs."""
        done, _ = concurrent.futures.wait([future, self._closed], CALL_SECONDS, concurrent.futures.FIRST_COMPLETED)
        if future in done:
            try:
                return future.result()
            except Abandoned:
                raise ConflictError(f"The connector '{name}' did not {doing}: another request has replaced this one.") from None
        if done:
            raise ConflictError(f"The worker is stopping: the connector '{name}' cannot {doing}.")
        raise ConflictError(f"The connector '{name}' did not {doing} within {CALL_SECONDS:.0f} s: the connector's code hangs.")


def check_target(text):
    """Parse an `initial_state` (RUNNING, PAUSED, STOPPED)."""
    state = {"RUNNING": STARTED, **{name: name for name in TARGET_STATES}}.get(str(text).upper())
    if state is None:
        raise BadRequestError(f"'{text}' is not a valid initial_state. Valid states: RUNNING, PAUSED, STOPPED.")
    return state
