"""A sink whose chain works ahead of its task is put every record once, in order, whatever the task or its user asks for meanwhile."""

import concurrent.futures
import threading

import pytest
from confluent_kafka import Consumer

from standalone import RetriableError, SinkConnector, SinkTask, Transform
from standalone.pipeline.pipeline import Pipeline, Work
from tests.runtime.local import LocalWorker, wait_for

HERE = "tests.runtime.test_sink_ahead"
COUNT = 4_000
BAD = 1567
SIXTHS = [COUNT * part // 6 for part in range(1, 6)]
GOOD = [offset for offset in range(COUNT) if offset != BAD]


class Doubled(Transform):
    """Has no columnar form and keeps no state."""

    stateless = True

    def apply(self, record):
        if int(record.value) == BAD:
            raise ValueError("bad")
        return record.with_value(record.value_schema, str(2 * int(record.value)))


class Noting(SinkTask):
    """Notes what it is put. `odd(task, batches)` is called before that, in every put."""

    takes_batches = True
    odd = None
    put_offsets = {}  # of all tasks so far

    def start(self, config):
        self.puts = 0

    def put(self, batches):
        self.puts += 1
        if Noting.odd is not None:
            Noting.odd(self, batches)
        for batch in batches:
            assert [record.value for record in batch.records()] == [str(2 * offset) for offset in batch.offsets.tolist()]
            Noting.put_offsets.setdefault(batch.origin[0], []).extend(batch.offsets.tolist())


class NotingSink(SinkConnector):
    task_class = Noting


class Slow:
    """Works batches in its own thread, as Spark does, and counts how many it was ahead of the task."""

    def __init__(self):
        self.threads = concurrent.futures.ThreadPoolExecutor(1)
        self.tick = threading.Event()
        self.begun = self.ended = self.ahead = 0

    def begin(self, pipeline, *batch):
        def work():
            self.tick.wait(0.002)
            return whole.result()

        def end():
            self.ended += 1
            return future.result()

        whole = BEGIN(pipeline, *batch)
        self.ahead += self.begun > self.ended
        self.begun += 1
        future = self.threads.submit(work)
        return Work(end, future)


BEGIN = Pipeline.begin_sink


@pytest.fixture(autouse=True)
def slow(monkeypatch):
    slow = Slow()
    monkeypatch.setattr(Pipeline, "begin_sink", lambda pipeline, *batch: slow.begin(pipeline, *batch))
    monkeypatch.setattr(Noting, "put_offsets", {})
    monkeypatch.setattr(Noting, "odd", None)
    yield slow
    slow.threads.shutdown()


@pytest.fixture
def worker(tmp_path):
    with LocalWorker(tmp_path) as worker:
        yield worker


def fill(worker, topics="t"):
    for topic in topics.split(","):
        small = {"producer.override.max.request.size": "4000", "producer.override.compression.type": "none"}
        worker.create(f"s-{topic}", {"connector.class": "tests.runtime.plugins:ListSource", "topic": topic, "count": COUNT, "each": 500, **small})
        worker.values(topic, COUNT, 60)


def sink(worker, **more):
    """A sink that fetches some hundreds of records at a time."""
    config = {"connector.class": f"{HERE}:NotingSink", "transforms": "d", "transforms.d.type": f"{HERE}:Doubled", "errors.tolerance": "all"}
    fetch = {"consumer.override.fetch.max.bytes": "4000", "consumer.override.max.partition.fetch.bytes": "4000"}
    worker.create("k", {**config, **fetch, **more})


def wait_for_all(*topics):
    def put():
        return all(Noting.put_offsets.get(topic, [0])[-1] == COUNT - 1 for topic in topics)

    wait_for(put, what="all records")


def is_behind(offset, batches):
    """Whether these hold a record after that offset: how many records a put has depends on how quick the machine is."""
    return bool(batches) and int(batches[-1].offsets[-1]) > offset


def test_what_is_put_is_whole_and_in_order(worker, slow):
    fill(worker, "t,u")
    sink(worker, topics="t,u")
    wait_for_all("t", "u")
    assert Noting.put_offsets == {"t": GOOD, "u": GOOD} and slow.ahead


def test_the_chain_can_ask_how_much_follows(worker, monkeypatch):
    asked, left = [], []
    monkeypatch.setattr(Pipeline, "ask_what_follows", lambda pipeline, follows: asked.append(follows))
    monkeypatch.setattr(Noting, "odd", lambda task, batches: batches and left.append(asked[0]()))
    fill(worker)
    sink(worker, topics="t")
    wait_for_all("t")
    assert COUNT > left[0] > left[-1] == 0 and left == sorted(left, reverse=True)


def test_a_put_that_is_repeated_comes_before_what_follows(worker, slow, monkeypatch, caplog):
    refused = []

    def refuse(task, batches):
        if batches and task.puts % 3 == 1:
            refused.append(f"The put of {sum(map(len, batches))} records failed and will be retried: not now")
            task.context.timeout(5)
            raise RetriableError("not now")

    monkeypatch.setattr(Noting, "odd", refuse)
    fill(worker)
    sink(worker, topics="t")
    wait_for_all("t")
    assert Noting.put_offsets == {"t": GOOD} and slow.ahead
    assert refused and [message for message in caplog.messages if "will be retried" in message] == refused


def test_a_task_that_rewinds_gets_what_it_asked_for_next(worker, slow, monkeypatch):
    rewound = []

    def rewind(task, batches):
        found = Noting.put_offsets.get("t", [])
        if found and len(rewound) < 5 and is_behind(SIXTHS[len(rewound)], batches):
            again = found[-100:]  # the batches of this very put still come before them
            task.context.offset({("t", 0): again[0]})
            rewound.append((again[0], int(batches[-1].offsets[-1])))

    monkeypatch.setattr(Noting, "odd", rewind)
    fill(worker)
    sink(worker, topics="t")
    wait_for_all("t")
    wanted, at = [], 0
    for again, last in rewound:
        wanted += [offset for offset in GOOD if at <= offset <= last]
        at = again
    wanted += [offset for offset in GOOD if at <= offset]
    assert len(rewound) == 5 and Noting.put_offsets == {"t": wanted} and slow.ahead


def test_a_task_that_pauses_a_partition_gets_nothing_of_it_until_it_resumes(worker, slow, monkeypatch):
    pauses = []

    def hold(task, batches):
        if len(pauses) % 2:
            assert not batches
            task.context.resume(("t", 0))
            pauses.append("over")
        elif len(pauses) < 10 and is_behind(SIXTHS[len(pauses) // 2], batches):
            task.context.pause(("t", 0))
            pauses.append("begun")

    monkeypatch.setattr(Noting, "odd", hold)
    fill(worker)
    sink(worker, topics="t")
    wait_for_all("t")
    assert len(pauses) >= 6 and Noting.put_offsets == {"t": GOOD} and slow.ahead


@pytest.mark.parametrize("act", ["pause", "stop", "restart"])
def test_whatever_its_user_does_nothing_is_lost_or_doubled(worker, slow, monkeypatch, act):
    def slowly(task, batches):
        slow.tick.wait(0.01)

    monkeypatch.setattr(Noting, "odd", slowly)
    fill(worker)
    sink(worker, topics="t")
    for _ in range(8):
        before = len(Noting.put_offsets.get("t", ()))
        if act == "restart":
            worker.herder.restart_task("k", 0)
        else:
            getattr(worker.herder, act)("k")
            worker.wait_states("k", *(("PAUSED", "PAUSED") if act == "pause" else ("STOPPED",)))
            before = len(Noting.put_offsets.get("t", ()))
            slow.tick.wait(0.05)
            assert len(Noting.put_offsets.get("t", ())) == before
            worker.herder.resume("k")
        wait_for(lambda before=before: len(Noting.put_offsets.get("t", ())) > min(before, len(GOOD) - 1), 60, "more")
    wait_for_all("t")
    assert Noting.put_offsets == {"t": GOOD}


def test_partitions_that_another_member_takes_over_come_again_where_they_were_left(worker, slow, monkeypatch):
    taken_over = threading.Event()

    def slowly(task, batches):
        taken_over.wait(0.3)

    monkeypatch.setattr(Noting, "odd", slowly)
    fill(worker, "t,u")
    # By the range assignor each topic's only partition would go to the same member.
    sink(worker, topics="t,u", **{"consumer.override.partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor"})
    wait_for(lambda: Noting.put_offsets, what="the first put")
    member = Consumer(
        {"bootstrap.servers": worker.bootstrap, "group.id": "connect-k", "enable.auto.commit": False, "partition.assignment.strategy": "roundrobin"}
    )
    member.subscribe(["t", "u"])
    try:
        wait_for(lambda: (member.poll(0.05), member.assignment())[1], what="a partition for the other member")
        assert any(len(Noting.put_offsets.get(topic, ())) < len(GOOD) for topic in "tu"), "nothing was left to take over"
    finally:
        member.close()
    taken_over.set()
    wait_for_all("t", "u")
    assert Noting.put_offsets == {"t": GOOD, "u": GOOD} and slow.ahead
