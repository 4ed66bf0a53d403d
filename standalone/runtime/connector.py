"""The actor of one connector: its configuration, instance, tasks and states. Its mailbox runs one operation at a time.

    instance.py              the Connector object
    tasks/group.py           its tasks
    supervision/parts.py     states, and restarts after failures

The herder requests operations (`change`, `delete`, `post`) and reads attributes under its lock; the mailbox runs the operations. Requests
after a delete are ignored, and a configuration that was replaced while it was queued is not started. A call that hangs in the connector's
code is abandoned as soon as another operation is requested.
"""

import concurrent.futures
import logging
import threading

from standalone.errors import ConnectError, NotFoundError, trace_of
from standalone.runtime.calls import Abandoned, Mailbox, call_plugin
from standalone.runtime.configuration.plugin_options import HIDDEN, secret_keys
from standalone.runtime.instance import Instance
from standalone.runtime.supervision.parts import Supervisor
from standalone.runtime.supervision.state import well_formed
from standalone.runtime.tasks.group import TaskGroup
from standalone.runtime.tasks.lifecycle import FAILED, PAUSED, RUNNING, STOPPED
from standalone.secrets import mask

log = logging.getLogger(__name__)

STARTED = "STARTED"  # the third target state, besides PAUSED and STOPPED


class Connector:
    """`shared` is the herder's (herder.Shared). Attributes are read under its lock, and written by the mailbox or under the lock."""

    def __init__(self, name, shared):
        self.name = name
        self.changing = threading.Lock()  # held from the change of a configuration or target state until it is stored
        self.known = False  # it has a stored configuration and is not deleted
        self.ended = concurrent.futures.Future()  # deleted, and all of its threads have ended
        self.generation = 0  # of the configuration
        self.config = {}  # as submitted
        self.plan = None  # the parsed configuration; None while it is invalid
        self.secrets = frozenset()
        self.kind = "unknown"
        self.has_end = False  # a source whose tasks finish
        self.version = None
        self.target = STARTED
        self._shared = shared
        self._mailbox = Mailbox(name)
        self._instance = None
        self._reload = None
        self._supervisor = Supervisor(name, shared, lambda: self.target == STARTED, lambda part: self.post(lambda: self._try_again(part)))
        self._group = TaskGroup(name, shared, self._supervisor, self._new_runner, self._patience)

    # ---------------------------------------------------------------- read
    @property
    def is_ending(self):
        """Whether it is deleted but its name is not free yet."""
        return self._supervisor.over

    @property
    def part(self):
        """The part that holds the connector's own state."""
        return self._supervisor.own

    @property
    def tasks(self):
        return self._group.all

    def task(self, number):
        for task in self.tasks:
            if task.number == number:
                return task
        raise NotFoundError(f"The connector '{self.name}' has no task {number}; it has {len(self.tasks)}.")

    def shown(self, config):
        """The configuration as REST shows it: placeholders instead of provided values, and secrets masked."""
        plan = self.plan
        secrets = self.secrets if self._shared.worker.config.hides_secrets else ()

        def text(key, value):
            if plan is not None and key in plan.references and value == plan.originals[key]:
                value = plan.references[key]
            if self.config.get(key) != value:
                return HIDDEN if key in secrets and value else mask(value)
            lone = self._shared.worker.config.providers.is_reference(value)
            return HIDDEN if key in secrets and value and not lone else value

        return {well_formed(key): value and well_formed(value) for key, value in ((key, text(key, value)) for key, value in config.items())}

    def offset_reader(self):
        return self._shared.worker.source_offsets(self.plan).reader(self.name)

    # ---------------------------------------------------------------- requested, under the lock
    def post(self, call, urgent=False, generation=None):
        """Queue a call and return a Future of its result; the result is None if by then the connector is deleted or its configuration is no longer
        that of `generation`."""

        def in_turn():
            is_stale = self._supervisor.over or generation not in (None, self.generation)
            return None if is_stale else call()

        return self._mailbox.post(in_turn, urgent)

    def take(self, config, target, plan=None, version=None):
        """Accept a new, stored configuration; `plan` is None if it is invalid."""
        self.known = True
        self.generation += 1
        self.config, self.target = config, target
        if plan is not None:
            self._understand(plan, version)

    def restart_with(self, plan):
        """Restart with this configuration, unless a newer one has replaced it by then."""
        self.cancel_restarts()
        return self.post(lambda: self._restart_with(plan), urgent=True, generation=self.generation)

    def follow(self, target):
        self.target = target
        if target != STARTED:
            self.cancel_restarts()
        return self.post(self._follow_target, urgent=target == STOPPED)

    def restart(self, own, tasks):
        return self.post(lambda: self._restart(own, tasks), urgent=True)

    def delete(self):
        """Stop and remove it; later requests are ignored. `ended` is done once all of its threads have ended."""
        self.known = False
        self._supervisor.over = True
        self.cancel_restarts()
        return self._mailbox.post(self._end, urgent=True)

    def close(self):
        """Stop it because the worker stops."""
        self._group.ask_to_stop()
        return self._mailbox.post(self._stop, urgent=True)

    def cancel_restarts(self):
        """Cancel all scheduled restarts."""
        with self._shared.lock:
            for part in (self.part, *self.tasks):
                part.cancel_restart()
            if self._reload is not None:
                self._reload.cancel()
                self._reload = None

    def note(self, part, state, trace=None):
        self._supervisor.note(part, state, trace)

    def fail(self, error):
        log.error("The connector '%s' has failed: %s", self.name, trace_of(error))
        self.note(self.part, FAILED, trace_of(error))

    # ---------------------------------------------------------------- run by the mailbox
    def _restart_with(self, plan):
        self._stop()
        if self._shared.closing.is_set():
            return
        self.plan = plan
        if self.target == STOPPED:
            self.note(self.part, STOPPED)
        else:
            self._start(fresh=True)

    def _start(self, fresh=False):
        """Start the connector and, if its target state is STARTED, update its tasks. `fresh`: config provider values have just been resolved."""
        if self.target == PAUSED:
            self.note(self.part, PAUSED)
            return
        try:
            if not fresh:
                self._look_up_values()
            instance = Instance(self, self._patience)
            instance.start(self.plan)
            self._instance = instance
            self._shared.starts["connector"].count(True)
            self.note(self.part, RUNNING)
            self._bring_tasks_in_line()
        except Abandoned as error:
            log.warning("The connector '%s' had not finished starting when its target state changed; it is abandoned. %s", self.name, error)
        except Exception as error:
            if self._instance is None:
                self._shared.starts["connector"].count(False)
            self.fail(error)
        self._plan_reload()

    def _bring_tasks_in_line(self):
        plan = self.plan
        self._group.bring_in_line(self._instance.ask("task_configs()", lambda connector: self._shared.worker.task_configs(plan, connector)))

    def reconfigure_tasks(self):
        """Request new task configurations from the connector."""
        if self._instance is None or self.target != STARTED:
            return
        try:
            self._bring_tasks_in_line()
        except Abandoned as error:
            log.warning("The tasks of connector '%s' are not reconfigured: its target state has changed. %s", self.name, error)
        except Exception as error:
            self.fail(error)

    def _new_runner(self, task, listen):
        return self._shared.worker.new_runner(self.plan, task.number, task.config, listen, paused=self.target == PAUSED)

    def _restart(self, own, tasks):
        if own and self.target == STOPPED:
            self.note(self.part, STOPPED)
        elif own:
            self._stop_instance()
            self._start()
        for number in tasks:
            self._restart_task(number)

    def _restart_task(self, number):
        if self.target == STOPPED:
            return

        def renewed(config):
            before = self.plan
            self._look_up_values()
            return self.plan.renewed(config, before)

        self._group.restart(number, renewed)

    def _follow_target(self):
        target = self.target
        if target == STARTED:
            if self._instance is None or self.part.state == FAILED:
                self._start()
            else:
                self._group.resume()
                self.note(self.part, RUNNING)
            with self._shared.lock:
                for task in self.tasks:
                    if task.state == FAILED:
                        self._supervisor.plan_restart(task)
        elif target == PAUSED:
            self.note(self.part, PAUSED)
            self._stop_instance()
            self._group.pause()
        else:
            self._stop()
            self.note(self.part, STOPPED)

    def _stop(self):
        self.cancel_restarts()
        self._stop_instance()
        self._group.stop()

    def _stop_instance(self):
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.stop()

    def _end(self):
        try:
            self._stop()
        finally:
            try:
                self._shared.forget(self)
            finally:
                self.ended.set_result(None)

    def change_offsets(self, act):
        """Run `act`, which may call the connector's own code, on the connector's offsets."""
        offsets = self._shared.worker.offsets_of(self.plan)
        return call_plugin(lambda: act(offsets), connector=self.name, method="alter_offsets()", wait=self._patience())

    def _patience(self, at_once=False):
        return self._mailbox.patience(self._shared.worker.graceful_seconds, at_once)

    # ---------------------------------------------------------------- scheduled: expired values, restarts after failures
    def _understand(self, plan, version):
        self.kind, self.version, self.secrets, self.has_end = plan.kind, version, secret_keys(plan), plan.has_end
        self.plan = self.plan or plan  # REST may read its offsets before it has started
        self._supervisor.follow(plan)

    def _look_up_values(self):
        """Parse the configuration again if it holds provided values or has not been parsed yet."""
        if self.plan is not None and not self.plan.references:
            return
        config = self.config
        plan, version = call_plugin(
            lambda: plan_of(self._shared.worker, config), connector=self.name, method="The validation", wait=self._patience()
        )
        with self._shared.lock:
            self.plan = plan
            if self.kind == "unknown":
                self._understand(plan, version)

    def _plan_reload(self):
        plan = self.plan
        with self._shared.lock:
            if self._reload is not None:
                self._reload.cancel()
                self._reload = None
            if plan is None or plan.ttl_ms is None or plan["config.action.reload"].lower() != "restart":
                return
            self._reload = self._shared.timers.after(plan.ttl_ms / 1000, lambda: self.post(self._reload_values))

    def _reload_values(self):
        if self._reload is None or self.target != STARTED or self._shared.closing.is_set():
            return
        before = self.plan
        try:
            self._look_up_values()
        except Abandoned:
            return
        except ConnectError as error:
            text = "Values of the connector '%s' have expired and cannot be resolved again; the old values stay in use: %s"
            log.error(text, self.name, error)
        if self.plan.originals == before.originals:
            self._plan_reload()
            return
        log.info("Values of the connector '%s' have expired and changed; restarting it (config.action.reload)", self.name)
        self._stop_instance()
        self._start(fresh=True)

    def _try_again(self, part):
        if not self._supervisor.take_retry(part):
            return
        if part is self.part:
            self._stop_instance()
            self._start()
        elif part in self.tasks:
            self._restart_task(part.number)


def plan_of(worker, config):
    """(the parsed configuration, the version of its connector). Calls the connector's own code."""
    plan = worker.plan(config)
    return plan, worker.version(plan)
