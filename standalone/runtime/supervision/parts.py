"""Parts with a state: a connector, or one of its tasks. Records and stores states, and schedules restarts after failures."""

import logging

from standalone.runtime.supervision.restarts import Attempts, Policy
from standalone.runtime.supervision.state import CONNECTOR, well_formed
from standalone.runtime.tasks.lifecycle import FAILED, RUNNING, UNASSIGNED

log = logging.getLogger(__name__)


class Part:
    def __init__(self, number, attempts):
        self.number = number  # a task number, or CONNECTOR
        self.state, self.trace = UNASSIGNED, None
        self.attempts = attempts
        self.next_try = None  # the Timer of the next restart

    @property
    def worker_id(self):
        """Where it runs, if not in the worker."""
        return None

    def cancel_restart(self):
        if self.next_try is not None:
            self.next_try.cancel()
            self.next_try = None
            self.attempts.put_off()


class Task(Part):
    """Each new runner is a generation; states from older generations are ignored."""

    def __init__(self, number, config, attempts):
        super().__init__(number, attempts)
        self.config = config  # with the values of config providers
        self.runner = None
        self.generation = 0

    @property
    def worker_id(self):
        return getattr(self.runner, "worker_id", None)

    def next_generation(self):
        self.generation += 1
        return self.generation


class Supervisor:
    """Of one connector. `may_restart()` says whether automatic restarts are allowed; `retry(part)` runs one."""

    def __init__(self, name, shared, may_restart, retry):
        self._name = name
        self._shared = shared
        self._may_restart = may_restart
        self._retry = retry
        self.over = False  # the connector is deleted: ignore its states
        self.policy = Policy.of(shared.worker.config)
        self.own = Part(CONNECTOR, self.attempts())

    def attempts(self):
        return Attempts(self.policy, self._shared.clock)

    def follow(self, plan):
        """Use the restart keys of this configuration from now on."""
        self.policy = Policy.of(self._shared.worker.config, plan)
        self.own.attempts = self.attempts()

    def note(self, part, state, trace=None, generation=None):
        """Record a part's state. `generation` is that of the task's runner; states from older ones are ignored."""
        with self._shared.lock:
            if self.over or generation is not None and generation != part.generation:
                return
            part.state, part.trace = state, trace = state, trace and well_formed(trace)
            if state == FAILED:
                self.plan_restart(part)
            elif state == RUNNING:
                part.attempts.running()
            self._shared.state.put_status(self._name, part.number, state, trace, part.worker_id or self._shared.worker.id)  # does not wait

    def plan_restart(self, part):
        """After a failure: schedule a restart if the configuration allows it. Under the lock."""
        if self._shared.closing.is_set() or self.over or part.next_try is not None:
            return
        if part.attempts.policy.enabled and not self._may_restart():
            return  # restarts when it is resumed
        what = f"The connector '{self._name}'" if part.number == CONNECTOR else f"Task {part.number} of connector '{self._name}'"
        seconds = part.attempts.failed()
        if seconds is None:
            if part.attempts.policy.enabled:
                log.error("%s failed permanently after %d restarts (task.restart.max.attempts)", what, part.attempts.count)
            self._shared.failed_for_good(what, part.trace)
            return
        log.warning("%s failed; restarting in %.1f s", what, seconds)
        part.next_try = self._shared.timers.after(seconds, lambda: self._retry(part))

    def take_retry(self, part):
        """Whether that part is still due for a restart."""
        with self._shared.lock:
            wanted, part.next_try = part.next_try is not None, None
        wanted = wanted and part.state == FAILED and self._may_restart() and not self._shared.closing.is_set()
        if wanted:
            part.attempts.made()
        return wanted
