"""The tasks of one connector: creates, starts and stops them, and updates them after a change of the task configurations."""

import concurrent.futures
import logging

from standalone.errors import ConnectError, trace_of
from standalone.runtime.calls import Abandoned, Mailbox, call_plugin
from standalone.runtime.supervision.parts import Task
from standalone.runtime.tasks.lifecycle import FAILED

log = logging.getLogger(__name__)


class TaskGroup:
    """Used within calls of the connector's mailbox; `all` is read under the herder's lock. `new_runner(task, listen)` calls plugin code."""

    def __init__(self, name, shared, supervisor, new_runner, patience):
        self._name = name
        self._shared = shared
        self._supervisor = supervisor
        self._new_runner = new_runner
        self._patience = patience  # returns a wait for call_plugin
        self.all = []

    def bring_in_line(self, configs):
        """Start, stop and restart exactly the tasks whose configuration changed."""
        with self._shared.lock:
            known = [task.config for task in self.all]
        if known == configs and all(task.runner is not None for task in self.all):
            self.resume()
            return
        gone = self.all[len(configs) :] + [task for task, config in zip(self.all, configs) if task.config != config]
        self._end(gone)
        with self._shared.lock:
            kept = {task.number: task for task in self.all if task not in gone}
            self.all = [kept.get(number) or Task(number, config, self._supervisor.attempts()) for number, config in enumerate(configs)]
        for task in self.all:
            if task.runner is None:
                self._start(task)

    def pause(self):
        for task in self._with_runners():
            task.runner.pause()

    def resume(self):
        for task in self._with_runners():
            task.runner.resume()

    def restart(self, number, renewed):
        """Stop that task and start it with the configuration that `renewed(old configuration)` returns."""
        task = next((task for task in self.all if task.number == number), None)
        if task is None:
            return
        with self._shared.lock:
            task.cancel_restart()
        self._end([task])
        try:
            task.config = renewed(task.config)
        except Abandoned as error:
            log.warning("Task %d of connector '%s' is not restarted: its target state has changed. %s", number, self._name, error)
        except ConnectError as error:
            self._supervisor.note(task, FAILED, trace_of(error))
        else:
            self._start(task)

    def stop(self):
        self._end(self.all)
        with self._shared.lock:
            self.all = []

    def ask_to_stop(self):
        """Ask all to stop without waiting. Thread-safe."""
        return [Mailbox(self._name).post(task.runner.stop) for task in self._with_runners()]

    def _with_runners(self):
        return [task for task in self.all if task.runner is not None]

    def _start(self, task):
        if self._shared.closing.is_set():
            return
        count_start = iter([self._shared.starts["task"].count])  # counted once
        generation = task.next_generation()

        def listen(state, trace):
            for count in count_start:
                count(state != FAILED)
            self._supervisor.note(task, state, trace, generation)

        try:
            make = lambda: self._new_runner(task, listen)  # noqa: E731
            runner = call_plugin(make, connector=self._name, task=task.number, method="The making", wait=self._patience())
        except Abandoned as error:
            log.warning("Task %d of connector '%s' is not started: its target state has changed. %s", task.number, self._name, error)
        except Exception as error:
            log.error("Task %d of connector '%s' cannot be started: %s", task.number, self._name, trace_of(error))
            listen(FAILED, trace_of(error))
        else:
            task.runner = runner
            runner.start()

    def _end(self, tasks):
        """Ask all to stop, then wait within the graceful timeout; a task that hangs is abandoned and its states are ignored."""
        runners = [task.runner for task in tasks if task.runner is not None]
        asked = [Mailbox(self._name).post(runner.stop) for runner in runners]
        patience = self._shared.worker.graceful_seconds
        deadline = self._shared.clock.monotonic() + patience
        concurrent.futures.wait(asked, timeout=patience)
        for task in tasks:
            runner, task.runner = task.runner, None
            if runner is not None and not runner.join(deadline - self._shared.clock.monotonic()):
                task.next_generation()
                what = f"Task {task.number} of connector '{self._name}'"
                log.error("%s did not stop within %.1f s (task.shutdown.graceful.timeout.ms) and is abandoned", what, patience)
                runner.cancel()
