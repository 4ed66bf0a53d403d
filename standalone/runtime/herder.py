"""The one that decides: which connectors there are, in which state, with which tasks.

    answers.py    what may be asked of it
    managed.py    one connector, and what is done in its lane
    restarts.py   starting again what failed

Quick things (looking up, noting a status) happen under a lock. Whatever calls into a connector's code runs in that connector's lane,
so a method that hangs blocks its own connector alone; callers wait for it for a bounded time.
"""

import concurrent.futures
import logging
import threading
from typing import Any, NamedTuple

from standalone.errors import AlreadyExistsError, BadRequestError, ConfigError, ConnectError
from standalone.runtime.answers import CALL_SECONDS, Answers
from standalone.runtime.configuration.plugin_options import HIDDEN
from standalone.runtime.lanes import Lane
from standalone.runtime.managed import STARTED, Managed, plan_of
from standalone.runtime.metrics import Starts
from standalone.runtime.supervision.restarts import Timers
from standalone.runtime.tasks.lifecycle import FAILED, PAUSED, RESTARTING, STOPPED, trace_of

log = logging.getLogger(__name__)

TARGET_STATES = (STARTED, PAUSED, STOPPED)


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


class Herder(Answers):
    def __init__(self, worker, state, clock, failed_for_good=lambda what, trace: None):
        super().__init__(worker, state, threading.RLock())
        self.starts = {"connector": Starts(), "task": Starts()}
        self._shared = Shared(worker, state, self._lock, clock, Timers(clock), threading.Event(), failed_for_good, self.starts)

    # ---------------------------------------------------------------- making
    def restore(self, from_files):
        """Start the connectors that were made by REST, all at once; `from_files` are names that the command line brings anew."""
        started = []
        for name, config, target, from_file in self._state.connectors():
            if not from_file and name not in from_files:
                started.append(Lane(name).post(lambda each=(name, config, target): self._restore(*each)))
        concurrent.futures.wait(started, CALL_SECONDS)

    def _restore(self, name, config, target):
        try:
            self.create(name, config, target, wait=False)
        except ConnectError as error:
            log.error("The connector '%s', stored earlier, cannot be started: %s", name, error)
            with self._lock:
                connector = self._connectors.setdefault(name, Managed(name, self._shared))
                connector.take(config, target)
            connector.note(FAILED, trace_of(error))

    def create(self, name, config, target=None, replace=False, from_file=False, wait=True):
        """Make a connector, or give one another configuration; returns (info, whether it is new). Raises ConfigError, AlreadyExistsError."""
        config = self._with_secrets(name, {"name": name, **config})
        plan, version = self._bounded(Lane(name, "validate").post(lambda: plan_of(self._worker, {**config, "name": name})), name, "validate")
        with self._lock:
            connector = self._connectors.get(name)
            if connector is not None and not replace:
                raise AlreadyExistsError(f"There is a connector '{name}' already. Change it with PUT /connectors/{name}/config.")
            new = connector is None
            target = (target or self._stored_target(name, config, from_file) or STARTED) if new else connector.target
            self._state.put_connector(name, config, target, from_file)
            connector = self._connectors.setdefault(name, connector or Managed(name, self._shared))
            connector.cancel_restarts()
            connector.take(config, target, plan, version)
        started = connector.lane.post(lambda: connector.start_anew(plan), urgent=True)
        if wait:
            self._bounded(started, name, "start")
        return self.info(name), new

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

    def patch(self, name, changes):
        """Change some keys of its configuration; a value of None takes the key away."""
        merged = {**self._get(name).config, **{key: value for key, value in changes.items() if value != HIDDEN}}
        merged = {key: value for key, value in merged.items() if value is not None}
        if not merged.get("name", "").strip():
            raise ConfigError.of({"name": "is missing; a connector keeps its name"})
        return self.create(name, merged, replace=True)[0]

    def _with_secrets(self, name, config):
        """What an answer showed as hidden and came back stands for what is stored."""
        with self._lock:
            connector = self._connectors.get(name)
            if connector is None:
                return config
            return {key: connector.config.get(key, value) if value == HIDDEN and key in connector.secrets else value for key, value in config.items()}

    def delete(self, name):
        with self._lock:
            connector = self._get(name)
            self._state.delete_connector(name, self._worker.id)
            del self._connectors[name]
            connector.forget()
        self._bounded(connector.lane.post(connector.stop, urgent=True), name, "stop")
        self._worker.topics.reset(name)

    # ---------------------------------------------------------------- offsets
    def change_offsets(self, name, entries):
        """Set [(partition, offset or None)] of a stopped connector; whether it said that it needs nothing more."""
        return self._with_offsets(name, lambda offsets: offsets.change(entries))

    def reset_offsets(self, name):
        return self._with_offsets(name, lambda offsets: offsets.reset())

    def _with_offsets(self, name, act):
        connector = self._get(name)

        def in_lane():
            if connector.target != STOPPED or connector.state != STOPPED:
                why = "is not STOPPED: its offsets can be changed only then."
                raise BadRequestError(f"The connector '{name}' {why} PUT /connectors/{name}/stop first.")
            return connector.change_offsets(act)

        if connector.target != STOPPED:
            in_lane()
        self._plan(connector)
        return self._bounded(connector.lane.post(in_lane), name, "change its offsets")

    # ---------------------------------------------------------------- states
    def pause(self, name):
        self._change_target(name, PAUSED)

    def resume(self, name):
        self._change_target(name, STARTED)

    def stop(self, name):
        self._change_target(name, STOPPED)

    def _change_target(self, name, target):
        with self._lock:
            connector = self._get(name)
            self._state.put_target_state(name, target)
            connector.target = target
            if target != STARTED:
                connector.cancel_restarts()
        connector.lane.post(connector.follow_target, urgent=target == STOPPED)

    def restart(self, name, include_tasks=False, only_failed=False):
        """Restart the connector and, if asked, its tasks; the status as it is when all is on its way."""
        connector = self._get(name)
        with self._lock:
            own = not only_failed or connector.state == FAILED
            tasks = [task for task in connector.tasks if include_tasks and (not only_failed or task.state == FAILED)]
            for part in ([connector] if own else []) + tasks:
                part.cancel_restart()
                part.attempts.forget()
            if own:
                connector.note(RESTARTING)
            for task in tasks:
                connector.note_task(task.number, RESTARTING)
            shown = self.status(name)
        done = connector.lane.post(lambda: connector.restart_parts(own, [task.number for task in tasks]), urgent=True)
        if not include_tasks and not only_failed:
            self._bounded(done, name, "restart")
        return shown

    def restart_task(self, name, number):
        connector = self._get(name)
        with self._lock:
            task = connector.task(number)
            task.cancel_restart()
            task.attempts.forget()
        self._bounded(connector.lane.post(lambda: connector.restart_task(number), urgent=True), name, "restart")

    def close(self, seconds):
        """Stop all connectors at once; whether all ended within that time."""
        with self._lock:
            self._shared.closing.set()
            if not self._closed.done():
                self._closed.set_result(None)
            connectors = list(self._connectors.values())
        self._shared.timers.close()
        for connector in connectors:
            for task in connector.tasks:
                if task.runner is not None:
                    Lane(connector.name).post(task.runner.stop)
        done = [connector.lane.post(connector.stop, urgent=True) for connector in connectors]
        _, left = concurrent.futures.wait(done, timeout=seconds + 1)
        return not left


def check_target(text):
    """A target state out of an `initial_state` (RUNNING, PAUSED, STOPPED)."""
    state = {"RUNNING": STARTED, **{name: name for name in TARGET_STATES}}.get(str(text).upper())
    if state is None:
        raise BadRequestError(f"'{text}' is no initial_state. There are RUNNING, PAUSED and STOPPED.")
    return state
