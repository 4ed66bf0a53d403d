"""What may be asked of the herder. Answers come from memory, or from code that is given a bounded time."""

import concurrent.futures
from typing import Any, NamedTuple

from standalone.errors import BadRequestError, ConfigError, ConflictError, NotFoundError
from standalone.runtime.configuration.plugin_options import examine_all, options_of
from standalone.runtime.lanes import Abandoned, Lane
from standalone.runtime.supervision.restarts import iso
from standalone.runtime.supervision.state import CONNECTOR
from standalone.secrets import mask

CALL_SECONDS = 90.0  # how long a caller waits for a connector's own code; as Connect's REST requests


class CountedTask(NamedTuple):
    number: int
    state: str
    runner: Any


class Counted(NamedTuple):
    """A connector, for who counts."""

    name: str
    kind: str
    java_class: str
    version: Any
    state: str
    tasks: list  # of CountedTask

    @classmethod
    def of(cls, connector):
        tasks = [CountedTask(task.number, task.state, task.runner) for task in connector.tasks]
        said = connector.config.get("connector.class", "")
        java_class = getattr(connector.plan and connector.plan.connector_class, "java_name", None) or said
        return cls(connector.name, connector.kind, java_class, connector.version, connector.state, tasks)


class Answers:
    """`_connectors` maps names to Managed connectors; it and their states are read under `_lock`."""

    def __init__(self, worker, state, lock):
        self._worker = worker
        self._state = state
        self._lock = lock
        self._connectors = {}
        self._closed = concurrent.futures.Future()  # done when the worker stops: nobody waits any longer

    def names(self):
        with self._lock:
            return list(self._connectors)

    def info(self, name):
        """As REST shows it: name, config, tasks, type."""
        connector = self._get(name)
        with self._lock:
            tasks = [{"connector": name, "task": task.number} for task in connector.tasks]
            return {"name": name, "config": connector.shown(connector.config), "tasks": tasks, "type": connector.kind}

    def config(self, name):
        connector = self._get(name)
        return connector.shown(connector.config)

    def status(self, name):
        connector = self._get(name)
        with self._lock:
            tasks = [self._shown({"id": task.number}, task, connector) for task in connector.tasks]
            return {"name": name, "connector": self._shown({}, connector, connector), "tasks": tasks, "type": connector.kind}

    def task_status(self, name, number):
        connector = self._get(name)
        with self._lock:
            return self._shown({"id": number}, connector.task(number), connector)

    def tasks(self, name):
        connector = self._get(name)
        with self._lock:
            return [{"id": {"connector": name, "task": task.number}, "config": connector.shown(task.config)} for task in connector.tasks]

    def history(self, name):
        """States that it and its tasks had, and their failures, the newest first; also of a connector that was deleted."""
        found = self._state.history(name)
        if not found:
            self._get(name)
        return [
            {
                **{"time": iso(time_ms), "connector": name, "task": None if task == CONNECTOR else task},
                **{"state": state, "worker_id": worker_id, "trace": trace},
            }
            for task, state, trace, worker_id, time_ms in found
        ]

    def pipeline(self, name):
        """Of each task that runs: what its chain is compiled to, which engine did how many records, and why some went by rows."""
        connector = self._get(name)
        with self._lock:
            running = [(task.number, task.runner) for task in connector.tasks if task.runner is not None]
        return {"name": name, "type": connector.kind, "tasks": [{"id": number, **runner.pipeline.shown()} for number, runner in running]}

    def topics(self, name):
        """The topics that it has used, also of a connector that there is not: none."""
        return self._worker.topics.of(name)

    def reset_topics(self, name):
        self._worker.topics.reset(name)

    def offsets(self, name):
        plan = self._plan(self._get(name))
        return self._bounded(Lane(name, "offsets").post(lambda: self._worker.offsets_of(plan).get()), name, "tell its offsets")

    def plugins(self):
        return self._bounded(Lane("plugins").post(self._worker.config.plugins.list), "plugins", "load")

    def plugin_options(self, name):
        """What can be set of a plugin of any kind."""
        return self._bounded(Lane("plugins").post(lambda: options_of(name, self._worker.config.plugins)), name, "load")

    def examine(self, props):
        """[(Option, ConfigValue), …] of a configuration, with the values to choose from. References to values are shown, not the values."""

        def verdict():
            resolved = self._worker.config.providers.resolve(props)
            found = examine_all(resolved.texts, self._worker.config.plugins, self._worker.config)
            for _, value in found:
                value.value = resolved.references.get(value.name, value.value)
                value.errors = [mask(error) for error in value.errors]
            return found

        return self._bounded(Lane(props.get("name") or "", "validate").post(verdict), props.get("name") or "", "validate")

    def same_connector(self, name, other):
        """Whether both are names of one connector's class. Raises BadRequestError where there is none of that name."""
        find = self._worker.config.plugins.find

        def same():
            try:
                return find("connector", name) is find("connector", other)
            except (ConfigError, NotFoundError) as error:
                raise BadRequestError(str(error)) from error

        return self._bounded(Lane("plugins").post(same), name, "load")

    def worker_value(self, key):
        return self._worker.config[key]

    def census(self):
        """Every connector and its tasks, as they are now, to be counted."""
        with self._lock:
            return [Counted.of(connector) for connector in self._connectors.values()]

    def runners(self):
        """The runners of all tasks that have one."""
        with self._lock:
            return [task.runner for connector in self._connectors.values() for task in connector.tasks if task.runner is not None]

    def answers_within(self, seconds):
        """Whether anything can be asked at all."""
        free = self._lock.acquire(timeout=seconds)
        if free:
            self._lock.release()
        return free

    # ---------------------------------------------------------------- what both halves use
    def _shown(self, head, part, connector):
        shown = {**head, "state": part.state, "worker_id": self._worker.id, "version": connector.version}
        return {**shown, **part.attempts.shown(), **({"trace": part.trace} if part.trace else {})}

    def _get(self, name):
        with self._lock:
            connector = self._connectors.get(name)
        if connector is None:
            raise NotFoundError(f"There is no connector '{name}'.")
        return connector

    def _plan(self, connector):
        if connector.plan is None:
            raise ConflictError(f"The configuration of the connector '{connector.name}' is no good; its status says what is wrong.")
        return connector.plan

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
