"""A real Kafka cluster, for tests of what brokers do to each other and to clients: each broker behind its own proxy.

`bootstrap` leads to the brokers themselves; `proxied` is what a client under test is given: all that it says to any of them, and hears, goes
through the `proxies`.
"""

import contextlib
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.servers.kafka_broker import KafkaBroker
from tests.servers.proxy import Proxy
from tests.servers.server import Unavailable, free_port

READY_SECONDS = 120
_FENCED_AFTER_MS = 3000


class KafkaCluster:
    def __init__(self, size=3):
        controllers = [free_port() for _ in range(size)]
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
        self.brokers = [_Node(number, port, voters, size) for number, port in enumerate(controllers, 1)]
        self.bootstrap = ",".join(broker.bootstrap for broker in self.brokers)
        self.proxied = ",".join(f"127.0.0.1:{broker.proxied_port}" for broker in self.brokers)
        self.proxies = []
        self._admin = None

    def start(self):
        try:
            for broker in self.brokers:
                broker.launch()
            self.proxies = [Proxy(broker.proxied_port, ("127.0.0.1", broker.client_port)) for broker in self.brokers]
            self.wait_until_whole()
        except Unavailable:
            self.stop()
            raise
        return self

    def stop(self):
        for proxy in self.proxies:
            proxy.__exit__()
        for broker in self.brokers:
            broker.kill()  # nobody waits for its data to be moved: it goes away with it
            broker.stop()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def wait_until_whole(self):
        """Until all brokers are there, and none is fenced: who is, is in no broker's metadata."""
        self.until(lambda: len(self._metadata().brokers) == len(self.brokers), "all brokers")

    def partition(self, topic):
        """What is known of the topic's first partition: its `leader`, `replicas` and `isrs`, by their numbers."""
        return self._metadata(topic).topics[topic].partitions[0]

    def leader(self, topic):
        """The broker that leads the topic's first partition."""
        return self.brokers[self.until(lambda: max(self.partition(topic).leader, 0), f"a leader of {topic}") - 1]

    def until(self, look, what):
        """What is seen, as soon as it is true; a cluster that is not whole answers with errors meanwhile."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(KafkaException, KeyError):
                if found := look():
                    return found
            time.sleep(0.1)
        raise Unavailable(f"{what}: not within {READY_SECONDS} s")

    @property
    def admin(self):
        """A stock client's admin: it finds its way around brokers that are away."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "socket.timeout.ms": 5000})
        return self._admin

    def _metadata(self, topic=None):
        return self.admin.list_topics(topic, timeout=5) if topic else self.admin.list_topics(timeout=5)


class _Node(KafkaBroker):
    """One broker, which is a controller too."""

    def __init__(self, number, controller_port, voters, size):
        self.number, self.proxied_port, self.client_port = number, free_port(), free_port()
        super().__init__()
        self._settings = {
            "node.id": number,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port},CLIENT://127.0.0.1:{self.client_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port},CLIENT://127.0.0.1:{self.proxied_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "default.replication.factor": size,
            "offsets.topic.replication.factor": size,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": size,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
            "replica.lag.time.max.ms": 5000,
            # Old segments go within a second, not within minutes.
            "log.initial.task.delay.ms": 500,
            "log.retention.check.interval.ms": 500,
            "broker.session.timeout.ms": _FENCED_AFTER_MS,
        }
