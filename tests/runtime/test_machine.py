"""A live worker against a small model of it: eight callers do to a few connectors whatever comes to their minds, tasks hang, the disk is slow and
the log goes away.

What they were answered must be explained by some order of their calls (tests/runtime/one_order.py); what is shown then is what is stored
and what runs. A step is one call: MACHINE_STEPS says how many in all (3,000 unless configured otherwise; scripts/soak/machine.py makes it 100,000).
"""

import collections
import concurrent.futures
import contextlib
import functools
import itertools
import os
import sys
import threading
import time
import traceback

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from standalone import Schema, SourceConnector, SourceRecord, SourceTask
from standalone.errors import BadRequestError, ConflictError, NotFoundError
from tests.runtime.local import LocalWorker, wait_for
from tests.runtime.one_order import Answer, one_order

STEPS = int(os.environ.get("MACHINE_STEPS", 3000))
LONGEST_ANSWER = float(os.environ.get("MACHINE_LONGEST_ANSWER", 5))  # seconds
CALLERS = 8
NAMES = ("a", "b", "c", "d")
GRACE = 0.2  # seconds that a task has to stop; then it is left behind, and its successor may run beside it
LIVE = collections.defaultdict(set)  # name -> tasks that have started and not ended
HANGS = set()  # names whose tasks heed nothing as they stop
RELEASE = threading.Event()
TOO_MANY = []
_serials = itertools.count()
_lock = threading.Lock()


class Task(SourceTask):
    """Sends one number after the other, as long as it runs."""

    def __init__(self):
        self.over = threading.Event()
        self.told_at = None
        self.serial = next(_serials)

    def start(self, config):
        self.name = config["name"]
        stored = self.context.offset_reader.offset({"p": self.name})
        self.next = stored["n"] if stored else 0
        with _lock:
            TOO_MANY.extend(self.name for other in LIVE[self.name] if other.told_at is None or time.monotonic() < other.told_at + 0.9 * GRACE)
            LIVE[self.name].add(self)

    def poll(self):
        if self.name in HANGS and self.over.is_set():
            RELEASE.wait()
        if self.over.wait(0.005):
            return None
        self.next += 1
        return [SourceRecord(f"t-{self.name}", f"{self.serial} {self.next - 1}", {"p": self.name}, {"n": self.next}, value_schema=Schema.STRING)]

    def stop(self):
        self.told_at = time.monotonic()
        self.over.set()

    def close(self):
        with _lock:
            LIVE[self.name].remove(self)


class Source(SourceConnector):
    task_class = Task


def _slow_disk(worker, seconds=0.3):
    worker.state._post(lambda db: time.sleep(seconds))
    with worker.offsets._writing:
        time.sleep(seconds)


class Watch:
    """How long each call takes; of one that takes too long, where all threads stand while it does."""

    def __init__(self):
        self.calls, self.longest, self.too_long = 0, 0.0, []
        self._running = {}  # thread -> (what it calls, since when)
        self._over = threading.Event()

    def __enter__(self):
        threading.Thread(target=self._look, name="watch", daemon=True).start()
        return self

    def __exit__(self, *_):
        self._over.set()

    @contextlib.contextmanager
    def timing(self, what):
        begun, thread = time.monotonic(), threading.get_ident()
        self._running[thread] = what, begun
        try:
            yield
        finally:
            del self._running[thread]
            took = time.monotonic() - begun
            with _lock:
                self.calls += 1
                self.longest = max(self.longest, took)
                if took >= LONGEST_ANSWER:
                    self.too_long.append(f"{what} took {took:.1f} s")

    def _look(self):
        while not self._over.wait(0.5):
            slow = [what for what, begun in list(self._running.values()) if time.monotonic() - begun > 0.8 * LONGEST_ANSWER]
            if slow and not self.too_long:
                names = {thread.ident: thread.name for thread in threading.enumerate()}
                stacks = [f"{names.get(ident)}\n{''.join(traceback.format_stack(frame))}" for ident, frame in sys._current_frames().items()]
                self.too_long.append(f"{slow} take long. Threads are at:\n" + "\n".join(stacks))


CALLS = st.tuples(
    st.sampled_from(["put", "put", "patch", "delete", "pause", "resume", "resume", "stop", "restart", "restart tasks", "restart task", "reset", "get"]),
    st.sampled_from(NAMES),
    st.integers(0, 3).map(str),
)


def until_it_fails(act):
    """The first failure is kept and nothing is done any more: hypothesis, which would try again, cannot have a race happen twice."""

    @functools.wraps(act)
    def guarded(self, *arguments, **named):
        if Machine.failure is None:
            try:
                act(self, *arguments, **named)
            except BaseException:
                Machine.failure = traceback.format_exc()

    return guarded


class Machine(RuleBasedStateMachine):
    worker = watch = pool = failure = None  # one each for all runs

    def __init__(self):
        super().__init__()
        self.model = dict.fromkeys(NAMES)  # name -> (config's n, target), or None where there is none

    @property
    def herder(self):
        return Machine.worker.herder

    # ---------------------------------------------------------------- what is done
    @rule(callers=st.lists(st.lists(CALLS, min_size=1, max_size=3), min_size=CALLERS, max_size=CALLERS))
    @until_it_fails
    def all_call(self, callers):
        self._check(self._called(callers))

    @rule(caller=st.lists(CALLS, min_size=8, max_size=16))
    @until_it_fails
    def one_calls(self, caller):
        self._check(self._called([caller]))

    @rule(callers=st.lists(st.lists(CALLS, min_size=1, max_size=2), min_size=CALLERS, max_size=CALLERS), name=st.sampled_from(NAMES))
    @until_it_fails
    def all_call_while_tasks_hang_and_the_disk_is_slow(self, callers, name):
        """As they are to stop they heed nothing: they are left behind. Neither state nor offsets can be stored at first."""
        HANGS.add(name)
        slow = threading.Thread(target=_slow_disk, args=(Machine.worker.process.worker,))
        slow.start()
        try:
            answers = self._called(callers)
        finally:
            slow.join()
            RELEASE.set()
            HANGS.discard(name)
            wait_for(lambda: not any(task.told_at and time.monotonic() > task.told_at + GRACE for task in list(LIVE[name])), what="hung tasks to end")
            RELEASE.clear()
        self._check(answers)

    @rule(callers=st.lists(st.lists(CALLS, min_size=1, max_size=2), min_size=CALLERS, max_size=CALLERS))
    @until_it_fails
    def all_call_while_the_log_is_away(self, callers):
        with Machine.worker.log_outage():
            answers = self._called(callers)
        self._check(answers)

    def _called(self, callers):
        """The Answers to each of them: a list of calls, made one after the other."""
        return [answer for answers in Machine.pool.map(lambda calls: [self._call(*call) for call in calls], callers) for answer in answers]

    def _call(self, act, name, n):
        begun = time.monotonic()
        with Machine.watch.timing((act, name, n)):
            said = self._said(act, name, n)
        return Answer(name, act, n, said, begun, time.monotonic())

    def _said(self, act, name, n):
        """What came of it, as the model says it."""
        herder = self.herder
        try:
            if act == "put":
                return herder.create(name, {"connector.class": f"{__name__}:Source", "n": n}, replace=True)[1]
            if act == "get":
                return herder.config(name)["n"]
            if act == "patch":
                herder.patch(name, {"n": n})
            elif act == "reset":
                herder.reset_offsets(name)
            elif act == "restart task":
                herder.restart_task(name, 0)
            elif act in ("restart", "restart tasks"):
                herder.restart(name, act == "restart tasks")
            else:
                getattr(herder, act)(name)
        except (NotFoundError, BadRequestError) as error:
            return type(error)
        except ConflictError:
            if act != "restart task":  # it was being started or stopped at this very moment
                raise
        return None

    # ---------------------------------------------------------------- what always holds
    def _check(self, answers):
        stored = {name: (config["n"], target) for name, config, target, _ in Machine.worker.process.worker.state.connectors()}
        for name in NAMES:
            own = [answer for answer in answers if answer.name == name]
            assert one_order(own, self.model[name], stored.get(name)), f"no order of these calls explains them: {self.model[name]}, {own}, {stored.get(name)}"
            self.model[name] = stored.get(name)
        assert sorted(self.herder.names()) == sorted(stored)
        for name, (n, _) in stored.items():
            assert self.herder.config(name)["n"] == n
        assert not TOO_MANY
        assert not Machine.watch.too_long, "\n".join(Machine.watch.too_long)

    @until_it_fails
    def teardown(self):
        """All comes to rest as the model says, what is shown runs, and nothing is left of what is deleted."""
        there = {name: known for name, known in self.model.items() if known}
        for name, (n, target) in there.items():
            wanted = {"STARTED": ["RUNNING", "RUNNING"], "PAUSED": None, "STOPPED": ["STOPPED"]}[target]
            states = lambda name=name, wanted=wanted: Machine.worker.states(name)[: 1 if wanted is None else None] == (wanted or ["PAUSED"])  # noqa: E731
            wait_for(states, what=f"{name} to be as its model, {target}")
            assert target != "STARTED" or [runner.config["n"] for runner in self.herder.runners() if runner.connector == name] == [n]
        for _ in Machine.pool.map(lambda name: self._call("delete", name, ""), there):
            pass
        assert self.herder.runners() == []
        wait_for(lambda: not any(LIVE.values()), what="all tasks to have ended")


def test_whatever_is_done_to_connectors_the_worker_is_as_its_model(tmp_path):
    with (
        LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=int(GRACE * 1000)) as worker,
        Watch() as watch,
        concurrent.futures.ThreadPoolExecutor(CALLERS) as pool,
    ):
        Machine.worker, Machine.watch, Machine.pool, Machine.failure = worker, watch, pool, None
        worker.run_source({"connector.class": "FileStreamSource", "topic": "warm"}, lines=["x"])
        before = _own_threads()
        limits = settings(
            max_examples=5, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck),
            database=None, phases=[Phase.generate],
        )  # fmt: skip
        begun = time.monotonic()
        while watch.calls < STEPS:
            run_state_machine_as_test(Machine, settings=limits)
            assert Machine.failure is None, Machine.failure
        print(f"{watch.calls} calls in {time.monotonic() - begun:.0f} s, the longest {watch.longest:.2f} s")
        wait_for(lambda: _own_threads() <= before, what="no thread left behind")
        assert worker.process.worker.health_problem() is None
        for name in NAMES:
            _nothing_is_missing(name, [tuple(map(int, record.value.split())) for record in worker.all_records(f"t-{name}")])


def _nothing_is_missing(name, records):
    """Each task sends without a gap, and began where an earlier one had stored that it sent. What one left behind sends may come in between."""
    sent, last = set(), {}
    for at, (task, number) in enumerate(records):
        around = records[max(0, at - 8) : at + 8]
        if task in last:
            assert number == last[task] + 1, f"of {name} {last[task] + 1} is missing or comes late: {around}"
        else:
            assert not number or number - 1 in sent, f"of {name} {number - 1} is missing: {around}"
        last[task] = number
        sent.add(number)


def _own_threads():
    return sum(thread.name.startswith(("task-", "send-", "calls-", "dead-letters-")) for thread in threading.enumerate())
