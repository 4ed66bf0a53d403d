"""The order in which a sink's task is called, whatever happens between: a rebalance, a retry, a failure, what the task itself asks for.

The tables are the genuine worker's order (WorkerSinkTask of Connect 4.3): open → put … → pre_commit → commit and, as it gives partitions up,
pre_commit → close → commit.
"""

import collections
import itertools
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standalone import RetriableError, SinkConnector, SinkTask
from standalone.runtime.tasks import factory
from tests.runtime.local import LocalWorker, wait_for
from tests.runtime.scripted_log import ScriptedConsumer, ScriptedLog, shown

A, B = ("a", 0), ("b", 0)
LOGS = {}  # connector's name -> its ScriptedLog
PLANS = {}  # connector's name -> react(task, call, how many of these there have been)
NAMES = (f"k{number}" for number in itertools.count())
NOTHING = "put nothing"


class NotingTask(SinkTask):
    """Notes each call in its log's notes, then does what the test says."""

    def start(self, config):
        self.log, self.react = LOGS[config["name"]], PLANS[config["name"]]
        self.counts = collections.Counter()

    def _called(self, call, note, *arguments):
        self.log.notes.append(note)
        self.counts[call] += 1
        self.react(self, call, self.counts[call], *arguments)

    def open(self, partitions):
        self._called("open", f"open {_names(partitions)}")

    def put(self, records):
        if not records:
            if self.log.notes[-1:] != [NOTHING]:
                self.log.notes.append(NOTHING)
            self.counts["idle"] += 1
            self.react(self, "idle", self.counts["idle"])
            return
        ranges = {}
        for record in records:
            ranges.setdefault((record.topic, record.partition), []).append(record.offset)
        self._called("put", "put " + " ".join(f"{topic}{partition}:{found[0]}-{found[-1]}" for (topic, partition), found in sorted(ranges.items())))

    def pre_commit(self, offsets):
        self._called("pre_commit", f"pre_commit {shown(offsets)}")
        return offsets

    def close(self, partitions):
        self._called("close", f"close {_names(partitions)}")

    def stop(self):
        self.log.notes.append("stop")


class NotingSink(SinkConnector):
    task_class = NotingTask


def _names(pairs):
    return " ".join(f"{topic}{partition}" for topic, partition in sorted(pairs))


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factory, "Consumer", lambda cluster, config, clock, group, instance, listener, beats: ScriptedConsumer(LOGS[group[8:]], listener))
        with LocalWorker(tmp_path_factory.mktemp("calls"), offset__flush__interval__ms=3_600_000) as worker:
            yield worker


def run(worker, log, react, done, states=("RUNNING", "RUNNING")):
    """The notes of one sink from its start until `done(log)`, and then until it has stopped. Its first poll gives it A."""
    name = next(NAMES)
    LOGS[name], PLANS[name] = log, react
    log.meanwhile(("assign", [A]))
    worker.create(name, {"connector.class": "tests.runtime.test_sink_calls:NotingSink", "topics": "a,b"})
    try:
        wait_for(lambda: done(log), what=lambda: log.notes)
        worker.wait_states(name, *states)
    finally:
        worker.herder.delete(name)
    return [note for note in log.notes if note != NOTHING]


def nothing(task, call, count, *_):
    pass


def once(wanted, number, act):
    """A plan: at that call, the first, second …, do this."""

    def react(task, call, count):
        if (call, count) == (wanted, number):
            act(task)

    return react


def plans(*each):
    def react(task, call, count):
        for one in each:
            one(task, call, count)

    return react


def retry(task):
    task.context.timeout(0)  # what is polled meanwhile is one poll, however little time there is
    raise RetriableError("not now")


def fail(task):
    raise ValueError("never")


def rebalanced(task):
    task.log.meanwhile(("revoke",), ("assign", [A]))


def resumes(task):
    task.log.notes.append("resume")
    task.context.resume(A)


BEGIN = ["subscribe", "open a0"]
END = ["pre_commit a0:5", "close a0", "commit a0:5", "stop", "leave"]
ASK = once("put", 1, lambda task: task.context.request_commit())


@pytest.mark.parametrize(
    "react, expected",
    [
        pytest.param(nothing, ["put a0:0-2", "put a0:3-4"], id="nothing happens"),
        pytest.param(
            ASK,
            ["put a0:0-2", "pre_commit a0:3", "commit a0:3", "put a0:3-4"],
            id="a commit is asked for in a put",
        ),
        pytest.param(once("put", 1, retry), ["put a0:0-2", "put a0:0-2", "put a0:3-4"], id="a put is repeated"),
        pytest.param(
            plans(once("put", 1, rebalanced)),
            [*("put a0:0-2", "pre_commit a0:3", "close a0", "commit a0:3", "open a0"), "put a0:3-4"],
            id="its partition is revoked and comes back between puts",
        ),
        pytest.param(
            plans(once("put", 2, rebalanced), once("put", 2, retry)),
            [
                *("put a0:0-2", "put a0:3-4", "pre_commit a0:3", "close a0", "commit a0:3", "open a0"),
                "put a0:3-4",  # read again from the commit
            ],
            id="its partition is revoked while a put is repeated",
        ),
        pytest.param(
            plans(once("put", 2, lambda task: task.log.meanwhile(("lose",), ("assign", [A]))), once("put", 2, retry)),
            ["put a0:0-2", "put a0:3-4", "close a0", "open a0", "put a0:0-2", "put a0:3-4"],
            id="its partition is lost while a put is repeated: nothing is committed",
        ),
        pytest.param(
            plans(once("put", 1, rebalanced), once("pre_commit", 1, lambda task: retry(task))),
            ["put a0:0-2", "pre_commit a0:3", "close a0", "open a0", "put a0:0-2", "put a0:3-4"],
            id="it cannot flush as its partition is revoked: what it had put comes again",
        ),
        pytest.param(
            plans(once("put", 1, lambda task: setattr(task.log, "commits_fail", 1)), once("put", 1, rebalanced)),
            [
                *("put a0:0-2", "pre_commit a0:3", "close a0", "commit fails", "open a0"),
                *("put a0:0-2", "put a0:3-4"),
            ],
            id="the group's coordinator is away as its partition is revoked",
        ),
        pytest.param(
            plans(once("put", 1, lambda task: task.context.pause(A)), once("idle", 2, lambda task: task.context.resume(A))),
            ["put a0:0-2", "put a0:3-4"],
            id="it pauses its partition in a put and resumes it in a later one",
        ),
        pytest.param(
            plans(once("put", 1, lambda task: task.context.resume(A)), once("put", 1, retry), once("put", 2, lambda task: task.context.resume(A)), once("put", 2, retry)),
            ["put a0:0-2", "put a0:0-2", "put a0:0-2", "put a0:3-4"],
            id="it resumes its partition in a put that is repeated, twice",
        ),
        pytest.param(
            once("put", 1, lambda task: task.context.offset({A: 1})),
            ["put a0:0-2", "put a0:1-3", "put a0:4-4"],
            id="it reads on from an earlier offset",
        ),
        pytest.param(
            once("open", 1, lambda task: task.context.offset({A: 2})),
            ["put a0:2-4"],
            id="it says in open where it continues",
        ),
        pytest.param(
            plans(once("put", 1, lambda task: task.context.offset({A: 1})), once("put", 1, rebalanced)),
            ["put a0:0-2", "pre_commit a0:1", "close a0", "commit a0:1", "open a0", "put a0:1-3", "put a0:4-4"],
            id="it reads on from an earlier offset and is then rebalanced",
        ),
        pytest.param(
            plans(ASK, once("pre_commit", 1, rebalanced)),
            ["put a0:0-2", "pre_commit a0:3", "commit a0:3", "close a0", "open a0", "put a0:3-4"],
            id="its partition is revoked during a commit",
        ),
        pytest.param(
            plans(ASK, once("pre_commit", 1, lambda task: task.log.meanwhile(("lose",), ("assign", [A])))),
            ["put a0:0-2", "pre_commit a0:3", "commit a0:3", "close a0", "open a0", "put a0:3-4"],
            id="its partition is lost during a commit",
        ),
        pytest.param(
            plans(ASK, once("pre_commit", 1, rebalanced), once("pre_commit", 1, retry)),
            ["put a0:0-2", "pre_commit a0:3", "pre_commit a0:3", "close a0", "commit a0:3", "open a0", "put a0:3-4"],
            id="its partition is revoked as it cannot flush yet",
        ),
        pytest.param(
            plans(ASK, once("pre_commit", 1, fail)),
            ["put a0:0-2", "pre_commit a0:3", "put a0:0-2", "put a0:3-4"],
            id="it fails to flush: it reads on after the last commit, and continues",
        ),
        pytest.param(
            plans(ASK, once("put", 2, lambda task: task.context.request_commit()), once("pre_commit", 2, fail)),
            ["put a0:0-2", "pre_commit a0:3", "commit a0:3", "put a0:3-4", "pre_commit a0:5", "put a0:3-4"],
            id="it fails to flush, having flushed before",
        ),
        pytest.param(
            plans(once("put", 1, lambda task: task.context.offset({A: 1})), once("put", 2, lambda task: task.context.request_commit()), once("pre_commit", 1, fail)),
            ["put a0:0-2", "put a0:1-3", "pre_commit a0:4", "put a0:1-3", "put a0:4-4"],
            id="it fails to flush, having asked to read on from an earlier offset",
        ),
        pytest.param(
            plans(ASK, once("pre_commit", 1, lambda task: task.context.offset({A: 1})), once("pre_commit", 1, fail)),
            ["put a0:0-2", "pre_commit a0:3", "put a0:1-3", "put a0:4-4"],
            id="it fails to flush and says itself where it reads on",
        ),
        pytest.param(
            plans(once("put", 1, rebalanced), once("pre_commit", 1, fail)),
            ["put a0:0-2", "pre_commit a0:3", "close a0", "open a0", "put a0:0-2", "put a0:3-4"],
            id="it fails to flush as its partition is revoked: what it had put comes again",
        ),
        pytest.param(
            plans(once("put", 1, lambda task: task.context.pause(A)), once("put", 1, rebalanced), once("idle", 4, resumes)),
            ["put a0:0-2", "pre_commit a0:3", "close a0", "commit a0:3", "open a0", "resume", "put a0:3-4"],
            id="it pauses its partition, which is revoked and comes back: it is paused still",
        ),
    ],
)
def test_a_sink_is_called_in_the_order_of_the_genuine_worker(worker, react, expected):
    wanted = [*BEGIN, *expected]
    assert run(worker, ScriptedLog({A: 5, B: 0}), react, lambda log: len([note for note in log.notes if note != NOTHING]) >= len(wanted)) == [*wanted, *END]


@pytest.mark.parametrize(
    "react, expected",
    [
        pytest.param(once("put", 2, fail), ["put a0:0-2", "put a0:3-4", "pre_commit a0:3", "close a0", "commit a0:3"], id="put"),
        pytest.param(
            plans(once("put", 2, fail), once("pre_commit", 1, fail)), ["put a0:0-2", "put a0:3-4", "pre_commit a0:3", "close a0"], id="put, and then the flush"
        ),
        pytest.param(
            plans(once("put", 2, fail), once("close", 1, fail)),  # what it has flushed may hang on its close
            ["put a0:0-2", "put a0:3-4", "pre_commit a0:3", "close a0"],
            id="put, and then close: nothing is committed",
        ),
        pytest.param(
            plans(once("put", 1, rebalanced), once("close", 1, fail)), ["put a0:0-2", "pre_commit a0:3", "close a0"], id="the close of a revocation"
        ),
        pytest.param(once("open", 1, fail), ["close a0"], id="open"),
        pytest.param(once("put", 1, lambda task: task.context.offset({B: 1})), ["put a0:0-2", "close a0"], id="reading on in a partition of others"),
    ],
)
def test_whatever_a_sink_fails_of_it_commits_what_it_has_put_and_closes(worker, react, expected):
    log = ScriptedLog({A: 5, B: 0})
    assert run(worker, log, react, lambda log: "leave" in log.notes, ("RUNNING", "FAILED")) == [*BEGIN, *expected, "stop", "leave"]


def test_a_put_fails_for_what_was_wrong_with_it_and_not_for_what_followed(worker):
    name = next(NAMES)
    LOGS[name], PLANS[name] = ScriptedLog({A: 5}), plans(once("put", 2, fail), once("close", 1, lambda task: {}["closing"]))
    LOGS[name].meanwhile(("assign", [A]))
    worker.create(name, {"connector.class": "tests.runtime.test_sink_calls:NotingSink", "topics": "a"})
    worker.wait_states(name, "RUNNING", "FAILED")
    assert "never" in worker.trace(name) and "KeyError" not in worker.trace(name)
    worker.herder.delete(name)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "idle", "pre_commit", "open"]),
        st.integers(1, 6),
        st.sampled_from(["retry", "pause", "resume", "rewind", "commit", "revoke", "lose", "grow", "commit fails", "fail"]),
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_whatever_happens_to_a_sink_nothing_is_skipped(worker, steps):
    """Each record is put at least once and in order after what was read last; nothing is committed that was not put or asked for."""
    acts = {
        "retry": retry,
        "fail": fail,
        "pause": lambda task: task.context.assignment() and task.context.pause(*task.context.assignment()),
        "resume": lambda task: task.context.assignment() and task.context.resume(*task.context.assignment()),
        "rewind": lambda task: task.context.assignment() and task.context.offset(dict.fromkeys(task.context.assignment(), 0)),
        "commit": lambda task: task.context.request_commit(),
        "revoke": lambda task: task.log.meanwhile(("revoke",), ("assign", [A])),
        "lose": lambda task: task.log.meanwhile(("lose",), ("assign", [A])),
        "grow": lambda task: task.log.meanwhile(("revoke",), ("assign", [A, B])),
        "commit fails": lambda task: setattr(task.log, "commits_fail", task.log.commits_fail + 1),
    }
    log, done = ScriptedLog({A: 12, B: 5}), threading.Event()

    def react(task, call, count):
        for wanted, number, what in steps:
            may_be = call in {"retry": ("put", "pre_commit"), "fail": ("pre_commit",)}.get(what, (call,))
            if (wanted, number) == (call, count) and may_be:
                acts[what](task)
        if call == "idle" and count > 12:  # all that was to happen has; whoever still holds back continues
            acts["resume"](task)
            if task.context.assignment() and all(highest(log).get(pair) == log.ends[pair] - 1 for pair in task.context.assignment()):
                done.set()

    notes = run(worker, log, react, lambda log: done.is_set())
    _check(notes, log)


def highest(log):
    found = {}
    for note in log.notes:
        if note.startswith("put ") and note != NOTHING:
            for pair, _, last in _ranges(note):
                found[pair] = max(last, found.get(pair, -1))
    return found


def _ranges(note):
    for part in note.split()[1:]:
        name, span = part.split(":")
        first, _, last = span.partition("-")
        yield (name[0], int(name[1:])), int(first), int(last or first)


def _check(notes, log):
    open_pairs, closed, put = set(), set(), collections.defaultdict(set)
    for note in notes:
        kind, _, rest = note.partition(" ")
        pairs = {(name[0], int(name[1:])) for name in rest.split()} if kind in ("open", "close") else set()
        if kind == "open":
            assert not pairs & open_pairs, notes
            open_pairs, closed = open_pairs | pairs, set()
        elif kind == "close":
            assert pairs <= open_pairs, notes
            open_pairs, closed, last = open_pairs - pairs, pairs, pairs
        elif kind == "put":
            for pair, first, last in _ranges(note):
                assert pair in open_pairs, notes
                put[pair] |= set(range(first, last + 1))
        elif kind == "commit" and rest != "fails":
            for pair, offset, _ in _ranges(note):  # as it gives partitions up, it commits after the close
                assert pair in open_pairs | closed and set(range(offset)) <= put[pair], (note, notes)
    assert not open_pairs and notes[-2:] == ["stop", "leave"], notes
    for pair in last:
        assert put[pair] == set(range(log.ends[pair])), (pair, notes)
