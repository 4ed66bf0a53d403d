"""Read-only queries of connectors and plugins. Answers come from memory, or from plugin code called with a timeout."""

from typing import Any, NamedTuple

from standalone.errors import BadRequestError, ConfigError, ConflictError, NotFoundError
from standalone.runtime.calls import call_plugin
from standalone.runtime.configuration.plugin_options import examine_all, options_of
from standalone.runtime.supervision.restarts import iso
from standalone.runtime.supervision.state import CONNECTOR
from standalone.runtime.tasks.lifecycle import STOPPED
from standalone.secrets import mask


class CountedTask(NamedTuple):
    number: int
    state: str
    runner: Any


class Counted(NamedTuple):
    """A connector's numbers for metrics."""

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
        return cls(connector.name, connector.kind, java_class, connector.version, connector.part.state, tasks)


class Queries:
    """`connectors` maps names to Connectors; read under `lock`, which is never held while waiting."""

    def __init__(self, worker, state, lock, connectors):
        self._worker = worker
        self._state = state
        self._lock = lock
        self._connectors = connectors

    def names(self):
        with self._lock:
            return [connector.name for connector in self._known()]

    def info(self, name):
        return self.info_of(self.get(name))

    def info_of(self, connector):
        """As REST shows it: name, config, tasks, type."""
        with self._lock:
            tasks = [{"connector": connector.name, "task": task.number} for task in connector.tasks]
            return {"name": connector.name, "config": connector.shown(connector.config), "tasks": tasks, "type": connector.kind}

    def config(self, name):
        connector = self.get(name)
        with self._lock:
            return connector.shown(connector.config)

    def status(self, name):
        return self.status_of(self.get(name))

    def status_of(self, connector):
        with self._lock:
            tasks = [self._shown({"id": task.number}, task, connector) for task in connector.tasks]
            shown = {"name": connector.name, "connector": self._shown({}, connector.part, connector), "tasks": tasks, "type": connector.kind}
            if connector.kind == "source" and self._worker.config.exactly_once:  # Java's status does not show this
                shown["delivery"] = "exactly once, for readers with isolation.level=read_committed"
            return shown

    def task_status(self, name, number):
        connector = self.get(name)
        with self._lock:
            return self._shown({"id": number}, connector.task(number), connector)

    def tasks(self, name):
        connector = self.get(name)
        with self._lock:
            return [{"id": {"connector": name, "task": task.number}, "config": connector.shown(task.config)} for task in connector.tasks]

    def history(self, name):
        """States and failures of it and its tasks, newest first; also of a deleted connector."""
        found = self._state.history(name)
        if not found:
            self.get(name)
        return [
            {
                **{"time": iso(time_ms), "connector": name, "task": None if task == CONNECTOR else task},
                **{"state": state, "worker_id": worker_id, "trace": trace},
            }
            for task, state, trace, worker_id, time_ms in found
        ]

    def pipeline(self, name):
        """For each running task: the plan of its chain, how many records each engine processed, and why some ran row by row."""
        connector = self.get(name)
        with self._lock:
            running = [(task.number, task.runner) for task in connector.tasks if task.runner is not None]
        tasks = [{"id": number, **_masked(runner.pipeline.shown()), "counted": _counted(runner)} for number, runner in running]
        return {"name": name, "type": connector.kind, "tasks": tasks}

    def topics(self, name):
        """The topics that it has used; empty for an unknown connector."""
        return self._worker.topics.of(name)

    def reset_topics(self, name):
        self._worker.topics.reset(name)

    def offsets(self, name):
        plan = self.plan_of(self.get(name))
        return call_plugin(lambda: self._worker.offsets_of(plan).get(), connector=name, method="Reading the offsets")

    def plugins(self):
        return call_plugin(self._worker.config.plugins.list, connector=None, method="Loading plugins")

    def plugin_options(self, name):
        """The options of a plugin of any kind."""
        return call_plugin(lambda: options_of(name, self._worker.config.plugins), connector=None, method="Loading")

    def examine(self, props):
        """[(Option, ConfigValue), …] of a configuration, with recommended values. Shows references to config providers, not their values."""

        def verdict():
            resolved = self._worker.config.providers.resolve(props)
            found = examine_all(resolved.texts, self._worker.config.plugins, self._worker.config)
            for _, value in found:
                value.value = resolved.references.get(value.name, value.value)
                value.errors = [mask(error) for error in value.errors]
            return found

        return call_plugin(verdict, connector=props.get("name"), method="The validation")

    def same_connector(self, name, other):
        """Whether both names belong to the same connector class. Raises BadRequestError if there is no class of that name."""
        find = self._worker.config.plugins.find

        def same():
            try:
                found = find("connector", other)
                return name == other or find("connector", name, known_only=True) is found
            except (ConfigError, NotFoundError) as error:
                raise BadRequestError(str(error)) from error

        return call_plugin(same, connector=None, method="Loading")

    def worker_value(self, key):
        return self._worker.config[key]

    def count_connectors(self):
        """Counts of every connector and its tasks as they are now."""
        with self._lock:
            return [Counted.of(connector) for connector in self._known()]

    def runners(self):
        """The runners of all tasks that have one."""
        with self._lock:
            return [task.runner for connector in self._known() for task in connector.tasks if task.runner is not None]

    def have_ended(self):
        """Whether there are finite sources, and all of them have finished. A stopped one does not count."""
        with self._lock:
            ending = [connector for connector in self._known() if connector.has_end and connector.target != STOPPED]
            return bool(ending) and all(map(_has_ended, ending))

    def answers_within(self, seconds):
        """Whether the herder's lock can be acquired within that time."""
        free = self._lock.acquire(timeout=seconds)
        if free:
            self._lock.release()
        return free

    # ---------------------------------------------------------------- look-ups
    def get(self, name):
        with self._lock:
            connector = self._connectors.get(name)
            if connector is None or not connector.known:
                raise NotFoundError(f"There is no connector '{name}'.")
            return connector

    def plan_of(self, connector):
        if connector.plan is None:
            raise ConflictError(f"The configuration of the connector '{connector.name}' is invalid; see its status for the reason.")
        return connector.plan

    def _known(self):
        return [connector for connector in self._connectors.values() if connector.known]

    def _shown(self, head, part, connector):
        shown = {**head, "state": part.state, "worker_id": part.worker_id or self._worker.id, "version": connector.version}
        return {**shown, **part.attempts.shown(), **({"trace": part.trace} if part.trace else {})}


def _counted(runner):
    """What a sink's task has counted itself: its own metrics."""
    counts = runner.metrics().get("task", {})
    shown = [(name if isinstance(name, str) else f"{name[0]}, {name[1]} {name[2]}", count) for name, count in counts.items()]
    return [{"what": mask(what.replace("_", " ").replace("-total", "").replace("-", " ")), "count": count} for what, count in shown]


def _masked(said):
    """The same with secrets masked: a transform's literal may be one."""
    if isinstance(said, str):
        return mask(said)
    if isinstance(said, list):
        return [_masked(each) for each in said]
    return {name: _masked(each) for name, each in said.items()} if isinstance(said, dict) else said


def _has_ended(connector):
    return bool(connector.tasks) and all(task.runner is not None and task.runner.has_ended for task in connector.tasks)
