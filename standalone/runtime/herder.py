"""The one that decides: which connectors there are, in which state, with which tasks.

Quick things (looking up, noting a status) happen under a lock. Whatever calls into a connector's code runs in that connector's lane,
so a method that hangs blocks its own connector alone; callers wait for it for a bounded time.
"""

import concurrent.futures
import logging
import threading

from standalone.connector import ConnectorContext
from standalone.errors import AlreadyExistsError, BadRequestError, ConfigError, ConflictError, ConnectError, NotFoundError
from standalone.runtime.lanes import Lane
from standalone.runtime.lifecycle import FAILED, PAUSED, RESTARTING, RUNNING, STOPPED, UNASSIGNED, trace_of
from standalone.runtime.plugin_options import HIDDEN, examine_all, options_of, secret_keys
from standalone.runtime.state import CONNECTOR

log = logging.getLogger(__name__)

STARTED = "STARTED"  # the third target state, beside PAUSED and STOPPED
TARGET_STATES = (STARTED, PAUSED, STOPPED)
_CALL_SECONDS = 90.0  # how long a caller waits for a connector's own code; as Connect's REST requests


class Herder:
    def __init__(self, worker, state, clock):
        self._worker = worker
        self._state = state
        self._clock = clock
        self._lock = threading.RLock()
        self._connectors = {}
        self._closing = False

    # ---------------------------------------------------------------- asking
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
            own = self._shown({}, connector.state, connector.trace, connector.version)
            tasks = [self._shown({"id": task.number}, task.state, task.trace, connector.version) for task in connector.tasks]
            return {"name": name, "connector": own, "tasks": tasks, "type": connector.kind}

    def task_status(self, name, number):
        connector = self._get(name)
        with self._lock:
            task = connector.task(number)
            return self._shown({"id": number}, task.state, task.trace, connector.version)

    def tasks(self, name):
        connector = self._get(name)
        with self._lock:
            return [{"id": {"connector": name, "task": task.number}, "config": connector.shown(task.config)} for task in connector.tasks]

    def topics(self, name):
        """The topics that it has used, also of a connector that there is not: none."""
        return self._worker.topics.of(name)

    def reset_topics(self, name):
        self._worker.topics.reset(name)

    def offsets(self, name):
        plan = self._get(name).plan
        return self._bounded(Lane(f"{name}|offsets").post(lambda: self._worker.offsets_of(plan).get()), name, "tell its offsets")

    def plugins(self):
        return self._bounded(Lane("plugins").post(self._worker.config.plugins.list), "plugins", "load")

    def plugin_options(self, name):
        """What can be set of a plugin of any kind."""
        return self._bounded(Lane("plugins").post(lambda: options_of(name, self._worker.config.plugins)), name, "load")

    def examine(self, props):
        """[(Option, ConfigValue), …] of a configuration, with the values to choose from."""

        def verdict():
            return examine_all(props, self._worker.config.plugins, self._worker.config)

        return self._bounded(Lane("validate").post(verdict), props.get("name") or "", "validate")

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

    def healthy(self):
        """Whether no connector and no task has failed."""
        with self._lock:
            return all(FAILED not in [c.state] + [task.state for task in c.tasks] for c in self._connectors.values())

    def runners(self):
        """The runners of all tasks that have one."""
        with self._lock:
            return [task.runner for connector in self._connectors.values() for task in connector.tasks if task.runner is not None]

    def _shown(self, head, state, trace, version):
        return {**head, "state": state, "worker_id": self._worker.id, "version": version, **({"trace": trace} if trace else {})}

    # ---------------------------------------------------------------- deciding
    def restore(self, from_files):
        """Start the connectors that were made by REST; `from_files` are names that the command line brings anew."""
        for name, config, target, from_file in self._state.connectors():
            if from_file or name in from_files:
                continue
            try:
                self.create(name, config, target, wait=False)
            except ConnectError as error:
                log.error("The connector '%s', stored earlier, cannot be started: %s", name, error)

    def create(self, name, config, target=None, replace=False, from_file=False, wait=True):
        """Make a connector, or give one another configuration; returns (info, whether it is new). Raises ConfigError, AlreadyExistsError."""
        config = self._with_secrets(name, {"name": name, **config})
        plan = self._bounded(Lane(f"{name}|validate").post(lambda: self._worker.plan({**config, "name": name})), name, "validate")
        with self._lock:
            connector = self._connectors.get(name)
            if connector is not None and not replace:
                raise AlreadyExistsError(f"There is a connector '{name}' already. Change it with PUT /connectors/{name}/config.")
            new = connector is None
            if new:
                connector = self._connectors[name] = _Connector(name)
                connector.target = target or self._stored_target(name, config, from_file) or STARTED
            connector.config, connector.kind, connector.version = config, plan.kind, self._worker.version(plan)
            connector.secrets = secret_keys(plan)
            connector.plan = connector.plan or plan  # its offsets can be asked for before it has started
            self._state.put_connector(name, config, connector.target, from_file)
        started = connector.lane.post(lambda: self._restart(connector, plan))
        if wait:
            self._bounded(started, name, "start")
        return self.info(name), new

    def _stored_target(self, name, config, from_file):
        """A file's connector stays paused or stopped over a restart."""
        for stored, old_config, target, _ in self._state.connectors() if from_file else ():
            if stored == name:
                if old_config != config:
                    log.info("The connector '%s' has another configuration in its file than it had before: the file's is taken", name)
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

    def change_offsets(self, name, entries):
        """Set [(partition, offset or None)] of a stopped connector; whether it said that it needs nothing more."""
        return self._with_offsets(name, lambda offsets: offsets.change(entries))

    def reset_offsets(self, name):
        return self._with_offsets(name, lambda offsets: offsets.reset())

    def _with_offsets(self, name, act):
        connector = self._get(name)

        def in_lane():
            if connector.target != STOPPED or connector.state != STOPPED:
                raise BadRequestError(f"The connector '{name}' is not STOPPED: its offsets can be changed only then. PUT /connectors/{name}/stop first.")
            return act(self._worker.offsets_of(connector.plan))

        if connector.target != STOPPED:
            in_lane()
        return self._bounded(connector.lane.post(in_lane), name, "change its offsets")

    def delete(self, name):
        with self._lock:
            connector = self._get(name)
            del self._connectors[name]
            self._state.delete_connector(name)
        self._bounded(connector.lane.post(lambda: self._stop(connector)), name, "stop")
        self._worker.topics.reset(name)

    def pause(self, name):
        self._change_target(name, PAUSED)

    def resume(self, name):
        self._change_target(name, STARTED)

    def stop(self, name):
        self._change_target(name, STOPPED)

    def _change_target(self, name, target):
        with self._lock:
            connector = self._get(name)
            connector.target = target
            self._state.put_target_state(name, target)
        connector.lane.post(lambda: self._follow_target(connector))

    def restart(self, name, include_tasks=False, only_failed=False):
        """Restart the connector and, if asked, its tasks; the status as it is when all is on its way."""
        connector = self._get(name)
        with self._lock:
            own = not only_failed or connector.state == FAILED
            tasks = [task.number for task in connector.tasks if include_tasks and (not only_failed or task.state == FAILED)]
            if own:
                self._note(connector, RESTARTING)
            for number in tasks:
                self._note_task(connector, connector.task(number), RESTARTING)
            shown = self.status(name)
        done = connector.lane.post(lambda: self._restart_parts(connector, own, tasks))
        if not include_tasks and not only_failed:
            self._bounded(done, name, "restart")
        return shown

    def restart_task(self, name, number):
        connector = self._get(name)
        with self._lock:
            connector.task(number)
        self._bounded(connector.lane.post(lambda: self._restart_task(connector, number)), name, "restart")

    def close(self, seconds):
        """Stop all connectors at once; whether all ended within that time."""
        with self._lock:
            self._closing = True
            connectors = list(self._connectors.values())
        for connector in connectors:
            for task in connector.tasks:
                if task.runner is not None:
                    Lane(connector.name).post(task.runner.stop)
        done = [connector.lane.post(lambda connector=connector: self._stop(connector)) for connector in connectors]
        _, left = concurrent.futures.wait(done, timeout=seconds + 1)
        return not left

    # ---------------------------------------------------------------- in a connector's lane
    def _restart(self, connector, plan):
        self._stop(connector)
        if self._closing:
            return
        connector.plan = plan
        self._start(connector)

    def _restart_parts(self, connector, own, tasks):
        if own and connector.target == STOPPED:
            self._note(connector, STOPPED)
        elif own:
            self._stop_instance(connector)
            self._start_connector(connector)
        for number in tasks:
            self._restart_task(connector, number)

    def _start(self, connector):
        if connector.target == STOPPED:
            self._note(connector, STOPPED)
            return
        self._start_connector(connector)

    def _start_connector(self, connector):
        """Start the connector itself and, where it is to run, bring its tasks in line."""
        if connector.target == PAUSED:
            self._note(connector, PAUSED)
            return
        try:
            connector.instance = connector.plan.connector_class()
            connector.instance.initialize(_Context(self, connector))
            connector.instance.start(dict(connector.plan.originals))
            self._note(connector, RUNNING)
            self._bring_tasks_in_line(connector)
        except Exception as error:
            log.error("The connector '%s' has failed: %s", connector.name, trace_of(error))
            self._note(connector, FAILED, trace_of(error))

    def _bring_tasks_in_line(self, connector):
        """Ask for task configurations; start, stop and restart exactly those tasks that changed."""
        configs = self._worker.task_configs(connector.plan, connector.instance)
        with self._lock:
            known = [task.config for task in connector.tasks]
        if known == configs and all(task.runner is not None for task in connector.tasks):
            for task in connector.tasks:
                task.runner.resume()
            return
        gone = connector.tasks[len(configs) :] + [task for task, config in zip(connector.tasks, configs) if task.config != config]
        self._stop_tasks(gone)
        with self._lock:
            kept = {task.number: task for task in connector.tasks if task not in gone}
            connector.tasks = [kept.get(number) or _Task(number, config) for number, config in enumerate(configs)]
        for task in connector.tasks:
            if task.runner is None:
                self._start_task(connector, task)

    def _start_task(self, connector, task):
        if self._closing:
            return

        def listen(state, trace):
            self._note_task(connector, task, state, trace)

        try:
            task.runner = self._worker.new_runner(connector.plan, task.number, task.config, listen, paused=connector.target == PAUSED)
        except Exception as error:
            log.error("Task %d of connector '%s' cannot be started: %s", task.number, connector.name, trace_of(error))
            self._note_task(connector, task, FAILED, trace_of(error))
            return
        task.runner.start()

    def _restart_task(self, connector, number):
        task = next((task for task in connector.tasks if task.number == number), None)
        if task is None or connector.target == STOPPED:
            return
        self._stop_tasks([task])
        task.runner = None
        self._start_task(connector, task)

    def _follow_target(self, connector):
        target = connector.target
        if target == STARTED:
            if connector.instance is None or connector.state == FAILED:
                self._start_connector(connector)
            else:
                for task in connector.tasks:
                    if task.runner is not None:
                        task.runner.resume()
                self._note(connector, RUNNING)
        elif target == PAUSED:
            self._note(connector, PAUSED)
            self._stop_instance(connector)
            for task in connector.tasks:
                if task.runner is not None:
                    task.runner.pause()
        else:
            self._stop(connector)
            self._note(connector, STOPPED)

    def _stop(self, connector):
        self._stop_instance(connector)
        self._stop_tasks(connector.tasks)
        with self._lock:
            connector.tasks = []

    def _stop_instance(self, connector):
        instance, connector.instance = connector.instance, None
        if instance is not None:
            try:
                instance.stop()
            except Exception as error:
                log.warning("The connector '%s' failed while it was being stopped: %s", connector.name, trace_of(error))

    def _stop_tasks(self, tasks):
        """Ask all, then wait for all, within the graceful time; what hangs is abandoned."""
        runners = [task.runner for task in tasks if task.runner is not None]
        asked = [Lane(runner.connector).post(runner.stop) for runner in runners]
        deadline = self._clock.monotonic() + self._worker.graceful_seconds
        concurrent.futures.wait(asked, timeout=self._worker.graceful_seconds)
        for runner in runners:
            if not runner.join(deadline - self._clock.monotonic()):
                log.error(
                    "Task %d of connector '%s' did not stop within %.1f s (task.shutdown.graceful.timeout.ms) and is abandoned",
                    runner.number,
                    runner.connector,
                    self._worker.graceful_seconds,
                )
                runner.cancel()

    # ---------------------------------------------------------------- notes
    def _note(self, connector, state, trace=None):
        with self._lock:
            connector.state, connector.trace = state, trace
        self._state.put_status(connector.name, CONNECTOR, state, trace, self._worker.id)

    def _note_task(self, connector, task, state, trace=None):
        with self._lock:
            if task not in connector.tasks:
                return  # a runner that was abandoned or replaced
            task.state, task.trace = state, trace
        self._state.put_status(connector.name, task.number, state, trace, self._worker.id)

    def _get(self, name):
        with self._lock:
            connector = self._connectors.get(name)
        if connector is None:
            raise NotFoundError(f"There is no connector '{name}'.")
        return connector

    def _bounded(self, future, name, doing):
        try:
            return future.result(_CALL_SECONDS)
        except concurrent.futures.TimeoutError:
            raise ConflictError(f"The connector '{name}' did not {doing} within {_CALL_SECONDS:.0f} s: its own code hangs.") from None


class _Connector:
    def __init__(self, name):
        self.name = name
        self.lane = Lane(name)
        self.config = {}
        self.kind = "unknown"
        self.version = None
        self.plan = None
        self.instance = None
        self.target = STARTED
        self.state, self.trace = UNASSIGNED, None
        self.tasks = []
        self.secrets = frozenset()

    def shown(self, config):
        """A configuration as answers show it."""
        return {key: HIDDEN if key in self.secrets and value else value for key, value in config.items()}

    def task(self, number):
        for task in self.tasks:
            if task.number == number:
                return task
        raise NotFoundError(f"The connector '{self.name}' has no task {number}; it has {len(self.tasks)}.")


class _Task:
    def __init__(self, number, config):
        self.number = number
        self.config = config
        self.runner = None
        self.state, self.trace = UNASSIGNED, None


class _Context(ConnectorContext):
    def __init__(self, herder, connector):
        self._herder = herder
        self._connector = connector
        self.name = connector.name

    def request_task_reconfiguration(self):
        connector = self._connector

        def reconfigure():
            if connector.instance is not None and connector.target == STARTED:
                self._herder._bring_tasks_in_line(connector)

        connector.lane.post(reconfigure).add_done_callback(self._failed)

    def raise_error(self, error):
        log.error("The connector '%s' has failed: %s", self.name, trace_of(error))
        self._herder._note(self._connector, FAILED, trace_of(error))

    def offset_reader(self):
        return self._herder._worker.offsets.reader(self.name)

    def _failed(self, future):
        if future.exception() is not None:
            self.raise_error(future.exception())


def check_target(text):
    """A target state out of an `initial_state` (RUNNING, PAUSED, STOPPED)."""
    state = {"RUNNING": STARTED, **{name: name for name in TARGET_STATES}}.get(str(text).upper())
    if state is None:
        raise BadRequestError(f"'{text}' is no initial_state. There are RUNNING, PAUSED and STOPPED.")
    return state
