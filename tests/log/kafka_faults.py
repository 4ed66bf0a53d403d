"""What brokers and networks do to a worker, as a table: test_kafka_faults.py takes each for a moment, scripts/soak/kafka_faults.py for long.

Numbered lines go file -> topic -> file, through a proxy before each broker, while a fault begins, lasts and ends. Nobody helps the worker. In the
end the topic has each line once and in order, and so has the sink's file, but for what was deleted on purpose and for redelivery: a step back to
a committed offset, behind which all comes again in order.
"""

import contextlib
import dataclasses
import itertools
import pathlib
import re
import resource
import threading
import time

import confluent_kafka
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec, ResourceType

from tests.lab import Lab
from tests.log.committed import committed

LINE = b"a line of the flow, long enough to be like one of a log, number"
PER_SECOND = 1000
MOVES_SECONDS = 90  # for the flow to continue: half of it are session timeouts
END_SECONDS = 120
SHORT_TIMEOUTS = {  # so that a moment's test sees what takes half a minute by default
    "producer__request__timeout__ms": 3000,
    "consumer__request__timeout__ms": 5000,
    "consumer__session__timeout__ms": 10_000,
    "consumer__default__api__timeout__ms": 5000,
    "offset__flush__interval__ms": 1000,
}


class Flow:
    """A source and their own sink topic, and a thread that appends to the source's file."""

    def __init__(self, stage, name, topic_configs=None, **connector_configs):
        self.stage, self.cluster, self.lab = stage, stage.cluster, stage.lab
        self.topic = f"flow-{name}-{next(stage.numbers)}"
        self.topic_configs = topic_configs or {}
        self.written, self.gone, self.expects, self.long_line_at = 0, set(), set(), None
        self._over, self._paused = threading.Event(), threading.Lock()
        self.make_topic()
        restarts = {"task.restart.max.attempts": "-1", "task.restart.backoff.initial.ms": "200", "task.restart.backoff.max.ms": "1000"}
        self.source = self.lab.source(f"{self.topic}-source", b"", topic=self.topic, **restarts)
        self.sink = self.lab.sink(f"{self.topic}-sink", topics=self.topic, **restarts, **connector_configs)
        self.log_from = len(self.lab.output())
        self._writer = threading.Thread(target=self._write, daemon=True)

    def __enter__(self):
        self._writer.start()
        self.goes_on()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._writer.join()
        for part in ("source", "sink"):
            with contextlib.suppress(OSError):
                self.lab.ask("DELETE", f"/connectors/{self.topic}-{part}")

    def make_topic(self):
        topic = NewTopic(self.topic, 1, len(self.cluster.brokers), config=self.topic_configs)
        self.cluster.until(lambda: self.cluster.admin.create_topics([topic])[self.topic].result(20) is None, f"the topic {self.topic}")
        self.cluster.until(lambda: self.cluster.partition(self.topic).leader > 0, f"a leader of {self.topic}")

    def _write(self):
        with open(self.source, "ab", buffering=0) as file:
            while not self._over.wait(0.01):
                with self._paused:
                    file.write(b"".join(self._next_line() for _ in range(PER_SECOND // 100)))

    def _next_line(self):
        self.written += 1
        return _line(self.written - 1, self.long_line_at) + b"\n"

    def paused(self):
        """A block in which no line is appended."""
        return self._paused

    def goes_on(self, seconds=MOVES_SECONDS):
        """How many seconds it takes until a line that is not yet written is in the sink's file."""
        began, number = time.monotonic(), self.written
        self._until(lambda: self._last_line() >= number, f"line {number} is in the sink's file", seconds)
        return time.monotonic() - began

    def caught_up(self, seconds=END_SECONDS):
        """Until all lines that were written are in the sink's file."""
        self._until(lambda: self._last_line() >= self.written - 1, f"line {self.written - 1} is in the sink's file", seconds)

    def _last_line(self):
        """The number of the last whole line in the sink's file."""
        with contextlib.suppress(OSError), open(self.sink, "rb") as file:
            file.seek(max(0, self.size() - 16_384))
            found = re.findall(rb"\n(\d{8}) [^\n]*(?=\n)", b"\n" + file.read())
            return int(found[-1]) if found else -1
        return -1

    def rests(self, seconds=0.5):
        """Whether nothing comes into the sink's file for this long."""
        size = self.size()
        time.sleep(seconds)
        return self.size() == size

    def size(self):
        return self.sink.stat().st_size if self.sink.exists() else 0

    def tells(self, pattern, seconds=MOVES_SECONDS):
        """Until the status of a task, or the worker's log since the flow began, has this; the line that has it."""

        def told():
            said = [f"{name}: {task['state']}: {task.get('trace', '')}" for name in self._names() for task in self._tasks(name)]
            for line in [*said, *self.lab.output()[self.log_from :].splitlines()]:
                if re.search(pattern, line, re.DOTALL):
                    return line
            return None

        return self._until(told, f"the worker reports '{pattern}'", seconds)

    def states(self):
        return [task["state"] for name in self._names() for task in self._tasks(name)]

    def _names(self):
        return f"{self.topic}-source", f"{self.topic}-sink"

    def _tasks(self, name):
        return (self.lab.get(f"/connectors/{name}/status") or {"tasks": []})["tasks"]

    def _until(self, look, what, seconds):
        deadline = time.monotonic() + seconds
        while not (found := look()):
            assert self.lab.process.poll() is None, f"the worker ended: {self.lab.output()[-2000:]}"
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s; {self.states()}; {self.lab.output()[self.log_from :][-4000:]}"
            time.sleep(0.02)
        return found

    def judge(self):
        """A Verdict of what is in the topic and in the sink's file, once all has come."""
        self._over.set()
        self._writer.join()
        self.caught_up()
        self._until(lambda: self.states() == ["RUNNING"] * 2, "all tasks run", MOVES_SECONDS)
        lines = self.sink.read_bytes().splitlines()
        return verdict(self.written, lines, committed(self.cluster.bootstrap, self.topic), self.gone, self.expects, self.long_line_at)



@dataclasses.dataclass
class Verdict:
    lines: int
    lost: int
    misplaced: int
    redelivered: int  # steps back to a committed offset
    torn: int
    doubled_in_topic: int
    misplaced_in_topic: int
    missing_in_topic: int
    strange: list  # what is in the sink's file and must not be, or the other way round

    def problems(self):
        """What must not be, by name; redelivery may."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in ("lines", "redelivered")}
        return {name: value for name, value in found.items() if value}


def verdict(written, lines, in_topic, gone=frozenset(), expects=frozenset(), long_line_at=None):
    """What happened to so many numbered lines, by the sink's file and the committed records of the topic.

    gone: numbers that were deleted from the topic on purpose; expects: lines of others that must be in the file.
    """
    in_topic = [value for value in in_topic if value[:8].isdigit()]
    numbers = [int(value[:8]) for value in in_topic]
    seen, steps_back, misplaced, torn, strange, wanted = set(), 0, 0, 0, [], 0
    for line in lines:
        if not line[:8].isdigit():
            strange.append(line)
            continue
        number = int(line[:8])
        torn += line != _line(number, long_line_at)
        misplaced += number > wanted and not gone.issuperset(range(wanted, number))
        steps_back += number < wanted
        wanted = number + 1
        seen.add(number)
    once = set(numbers)
    return Verdict(
        lines=written,
        lost=len(set(range(written)) - seen - gone),
        misplaced=misplaced,
        redelivered=steps_back,
        torn=torn + sum(value != _line(number, long_line_at) for number, value in zip(numbers, in_topic)),
        doubled_in_topic=len(numbers) - len(once),
        misplaced_in_topic=sum(after < before for before, after in zip(numbers, numbers[1:])),
        missing_in_topic=len(set(range(min(numbers, default=0), written)) - once),
        strange=sorted(set(strange) ^ expects),
    )


def _line(number, long_line_at):
    return b"%08d %s%s %d" % (number, b"x" * 5000 if number == long_line_at else b"", LINE, number)


class Stage:
    """A cluster, and a worker whose only way to it is through the proxies."""

    def __init__(self, cluster, folder, forks=None, **worker):
        self.cluster, self.numbers = cluster, itertools.count()
        self.lab = Lab(pathlib.Path(folder), forks)
        self.lab.up(bootstrap__servers=cluster.proxied, **worker)

    def warnings(self, since):
        """What the worker's log warns of from that character on, each kind once."""
        found = {}
        for line in self.lab.output()[since:].splitlines():
            if " WARN " in line or " ERROR " in line:
                found.setdefault(re.sub(r"[\d.]+", "#", line), line)
        return list(found.values())

    def memory(self):
        """What the worker holds, in bytes."""
        pages = pathlib.Path(f"/proc/{self.lab.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def close(self):
        self.lab.close()


# --- What happens. Each is a block: the fault begins, lasts while the block is run, and is over after it.


@contextlib.contextmanager
def stopped(flow):
    leader = flow.cluster.leader(flow.topic)
    leader.shut_down()
    yield
    leader.launch()


@contextlib.contextmanager
def killed(flow):
    leader = flow.cluster.leader(flow.topic)
    leader.kill()
    yield
    leader.launch()


@contextlib.contextmanager
def frozen(flow):
    leader = flow.cluster.leader(flow.topic)
    leader.freeze()
    try:
        yield
    finally:
        leader.thaw()


@contextlib.contextmanager
def disk_full(flow):
    """No file of the broker may grow any more: it gives its log up, and ends. Room is made, and it is started again."""
    leader = flow.cluster.leader(flow.topic)
    largest = max(path.stat().st_size for path in (leader.data / f"{flow.topic}-0").glob("*.log"))
    resource.prlimit(leader.pid, resource.RLIMIT_FSIZE, (largest + 20_000, resource.RLIM_INFINITY))
    flow.cluster.until(lambda: not leader.runs, "the end of the broker whose disk is full")
    yield
    leader.launch()


@contextlib.contextmanager
def leader_moved(flow):
    """To each replica in turn, and again."""
    from kafka import TopicPartition as Part
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=flow.cluster.bootstrap.split(","))
    for _ in range(len(flow.cluster.brokers) + 1):
        replicas = flow.cluster.partition(flow.topic).replicas
        wanted = [*replicas[1:], replicas[0]]
        admin.alter_partition_reassignments({Part(flow.topic, 0): wanted})
        flow.cluster.until(lambda wanted=wanted: flow.cluster.partition(flow.topic).replicas == wanted, "the new order of replicas")

        def leads(wanted=wanted):
            flow.cluster.admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(flow.topic, 0)]).result(20)
            return flow.cluster.partition(flow.topic).leader == wanted[0]

        flow.cluster.until(leads, "another leader")
        flow.goes_on()
    admin.close()
    yield


@contextlib.contextmanager
def made_anew(flow):
    """The topic is deleted and recreated; what was in it had been read."""
    with flow.paused():
        flow.caught_up()
        flow.cluster.admin.delete_topics([flow.topic])[flow.topic].result(20)
        flow.cluster.until(lambda: flow.topic not in flow.cluster.admin.list_topics(timeout=5).topics, "the end of the topic")
        flow.make_topic()
    yield


@contextlib.contextmanager
def slow_network(flow):
    for proxy in flow.cluster.proxies:
        proxy.delay = 0.15
    yield
    for proxy in flow.cluster.proxies:
        proxy.well()


@contextlib.contextmanager
def cut_network(flow):
    for proxy in flow.cluster.proxies:
        proxy.cut_every = 0.7
    yield
    for proxy in flow.cluster.proxies:
        proxy.well()


@contextlib.contextmanager
def silent_network(flow):
    """Connections stay, and nothing comes through."""
    for proxy in flow.cluster.proxies:
        proxy.silent = True
    yield
    for proxy in flow.cluster.proxies:
        proxy.well()


@contextlib.contextmanager
def garbling_network(flow):
    before = sum(proxy.garbled for proxy in flow.cluster.proxies)
    for proxy in flow.cluster.proxies:
        proxy.garble(LINE, 0.05)
    yield
    for proxy in flow.cluster.proxies:
        proxy.well()
    assert sum(proxy.garbled for proxy in flow.cluster.proxies) > before, "nothing was garbled"


@contextlib.contextmanager
def not_enough_replicas(flow):
    """A follower stands still, and is no longer in sync."""
    size = len(flow.cluster.brokers)
    _alter(flow, "min.insync.replicas", str(size))
    leader = flow.cluster.leader(flow.topic)
    follower = next(broker for broker in flow.cluster.brokers if broker is not leader)
    follower.freeze()
    try:
        flow.cluster.until(lambda: len(flow.cluster.partition(flow.topic).isrs) < size, "fewer replicas in sync")
        yield
    finally:
        follower.thaw()


@contextlib.contextmanager
def too_large(flow):
    """A line that the topic does not take, until its limit is raised."""
    with flow.paused():
        flow.long_line_at = flow.written
    yield
    _alter(flow, "max.message.bytes", "1048588")


@contextlib.contextmanager
def corrupt(flow):
    """A bit of a stored record is turned on the leader's disk before the sink reads it, and turned back."""
    _sink(flow, "pause")
    leader, from_line = flow.cluster.leader(flow.topic), flow.written
    path = leader.data / f"{flow.topic}-0" / "00000000000000000000.log"
    text = b"%s %d" % (LINE, from_line + 2000)
    flow._until(lambda: text in path.read_bytes(), "more lines in the topic", MOVES_SECONDS)
    at = path.read_bytes().find(text)
    _turn_bit(path, at)
    _sink(flow, "resume")
    yield
    _turn_bit(path, at)


@contextlib.contextmanager
def aborted_transactions(flow):
    """Others write into the topic by transactions: some commit, some abort, and one is left open until its time is over."""
    writer = confluent_kafka.Producer({"bootstrap.servers": flow.cluster.bootstrap, "transactional.id": flow.topic, "log_level": 0})
    writer.init_transactions(30)
    for number in range(20):
        writer.begin_transaction()
        for each in range(5):
            writer.produce(flow.topic, b"transaction %d: %d" % (number, each))
        if number % 2:
            writer.abort_transaction(30)
        else:
            writer.commit_transaction(30)
            flow.expects |= {b"transaction %d: %d" % (number, each) for each in range(5)}
    config = {"bootstrap.servers": flow.cluster.bootstrap, "transactional.id": f"{flow.topic}-dies", "transaction.timeout.ms": 3000, "log_level": 0}
    dies = confluent_kafka.Producer(config)
    dies.init_transactions(30)
    dies.begin_transaction()
    dies.produce(flow.topic, b"never committed")
    dies.flush(30)
    yield


@contextlib.contextmanager
def log_start_moved(flow):
    """Records that the sink had not read yet are deleted: they are gone, and nothing else is."""
    read = _read_and_paused(flow)
    flow._until(lambda: _offset(flow, OffsetSpec.latest()) > read + 2000, "more records", MOVES_SECONDS)
    flow.cluster.admin.delete_records([TopicPartition(flow.topic, 0, read + 1500)])[TopicPartition(flow.topic, 0)].result(20)
    flow.gone = set(range(read, read + 1500))
    _sink(flow, "resume")
    yield


@contextlib.contextmanager
def retention_overtakes(flow):
    """Segments that the sink had not read yet are older than retention.ms: they are gone, and nothing else is."""
    read = _read_and_paused(flow)
    _alter(flow, "segment.ms", "500")
    flow._until(lambda: _offset(flow, OffsetSpec.latest()) > read + 2000, "more records", MOVES_SECONDS)
    _alter(flow, "retention.ms", "1")
    flow._until(lambda: _offset(flow, OffsetSpec.earliest()) > read + 1000, "fewer records", MOVES_SECONDS)
    _alter(flow, "retention.ms", "-1")
    starts = [0]

    def stays():
        starts.append(_offset(flow, OffsetSpec.earliest()))
        return starts[-1] == starts[-2] > 0 or time.sleep(2)

    flow._until(stays, "a start that stays", MOVES_SECONDS)
    flow.gone = set(range(read, starts[-1]))
    _sink(flow, "resume")
    yield


def _read_and_paused(flow):
    """How many lines the sink has read, which is paused now."""
    _sink(flow, "pause")
    flow._until(lambda: "PAUSED" in flow.states(), "a paused sink", MOVES_SECONDS)
    flow._until(flow.rests, "a sink at rest", MOVES_SECONDS)
    return len(flow.sink.read_bytes().splitlines())


def _offset(flow, which):
    """-1 while the client knows no leader."""
    partition = TopicPartition(flow.topic, 0)
    try:
        return flow.cluster.admin.list_offsets({partition: which})[partition].result(20).offset
    except KafkaException:
        return -1


def _alter(flow, name, value):
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource_ = ConfigResource(ResourceType.TOPIC, flow.topic, incremental_configs=[entry])
    flow.cluster.admin.incremental_alter_configs([resource_])[resource_].result(20)


def _sink(flow, act):
    flow.lab.ask("PUT", f"/connectors/{flow.topic}-sink/{act}")


def _turn_bit(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


@dataclasses.dataclass
class Fault:
    happens: object
    told: str = ""  # what the worker's log or a status says of it, as a pattern
    goes_on: bool = False  # whether lines come through while it lasts
    brokers: int = 1  # how many it takes
    topic: dict = dataclasses.field(default_factory=dict)
    sink: dict = dataclasses.field(default_factory=dict)
    least: float = 0  # seconds that it has to last to be felt
    least_long: float = 0  # where Java's default timeouts are to be felt

    def through(self, stage, name, seconds):
        """(Verdict, seconds until the sink moved again, what the worker told) of a flow through this fault."""
        with Flow(stage, re.sub("[^a-z]+", "-", name), self.topic, **self.sink) as flow:
            with self.happens(flow):
                began = time.monotonic()
                line = flow.tells(self.told) if self.told else ""
                if self.goes_on and len(stage.cluster.brokers) >= 3:
                    flow.goes_on()
                time.sleep(max(0, began + max(seconds, self.least) - time.monotonic()))
            again = flow.goes_on()
            verdict = flow.judge()
            stage.cluster.wait_until_whole()
            return verdict, again, line


TRIED_AGAIN = "failed and is retried"
FAULTS = {
    "the leader is stopped": Fault(stopped, TRIED_AGAIN, goes_on=True),
    "the leader is killed": Fault(killed, TRIED_AGAIN, goes_on=True),
    "the leader stands still": Fault(frozen, TRIED_AGAIN, goes_on=True, least=4, least_long=60),
    "the leader's disk is full": Fault(disk_full, TRIED_AGAIN, goes_on=True),
    "the leader is moved": Fault(leader_moved, brokers=3),
    "the topic is recreated": Fault(made_anew, "deleted and recreated|is deleted; the offset"),
    "the network is slow": Fault(slow_network, goes_on=True),
    "the network cuts": Fault(cut_network, TRIED_AGAIN, goes_on=True),
    "the network is silent": Fault(silent_network, TRIED_AGAIN, least=4, least_long=60),
    "the network garbles": Fault(garbling_network, TRIED_AGAIN, goes_on=True),
    "too few replicas": Fault(not_enough_replicas, "NOT_ENOUGH_REPLICAS", brokers=3),
    "a line is too large": Fault(too_large, "FAILED.*RecordTooLarge", topic={"max.message.bytes": "4000"}),
    "a record is corrupt": Fault(corrupt, "are corrupt"),
    "transactions abort": Fault(aborted_transactions, sink={"consumer.override.isolation.level": "read_committed"}),
    "the log's start moves": Fault(log_start_moved, "no longer in the log"),
    "retention overtakes the sink": Fault(retention_overtakes, "no longer in the log"),
}
