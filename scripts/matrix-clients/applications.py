"""Whole applications of Kafka's own on one log: Connect's distributed worker, Streams' word count, MirrorMaker 2."""

import contextlib
import json
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from shell import Failed, same

SECONDS = 120
STRING = "org.apache.kafka.connect.storage.StringConverter"


class Applications:
    def __init__(self, jars, options, free_port):
        self._java = ["java", "-Xmx384m", *options, "-cp", f"{jars}/*"]
        self._free_port = free_port

    @contextlib.contextmanager
    def _running(self, folder, main, *arguments):
        with open(folder / f"{main}.log", "w") as log:
            process = subprocess.Popen([*self._java, main, *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield lambda: process.poll() is None or _fail(f"{main} ended: {(folder / f'{main}.log').read_text()[-400:]}")
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def distributed(self, bootstrap, topic):
        """Two connectors, file -> topic -> file, on a worker that keeps its state in topics; it is stopped and started in the middle."""
        with _folder() as folder:
            port = self._free_port()
            internal = {f"{name}.storage.topic": f"{topic}-{name}" for name in ("config", "offset", "status")}
            factors = {f"{name}.storage.replication.factor": 1 for name in ("config", "offset", "status")}
            _properties(folder / "worker.properties", {
                "bootstrap.servers": bootstrap, "group.id": f"{topic}-workers", "key.converter": STRING, "value.converter": STRING,
                **internal, **factors,
                "listeners": f"http://127.0.0.1:{port}", "offset.flush.interval.ms": 1000, "plugin.discovery": "service_load",
            })  # fmt: skip
            source, sink = folder / "in.txt", folder / "out.txt"
            configs = {
                "in": {"connector.class": "FileStreamSource", "file": str(source), "topic": topic, "tasks.max": "1"},
                "out": {"connector.class": "FileStreamSink", "file": str(sink), "topics": topic, "tasks.max": "2"},
            }
            wanted = []
            for turn in range(2):
                wanted += [f"line {turn} {number}" for number in range(500)]
                with self._running(folder, "org.apache.kafka.connect.cli.ConnectDistributed", folder / "worker.properties") as lives:
                    _until(lambda: lives() and _ask(port, "/connectors") is not None, "the worker serves")
                    if not turn:
                        for name, config in configs.items():
                            body = {"name": name, "config": config}
                            _until(lambda body=body: _ask(port, "/connectors", body), f"connector {name} is made")
                    source.write_text("".join(f"{line}\n" for line in wanted))
                    _until(lambda: lives() and sink.exists() and len(sink.read_text().splitlines()) >= len(wanted), "all lines are through")
                    same("lines", wanted, sink.read_text().splitlines())

    def streams(self, bootstrap, topic):
        """Kafka's own word count: state stores, changelog and repartition topics, a table's updates."""
        with _folder() as folder:
            admin = AdminClient({"bootstrap.servers": bootstrap})
            names = ("streams-plaintext-input", "streams-wordcount-output")
            topics = [NewTopic(names[0], 1, 1), NewTopic(names[1], 1, 1, config={"cleanup.policy": "compact"})]
            for future in admin.create_topics(topics).values():
                future.result(30)
            _send(bootstrap, names[0], ["all streams lead to Kafka", "hello Kafka streams"])
            settings = {"bootstrap.servers": bootstrap, "state.dir": folder / "state", "application.id": f"{topic}-words"}
            _properties(folder / "streams.properties", settings)
            with self._running(folder, "org.apache.kafka.streams.examples.wordcount.WordCountDemo", folder / "streams.properties") as lives:
                _send(bootstrap, names[0], ["join Kafka summit"])
                counts = {"all": 1, "streams": 2, "lead": 1, "to": 1, "kafka": 3, "hello": 1, "join": 1, "summit": 1}
                found = {}

                def counted():
                    lives()
                    found.update((key.decode(), int.from_bytes(value, "big")) for key, value in _read(bootstrap, names[1], 1))
                    return found == counts

                _until(counted, lambda: f"words are counted: {found}")
            for future in admin.delete_topics(list(names)).values():
                future.result(30)

    def mirror(self, source, target, topic):
        """MirrorMaker 2 from one log to another: records, topic's configs, a group's offsets."""
        with _folder() as folder:
            there = AdminClient({"bootstrap.servers": source})
            there.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "123456789"})])[topic].result(30)
            lines = [f"line {number}" for number in range(500)]
            _send(source, topic, lines)
            same("read", 500, len(_read(source, topic, 5, group=f"{topic}-group")))
            _properties(folder / "mm2.properties", {
                "clusters": "one, two", "one.bootstrap.servers": source, "two.bootstrap.servers": target,
                "one->two.enabled": "true", "two->one.enabled": "false",
                "one->two.topics": topic, "one->two.groups": f"{topic}-group", "replication.factor": 1, "checkpoints.topic.replication.factor": 1,
                "heartbeats.topic.replication.factor": 1, "offset-syncs.topic.replication.factor": 1, "offset.storage.replication.factor": 1,
                "status.storage.replication.factor": 1, "config.storage.replication.factor": 1, "emit.checkpoints.interval.seconds": 1,
                "sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": 1, "offset.lag.max": 0,
                "refresh.topics.interval.seconds": 5,
                "dedicated.mode.enable.internal.rest": "false",
            })  # fmt: skip
            admin = AdminClient({"bootstrap.servers": target})
            with self._running(folder, "org.apache.kafka.connect.mirror.MirrorMaker", folder / "mm2.properties") as lives:
                _until(lambda: lives() and f"one.{topic}" in admin.list_topics(timeout=10).topics, "the topic is mirrored")

                def mirrored():
                    lives()
                    return sorted(value.decode() for _, value in _read(target, f"one.{topic}", 1)) == sorted(lines)

                _until(mirrored, "the records are mirrored, each once")
                _until(lambda: lives() and _committed(target, f"one.{topic}", f"{topic}-group") == 500, "the group's offsets are mirrored")


@contextlib.contextmanager
def _folder():
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        yield Path(folder)


def _properties(path, settings):
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _fail(message):
    raise Failed(message)


def _until(look, what, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            _fail(f"{what() if callable(what) else what}: not within {seconds} s")
        time.sleep(0.2)


def _ask(port, path, body=None):
    """What the worker answers; None while it does not."""
    data = None if body is None else json.dumps(body).encode()
    with contextlib.suppress(OSError), urllib.request.urlopen(
        urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}), timeout=10
    ) as answer:
        return json.load(answer)
    return None


def _send(bootstrap, topic, lines):
    producer = Producer({"bootstrap.servers": bootstrap})
    for line in lines:
        producer.produce(topic, line)
    same("left", 0, producer.flush(30))


def _read(bootstrap, topic, seconds, group=None):
    """(key, value) of all that comes within this many seconds of silence; with a group its offsets are committed."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group or "looks", "auto.offset.reset": "earliest", "enable.auto.commit": False,
                       "allow.auto.create.topics": False})  # fmt: skip
    reader.subscribe([topic]) if group else reader.assign(_parts(bootstrap, topic))
    found, silent = [], time.monotonic() + seconds + (5 if group else 0)
    while time.monotonic() < silent:
        for message in reader.consume(1000, 0.2):
            if message.error() is None:
                found.append((message.key(), message.value()))
                silent = time.monotonic() + seconds
    if group:
        reader.commit(asynchronous=False)
    reader.close()
    return found


def _parts(bootstrap, topic, offset=0):
    from confluent_kafka import TopicPartition

    admin = AdminClient({"bootstrap.servers": bootstrap})
    return [TopicPartition(topic, number, offset) for number in admin.list_topics(topic, timeout=10).topics[topic].partitions]


def _committed(bootstrap, topic, group):
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return sum(max(each.offset, 0) for each in reader.committed(_parts(bootstrap, topic), 10))
    finally:
        reader.close()
