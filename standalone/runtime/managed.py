"""One connector as the herder keeps it: its configuration, states and tasks, and what is done with it.

All that calls the connector's own code is done in its lane, and there apart from it (lanes.py): what hangs is abandoned as soon as an
operator wants something else of the connector. States are noted under the herder's lock.
"""

import concurrent.futures
import logging

from standalone.errors import ConnectError, NotFoundError
from standalone.runtime.configuration.plugin_options import HIDDEN, secret_keys
from standalone.runtime.instance import Instance
from standalone.runtime.lanes import Abandoned, Lane
from standalone.runtime.supervision.restarts import Attempts, Policy
from standalone.runtime.supervision.state import CONNECTOR
from standalone.runtime.tasks.lifecycle import FAILED, PAUSED, RUNNING, STOPPED, UNASSIGNED, trace_of
from standalone.secrets import mask

log = logging.getLogger(__name__)

STARTED = "STARTED"  # the third target state, beside PAUSED and STOPPED


class Part:
    """What has a state: a connector, or one of its tasks."""

    def __init__(self, attempts):
        self.state, self.trace = UNASSIGNED, None
        self.attempts = attempts
        self.next_try = None  # the Timer of the next attempt to start it again

    def cancel_restart(self):
        if self.next_try is not None:
            self.next_try.cancel()
            self.next_try = None
            self.attempts.put_off()


class Task(Part):
    def __init__(self, number, config, attempts):
        super().__init__(attempts)
        self.number = number
        self.config = config  # with the values that providers gave
        self.runner = None


class Managed(Part):
    """`shared` is the herder's: worker, state, lock, clock, timers, closing, failed_for_good(what, trace)."""

    def __init__(self, name, shared):
        super().__init__(Attempts(Policy.of(shared.worker.config), shared.clock))
        self.name = name
        self.lane = Lane(name)
        self.config = {}  # as it was given
        self.plan = None  # what it means; None as long as it means nothing
        self.secrets = frozenset()
        self.kind = "unknown"
        self.version = None
        self.target = STARTED
        self.tasks = []
        self._instance = None
        self._gone = False
        self._reload = None
        self._shared = shared

    # ---------------------------------------------------------------- told by the herder
    def take(self, config, target, plan=None, version=None):
        """Another configuration; no `plan` if it is no good."""
        self.config, self.target = config, target
        if plan is not None:
            self.kind, self.version, self.secrets = plan.kind, version, secret_keys(plan)
            self.plan = self.plan or plan  # its offsets can be asked for before it has started
            self.attempts = Attempts(Policy.of(self._shared.worker.config, plan), self._shared.clock)

    def task(self, number):
        for task in self.tasks:
            if task.number == number:
                return task
        raise NotFoundError(f"The connector '{self.name}' has no task {number}; it has {len(self.tasks)}.")

    def shown(self, config):
        """A configuration as answers show it: references to values in place of values, nothing secret."""
        plan = self.plan

        def text(key, value):
            if plan is not None and key in plan.references and value == plan.originals[key]:
                value = plan.references[key]
            if self.config.get(key) != value:
                return HIDDEN if key in self.secrets and value else mask(value)
            lone = self._shared.worker.config.providers.is_reference(value)
            return HIDDEN if key in self.secrets and value and not lone else value

        return {key: text(key, value) for key, value in config.items()}

    def forget(self):
        """It is deleted: nothing is noted of it any more."""
        self._gone = True
        self.cancel_restarts()

    def cancel_restarts(self):
        """Nothing is started by itself."""
        with self._shared.lock:
            for part in (self, *self.tasks):
                part.cancel_restart()
            if self._reload is not None:
                self._reload.cancel()
                self._reload = None

    # ---------------------------------------------------------------- in its lane
    def start_anew(self, plan):
        """With that configuration, whatever ran before."""
        self.stop()
        if self._shared.closing.is_set() or self._gone:
            return
        self.plan = plan
        if self.target == STOPPED:
            self.note(STOPPED)
        else:
            self.start_connector(fresh=True)

    def start_connector(self, fresh=False):
        """Start the connector itself and, where it is to run, bring its tasks in line. `fresh`: its values have just been looked up."""
        if self.target == PAUSED:
            self.note(PAUSED)
            return
        try:
            if not fresh:
                self._look_up_values()
            self._start_instance()
            self._shared.starts["connector"].count(True)
            self.note(RUNNING)
            self.bring_tasks_in_line()
        except Abandoned:
            log.warning("The connector '%s' had not started when something else was wanted of it, and is abandoned", self.name)
        except Exception as error:
            if self._instance is None:
                self._shared.starts["connector"].count(False)
            self.fail(error)
        self._plan_reload()

    def _start_instance(self):
        instance = Instance(self, self._apart)
        instance.start(self.plan)
        self._instance = instance

    def restart_parts(self, own, tasks):
        if own and self.target == STOPPED:
            self.note(STOPPED)
        elif own:
            self._stop_instance()
            self.start_connector()
        for number in tasks:
            self.restart_task(number)

    def bring_tasks_in_line(self):
        """Ask for task configurations; start, stop and restart exactly those tasks that changed."""
        configs = self._instance.ask(lambda connector: self._shared.worker.task_configs(self.plan, connector))
        with self._shared.lock:
            known = [task.config for task in self.tasks]
        if known == configs and all(task.runner is not None for task in self.tasks):
            for task in self.tasks:
                task.runner.resume()
            return
        gone = self.tasks[len(configs) :] + [task for task, config in zip(self.tasks, configs) if task.config != config]
        self._stop_tasks(gone)
        with self._shared.lock:
            kept = {task.number: task for task in self.tasks if task not in gone}
            self.tasks = [kept.get(number) or self._new_task(number, config) for number, config in enumerate(configs)]
        for task in self.tasks:
            if task.runner is None:
                self._start_task(task)

    def reconfigure_tasks(self):
        """The connector itself wants it."""
        if self._instance is not None and self.target == STARTED:
            self.bring_tasks_in_line()

    def offset_reader(self):
        return self._shared.worker.offsets.reader(self.name)

    def _new_task(self, number, config):
        return Task(number, config, Attempts(self.attempts.policy, self._shared.clock))

    def _start_task(self, task):
        if self._shared.closing.is_set():
            return

        count_start = iter([self._shared.starts["task"].count])  # once

        def listen(state, trace):
            for count in count_start:
                count(state != FAILED)
            self._note_task(task, state, trace)

        plan, paused = self.plan, self.target == PAUSED
        try:
            task.runner = self._apart(lambda: self._shared.worker.new_runner(plan, task.number, task.config, listen, paused=paused))
        except Abandoned:
            log.warning("Task %d of connector '%s' was not yet made when something else was wanted, and is abandoned", task.number, self.name)
        except Exception as error:
            self._shared.starts["task"].count(False)
            log.error("Task %d of connector '%s' cannot be started: %s", task.number, self.name, trace_of(error))
            self._note_task(task, FAILED, trace_of(error))
        else:
            task.runner.start()

    def restart_task(self, number):
        task = next((task for task in self.tasks if task.number == number), None)
        if task is None or self.target == STOPPED:
            return
        task.cancel_restart()
        self._stop_tasks([task])
        task.runner = None
        try:
            before = self.plan
            self._look_up_values()
            task.config = self.plan.renewed(task.config, before)
        except ConnectError as error:
            self._note_task(task, FAILED, trace_of(error))
            return
        self._start_task(task)

    def follow_target(self):
        target = self.target
        if target == STARTED:
            if self._instance is None or self.state == FAILED:
                self.start_connector()
            else:
                for task in self.tasks:
                    if task.runner is not None:
                        task.runner.resume()
                self.note(RUNNING)
            for task in self.tasks:
                if task.state == FAILED:
                    self._plan_restart(task, task.trace)
        elif target == PAUSED:
            self.note(PAUSED)
            self._stop_instance()
            for task in self.tasks:
                if task.runner is not None:
                    task.runner.pause()
        else:
            self.stop()
            self.note(STOPPED)

    def stop(self):
        self.cancel_restarts()
        self._stop_instance()
        self._stop_tasks(self.tasks)
        with self._shared.lock:
            self.tasks = []

    def _stop_instance(self):
        instance, self._instance = self._instance, None
        if instance is None:
            return
        try:
            instance.stop()
        except Abandoned:
            log.error("The connector '%s' did not stop within %.1f s and is abandoned", self.name, self._patience)
        except Exception as error:
            log.warning("The connector '%s' failed while it was being stopped: %s", self.name, trace_of(error))

    def _stop_tasks(self, tasks):
        """Ask all, then wait for all, within the graceful time; what hangs is abandoned."""
        runners = [task.runner for task in tasks if task.runner is not None]
        asked = [Lane(runner.connector).post(runner.stop) for runner in runners]
        deadline = self._shared.clock.monotonic() + self._patience
        concurrent.futures.wait(asked, timeout=self._patience)
        for runner in runners:
            if not runner.join(deadline - self._shared.clock.monotonic()):
                log.error(
                    "Task %d of connector '%s' did not stop within %.1f s (task.shutdown.graceful.timeout.ms) and is abandoned",
                    runner.number,
                    runner.connector,
                    self._patience,
                )
                runner.cancel()

    def change_offsets(self, act):
        """`act` on the offsets of the connector, which asks the connector's own code."""
        offsets = self._shared.worker.offsets_of(self.plan)
        return self._apart(lambda: act(offsets))

    @property
    def _patience(self):
        return self._shared.worker.graceful_seconds

    def _apart(self, call, at_once=False):
        """`call` on a thread of its own."""
        return self.lane.apart(call, self._patience, at_once)

    # ---------------------------------------------------------------- by itself: values that expire, failures
    def _look_up_values(self):
        """The plan anew, where it holds values that a provider gave, or where there is none yet."""
        if self.plan is None or self.plan.references:
            self.plan, version = self._apart(lambda: plan_of(self._shared.worker, self.config))
            if self.kind == "unknown":
                with self._shared.lock:
                    self.take(self.config, self.target, self.plan, version)

    def _plan_reload(self):
        plan = self.plan
        if self._reload is not None:
            self._reload.cancel()
            self._reload = None
        if plan is None or plan.ttl_ms is None or plan["config.action.reload"].lower() != "restart":
            return
        self._reload = self._shared.timers.after(plan.ttl_ms / 1000, lambda: self.lane.post(self._reload_values))

    def _reload_values(self):
        if self._reload is None or self.target != STARTED or self._shared.closing.is_set():
            return
        before = self.plan
        try:
            self._look_up_values()
        except Abandoned:
            return
        except ConnectError as error:
            log.error("Values of the connector '%s' have expired and cannot be looked up; it goes on with those it has: %s", self.name, error)
        if self.plan.originals == before.originals:
            self._plan_reload()
            return
        log.info("Values of the connector '%s' have expired and changed: it is restarted (config.action.reload)", self.name)
        self._stop_instance()
        self.start_connector(fresh=True)

    def _plan_restart(self, part, trace):
        """After a failure: start it again later, if the configuration says so. Under the lock or in the lane."""
        if self._shared.closing.is_set() or self._gone or part.next_try is not None:
            return
        what = f"The connector '{self.name}'" if part is self else f"Task {part.number} of connector '{self.name}'"
        if self.target != STARTED and part.attempts.policy.enabled:
            return  # when it is resumed
        seconds = part.attempts.failed()
        if seconds is None:
            if part.attempts.policy.enabled:
                log.error("%s has failed for good, after %d restarts (task.restart.max.attempts)", what, part.attempts.count)
            self._shared.failed_for_good(what, trace)
            return
        log.warning("%s has failed and is started again in %.1f s", what, seconds)
        part.next_try = self._shared.timers.after(seconds, lambda: self.lane.post(lambda: self._try_again(part)))

    def _try_again(self, part):
        with self._shared.lock:
            wanted, part.next_try = part.next_try is not None, None
        if not wanted or part.state != FAILED or self.target != STARTED or self._shared.closing.is_set():
            return
        part.attempts.made()
        if part is self:
            self._stop_instance()
            self.start_connector()
        elif part in self.tasks:
            self.restart_task(part.number)

    # ---------------------------------------------------------------- notes
    def note(self, state, trace=None):
        with self._shared.lock:
            self.state, self.trace = state, trace
            self._follow(self, state, trace)
        if not self._gone:
            self._shared.state.put_status(self.name, CONNECTOR, state, trace, self._shared.worker.id)

    def _note_task(self, task, state, trace=None):
        with self._shared.lock:
            if task not in self.tasks:
                return  # a runner that was abandoned or replaced
            task.state, task.trace = state, trace
            self._follow(task, state, trace)
        if not self._gone:
            self._shared.state.put_status(self.name, task.number, state, trace, self._shared.worker.id)

    def note_task(self, number, state):
        self._note_task(self.task(number), state)

    def _follow(self, part, state, trace):
        if state == FAILED:
            self._plan_restart(part, trace)
        elif state == RUNNING:
            part.attempts.running()

    def fail(self, error):
        if self._gone:
            return
        log.error("The connector '%s' has failed: %s", self.name, trace_of(error))
        self.note(FAILED, trace_of(error))


def plan_of(worker, config):
    """(what a configuration means, the version of its connector). Asks the connector's own code."""
    plan = worker.plan(config)
    return plan, worker.version(plan)
