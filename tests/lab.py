"""The command with its log at a known address: connectors are made by REST, and a stock client looks into the topics."""

import signal
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.command import Command
from tests.servers.kafka_broker import free_port
from tests.suite.patience import PATIENCE_SECONDS

_READER = {"group.id": "looks", "enable.auto.commit": False, "reconnect.backoff.max.ms": 200, "fetch.wait.max.ms": 50, "log_level": 0}


class Lab(Command):
    def __init__(self, folder, forks=None):
        super().__init__(folder, forks)
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self._reader = None

    def close(self):
        """No process is left, whatever happened to it."""
        if self.process is not None:
            self.stop(signal.SIGKILL)
        self._forget_reader()

    def up(self, *arguments, **props):
        """Started and healthy. `embedded__log__listener` is where its log is, unless `bootstrap__servers` is another's."""
        if "bootstrap__servers" not in props:
            props["embedded__log__listener"] = self.bootstrap
        self._forget_reader()
        stdin = {"stdin": props.pop("stdin")} if "stdin" in props else {}
        self.start(self.worker(**props), *arguments, **stdin)
        self.wait_up()
        return self

    # --- Connectors ---------------------------------------------------------------------------------------------------
    def create(self, name, **config):
        """A connector; a key that is None is left out."""
        config = {key.replace("__", "."): value for key, value in config.items() if value is not None}
        self.ask("POST", "/connectors", {"name": name, "config": config})

    def source(self, name, content=None, **config):
        """A source of a file that holds this, to the topic of its name; the file's path."""
        path = self.folder / f"{name}.txt"
        if content is not None:
            path.write_bytes(content)
        self.create(name, **{"connector.class": "FileStreamSource", "file": str(path), "topic": name, **config})
        return path

    def sink(self, name, records=(), **config):
        """A sink of the topic of its name, which holds these records; the file's path."""
        path = self.folder / f"{name}.out"
        if records:
            self.send(name, *records)
        self.create(name, **{"connector.class": "FileStreamSink", "file": str(path), "topics": name, **config})
        return path

    def status(self, name):
        status = self.get(f"/connectors/{name}/status")
        return status and {"connector": status["connector"]["state"], "tasks": [task["state"] for task in status["tasks"]]}

    def statuses(self):
        return {name: self.status(name) for name in self.get("/connectors") or ()}

    def offsets(self, name):
        return [entry["offset"] for entry in self.get(f"/connectors/{name}/offsets")["offsets"]]

    # --- Topics -------------------------------------------------------------------------------------------------------
    def send(self, topic, *records):
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for record in records:
            producer.produce(topic, record)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def messages(self, topic):
        """All that the topic's first partition holds now."""
        self._reader = self._reader or Consumer({**_READER, "bootstrap.servers": self.bootstrap})
        if topic not in self._reader.list_topics(timeout=PATIENCE_SECONDS).topics:
            return []
        _, end = self._reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_SECONDS)
        self._reader.assign([TopicPartition(topic, 0, 0)])
        return self._reader.consume(end, timeout=PATIENCE_SECONDS) if end else []

    def _forget_reader(self):
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def values(self, topic):
        """Their values as strings; bytes that are not UTF-8 stay visible."""
        return [message.value().decode(errors="surrogateescape") for message in self.messages(topic)]


def until(look, wanted):
    """What is seen at last: as soon as it is what is wanted, or when patience ends."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
