"""What is known of a cluster, and requests to it: bootstrap, metadata, retries, over connections that all clients share.

    Clusters   one Cluster for all clients of the process that are configured alike
    Cluster    nodes, topics, leaders; `request` for anything small; `connect` for a data connection of one's own
    Connection (connection.py) frames to and from one broker
"""

import dataclasses
import random
import threading

from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataRequest

from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log.broker_errors import broker_error, disconnected, is_retriable, java_class, timed_out
from standalone.log.client_config import ClientConfig
from standalone.log.connection import Connection

__all__ = ["Backoff", "Cluster", "Clusters", "Connection", "Leader", "Node", "Partition", "Topic"]

UNKNOWN_TOPIC = 3
NO_LEADER = -1
MOST_IDLE_CONNECTIONS = 4  # kept for each broker; more are opened while more requests wait at once


@dataclasses.dataclass(frozen=True)
class Node:
    id: int
    host: str
    port: int
    rack: str | None = None


@dataclasses.dataclass(frozen=True)
class Leader:
    node: Node
    epoch: int


@dataclasses.dataclass(frozen=True)
class Partition:
    index: int
    leader: int  # node id, -1 while there is none
    epoch: int
    replicas: tuple
    in_sync: tuple


@dataclasses.dataclass(frozen=True)
class Topic:
    name: str
    id: object  # uuid.UUID
    internal: bool
    error_code: int
    partitions: dict  # index -> Partition, in order
    fetched_at: float


class Backoff:
    """Ever longer pauses between attempts, with jitter, so that many clients do not come back in step."""

    def __init__(self, config, name):
        self._first, self._most = config.seconds(f"{name}.ms"), config.seconds(f"{name}.max.ms")
        self._failures = 0

    def next(self):
        """Seconds to wait before the next attempt."""
        pause = min(self._first * 2**self._failures, max(self._first, self._most))
        self._failures = min(self._failures + 1, 30)
        return pause * random.uniform(0.8, 1.2)

    def reset(self):
        self._failures = 0


class Clusters:
    """One `Cluster` for each distinct set of connection settings: fifty connectors do not make fifty bootstraps."""

    def __init__(self, clock):
        self._clock, self._clusters, self._lock = clock, {}, threading.Lock()

    def get(self, config):
        config = ClientConfig.of(config)
        with self._lock:
            identity = config.connection_identity()
            if identity not in self._clusters:
                self._clusters[identity] = Cluster(config, self._clock)
            return self._clusters[identity]

    def close(self):
        with self._lock:
            for cluster in self._clusters.values():
                cluster.close()
            self._clusters.clear()


class Cluster:
    """Thread-safe. Nothing is asked of the network before the first call that needs it."""

    def __init__(self, config, clock):
        self.config = ClientConfig.of(config)
        self.clock = clock
        self._cluster_id = None
        if not self.config["bootstrap.servers"]:
            raise ConfigError.of({"bootstrap.servers": "missing: no broker to begin with"})
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._nodes = {}  # id -> Node
        self._controller = None
        self._topics = {}  # name -> Topic
        self._idle = {}  # (host, port) -> [Connection], the last used at the end
        self._failed = {}  # (host, port) -> (Backoff, not before, the last reason)

    # ---- what is known

    def topic(self, name, *, create=False, timeout=None):
        """What is known of a topic, asked for if it is not known or old. Waits for one that comes into being.

        Raises LogRetriableError where it does not exist in time, LogFatalError where it is forbidden or no valid name.
        """
        known = self._topics.get(name)
        if known is not None and self._fresh(known):
            return known
        deadline = self._deadline(timeout)
        backoff = Backoff(self.config, "retry.backoff")
        while True:
            found = self.refresh([name], create=create, timeout=self._left(deadline)).get(name)
            if found is not None and not found.error_code:
                return found
            code = found.error_code if found is not None else UNKNOWN_TOPIC
            pause = backoff.next()
            if not is_retriable(code) or (code == UNKNOWN_TOPIC and not create) or self._left(deadline) < pause:
                raise broker_error(code, f"Asking for topic '{name}'")
            self.pause(pause)

    def partitions(self, name, *, create=False, timeout=None):
        """The indexes of a topic's partitions, in order."""
        return list(self.topic(name, create=create, timeout=timeout).partitions)

    def leader(self, name, partition):
        """Who leads a partition by what is known now, without asking: a Leader, or None."""
        topic = self._topics.get(name)
        found = topic.partitions.get(partition) if topic is not None else None
        node = self._nodes.get(found.leader) if found is not None else None
        return Leader(node, found.epoch) if node is not None else None

    def known_topic(self, name):
        """As `topic`, without asking: None where it is not known or too old to be trusted."""
        known = self._topics.get(name)
        return known if known is not None and self._fresh(known) else None

    def topics(self, timeout=None):
        """{name: Topic} of every topic there is, internal ones too; always asked."""
        return self.refresh(None, timeout=timeout)

    def node(self, node_id):
        """A Node by its id, or None."""
        return self._nodes.get(node_id)

    def nodes(self):
        return list(self._nodes.values())

    def cluster_id(self, timeout=None):
        """The name that the cluster gave itself; asked for once."""
        if self._cluster_id is None:
            self.refresh([], timeout=timeout)
        return self._cluster_id

    def controller(self, timeout=None):
        """The Node that takes changes to topics."""
        if self._controller not in self._nodes:
            self.refresh([], timeout=timeout)
        return self._nodes.get(self._controller)

    def coordinator(self, group, timeout=None):
        """The Node that coordinates a consumer group; waits while one is being found."""
        deadline = self._deadline(timeout)
        backoff = Backoff(self.config, "retry.backoff")
        while True:
            message = FindCoordinatorRequest(key=group, key_type=CoordinatorType.GROUP, coordinator_keys=[group])
            answer = self.request(message, timeout=self._left(deadline))
            found = answer.coordinators[0] if answer.coordinators else answer  # a list since version 4
            if not found.error_code:
                node = Node(found.node_id, found.host, found.port)
                with self._lock:
                    self._nodes.setdefault(node.id, node)
                return node
            pause = backoff.next()
            if not is_retriable(found.error_code) or self._left(deadline) < pause:
                raise broker_error(found.error_code, f"Finding the coordinator of group '{group}'", found.error_message)
            self.pause(pause)

    def refresh(self, topics, *, create=False, timeout=None, patient=True):
        """Ask for topics by name, [] for the nodes alone, None for all topics; {name: Topic}, errors among them."""
        named = topics and [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        answer = self.request(MetadataRequest(topics=named, allow_auto_topic_creation=create), timeout=timeout, patient=patient)
        return self._learn(answer, everything=topics is None)

    def forget(self, name):
        """What is known of a topic proved wrong: ask before the next use."""
        with self._lock:
            self._topics.pop(name, None)

    def _learn(self, answer, everything):
        now = self.clock.monotonic()
        found = {topic.name: _topic(topic, now) for topic in answer.topics if topic.name is not None}
        with self._lock:
            if answer.brokers:
                self._nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
            self._controller = answer.controller_id
            self._cluster_id = answer.cluster_id
            if everything:
                self._topics = {}
            for name, topic in found.items():
                if topic.error_code:
                    self._topics.pop(name, None)
                else:
                    self._topics[name] = topic
        return found

    def _fresh(self, topic):
        return self.clock.monotonic() - topic.fetched_at < self.config.seconds("metadata.max.age.ms")

    # ---- requests

    def request(self, message, node=None, timeout=None, repeat=True, ceiling=None, patient=True):
        """Send a message of kafka-python's to a node (a Node or its id; None: any) and wait for its answer.

        A connection that fails to open is tried again until the timeout. One that is lost underway, too, unless
        repeat=False: then the request may or may not have been done, and the caller is told. patient=False: where nobody can be
        reached now, that is an error at once. `ceiling` caps the version.
        """
        limit = timeout if timeout is not None else self.config.seconds("request.timeout.ms")
        deadline = self._deadline(timeout)
        while True:
            connection = self._borrow(node, deadline, patient)
            try:
                response = connection.call(message, min(limit, max(0.001, self._left(deadline))), ceiling)
            except LogRetriableError:
                connection.close()
                if not repeat or self._left(deadline) <= 0:
                    raise
                continue
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return response

    def connect(self, node, timeout=None):
        """A new connection to a node (a Node or its id) that belongs to the caller. One attempt; no pause is kept."""
        node = self._node(node)
        return Connection(node.host, node.port, self.config, self.clock, timeout)

    def pause(self, seconds):
        """Between attempts; `close` ends it."""
        self.clock.wait(self._closed, seconds)

    def close(self):
        """Close what is idle; requests underway fail, and so does every later one."""
        self._closed.set()
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _borrow(self, node, deadline, patient):
        """A connection that nobody uses, to the node or to whichever answers."""
        while True:
            if self._closed.is_set():
                raise LogFatalError("The client is closed.", java_class("InterruptException"))
            addresses = self._candidates() if node is None else [_address(self._node(node))]
            for address in addresses:
                if connection := self._take_idle(address):
                    return connection
            for address in addresses:
                if connection := self._open(address, deadline):
                    return connection
            pause = self._until_next_attempt(addresses)
            if not patient or self._left(deadline) < pause:
                raise self._unreachable(addresses)
            self.pause(pause)

    def _candidates(self):
        """Addresses of known nodes in random order, then the bootstrap servers: they hold even if all nodes moved."""
        with self._lock:
            known = [_address(node) for node in self._nodes.values()]
        random.shuffle(known)
        return list(dict.fromkeys(known + self.config["bootstrap.servers"]))

    def _take_idle(self, address):
        while True:
            with self._lock:
                waiting = self._idle.get(address)
                connection = waiting.pop() if waiting else None
            if connection is None:
                return None
            if connection.stale or connection.wait_readable(0):  # readable with nothing asked: the other side hung up
                connection.close()
                continue
            return connection

    def _open(self, address, deadline):
        """A new connection; None where that fails, or failed a moment ago."""
        now = self.clock.monotonic()
        with self._lock:
            backoff, not_before, _ = self._failed.get(address) or (Backoff(self.config, "reconnect.backoff"), now, None)
        if now < not_before:
            return None
        setup = min(self.config.seconds("socket.connection.setup.timeout.ms"), max(0.05, self._left(deadline)))
        try:
            connection = Connection(*address, self.config, self.clock, timeout=setup)
        except LogRetriableError as problem:
            with self._lock:
                self._failed[address] = (backoff, self.clock.monotonic() + backoff.next(), str(problem))
            return None
        with self._lock:
            self._failed.pop(address, None)
        return connection

    def _until_next_attempt(self, addresses):
        now = self.clock.monotonic()
        with self._lock:
            return max(0.001, min(self._failed.get(address, (None, now))[1] for address in addresses) - now)

    def _unreachable(self, addresses):
        names = ", ".join(f"{host}:{port}" for host, port in addresses)
        with self._lock:
            why = " ".join(self._failed[address][2] for address in addresses if address in self._failed)
        return timed_out(f"No broker answers at {names}. {why} Is it running, and is bootstrap.servers right?")

    def _give_back(self, connection):
        with self._lock:
            waiting = self._idle.setdefault((connection.host, connection.port), [])
            if not self._closed.is_set() and len(waiting) < MOST_IDLE_CONNECTIONS:
                waiting.append(connection)
                return
        connection.close()

    def _node(self, node):
        found = node if isinstance(node, Node) else self._nodes.get(node)
        if found is None:
            raise disconnected(f"Broker {node} is not among the {len(self._nodes)} that the cluster names.")
        return found

    def _deadline(self, timeout):
        return self.clock.monotonic() + (self.config.seconds("default.api.timeout.ms") if timeout is None else timeout)

    def _left(self, deadline):
        return deadline - self.clock.monotonic()


def _address(node):
    return node.host, node.port


def _topic(topic, now):
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return Topic(
        topic.name,
        topic.topic_id,
        topic.is_internal,
        topic.error_code,
        {
            p.partition_index: Partition(p.partition_index, p.leader_id, p.leader_epoch, tuple(p.replica_nodes), tuple(p.isr_nodes))
            for p in partitions
        },
        now,
    )
