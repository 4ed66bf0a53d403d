"""A worker of the tests' own, in this process, on an embedded log with a free port; and a stock client to look at its topics."""

import time

from confluent_kafka import Consumer, TopicPartition

from standalone.runtime.process import Process

STRING = "org.apache.kafka.connect.storage.StringConverter"


def wait_for(condition, seconds=15, what=""):
    """Return what the condition returns once that is true; fail at the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what or condition}"
        time.sleep(0.01)
    return found


class LocalWorker:
    """`with LocalWorker(tmp_path) as worker:` … the same folder again is a restart."""

    def __init__(self, folder, **props):
        self.folder = folder
        self.props = {
            "bootstrap.servers": "embedded",
            "embedded.log.listener": "127.0.0.1:0",
            "listeners": "http://127.0.0.1:0",
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": str(folder / "connect.offsets"),
            "offset.flush.interval.ms": "200",
            "spark.start": "lazy",
            "pipeline.engine": "rows",
            **{key.replace("__", "."): str(value) for key, value in props.items()},
        }
        self.process = Process()

    def __enter__(self):
        try:
            self.process.open(self.props)
        except BaseException:
            self.process.close()
            raise
        self.process.create_connectors([])
        return self

    def __exit__(self, *_):
        self.process.close()

    @property
    def herder(self):
        return self.process.herder

    @property
    def bootstrap(self):
        return self.process.worker.bootstrap

    def source(self, name, file, topic, **config):
        return self.herder.create(
            name, {"connector.class": "FileStreamSource", "file": str(file), "topic": topic, **_keys(config)}
        )

    def sink(self, name, file, topics, **config):
        return self.herder.create(name, {"connector.class": "FileStreamSink", "file": str(file), "topics": topics, **_keys(config)})

    def states(self, name):
        status = self.herder.status(name)
        return [status["connector"]["state"]] + [task["state"] for task in status["tasks"]]

    def wait_states(self, name, *states, seconds=15):
        wait_for(lambda: self.states(name) == list(states), seconds, f"{name} to be {states}, not {self.states(name)}")

    def values(self, topic, count, seconds=15):
        return values(self.bootstrap, topic, count, seconds)


def _keys(config):
    return {key.replace("__", "."): str(value) for key, value in config.items()}


def values(bootstrap, topic, count, seconds=15):
    """The first `count` values of partition 0, as a stock client sees them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looks", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found, deadline = [], time.monotonic() + seconds
    try:
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                found.append(message.value())
    finally:
        consumer.close()
    assert len(found) == count, f"{len(found)} of {count} records in {topic}: {found[:5]}…"
    return found
