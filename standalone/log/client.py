"""A cluster's metadata and requests to it: bootstrap, metadata, retries, over connections that all clients share.

    Clusters   one Cluster for all clients of the process with the same configuration
    Cluster    nodes, topics, leaders; `request` for small requests; `connect` for a dedicated data connection
    Connection (connection.py) frames to and from one broker
"""

import dataclasses
import random
import socket
import threading

from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataRequest

from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, disconnected, is_retriable, java_class, timed_out
from standalone.log.client_config import ClientConfig
from standalone.log.connection import Connection
from standalone.log.retry import Backoff
from standalone.log.security import Credentials
from standalone.log.steps import Wait, finish

__all__ = ["Backoff", "Cluster", "Clusters", "Connection", "Leader", "Node", "Partition", "Topic"]

NO_LEADER = -1
MOST_IDLE_CONNECTIONS = 4  # per broker; concurrent requests open more


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
    leader: int  # node id, -1 if there is none
    epoch: int
    replicas: tuple
    in_sync: tuple


@dataclasses.dataclass(frozen=True)
class Topic:
    name: str
    id: object  # uuid.UUID
    internal: bool
    error_code: int
    partitions: dict  # index -> Partition, sorted
    fetched_at: float


class Clusters:
    """One cluster per distinct set of connection settings, so that fifty connectors do not bootstrap fifty times.

    `get` returns a view for one client: its requests carry its client.id, everything else is shared.
    """

    def __init__(self, clock):
        self._clock, self._clusters, self._lock = clock, {}, threading.Lock()

    def get(self, config):
        config = ClientConfig.of(config)
        with self._lock:
            identity = config.connection_identity()
            if identity not in self._clusters:
                self._clusters[identity] = Cluster(config, self._clock)
            return self._clusters[identity].of_client(config["client.id"])

    def close(self):
        with self._lock:
            for cluster in self._clusters.values():
                cluster.close()
            self._clusters.clear()


class _Shared:
    """The metadata and connections that all clients of a cluster share, guarded by its lock."""

    def __init__(self, config, clock):
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.cluster_id = None
        self.controller = None
        self.nodes = {}  # id -> Node
        self.topics = {}  # name -> Topic
        self.features = {}  # name -> level of the enabled features
        self.idle = {}  # (host, port) -> [Connection], most recently used last
        self.failed = {}  # (host, port) -> (Backoff, earliest next attempt, last error)
        self.credentials = Credentials(config, clock)
        self.bootstrap = None  # resolved bootstrap addresses


class Cluster:
    """Thread-safe. It makes no connection before the first call that needs one.

    A method named in -ing returns steps (steps.py); the method without -ing waits for the same result.
    """

    def __init__(self, config, clock, shared=None, client_id=None):
        self.config = ClientConfig.of(config)
        self.clock = clock
        self.client_id = self.config["client.id"] if client_id is None else client_id
        if not self.config["bootstrap.servers"]:
            raise ConfigError.of({"bootstrap.servers": "missing: no broker to begin with"})
        self.shared = shared or _Shared(self.config, clock)

    def of_client(self, client_id):
        """The same cluster for a client with this client.id."""
        return self if client_id == self.client_id else Cluster(self.config, self.clock, self.shared, client_id)

    # ---- metadata

    def topic(self, name, *, create=False, timeout=None):
        """Return a topic's metadata; fetch it if unknown or stale. Wait for a topic that is being created.

        Raises LogRetriableError if it does not exist in time, LogFatalError if it is forbidden or its name is invalid.
        """
        known = self.shared.topics.get(name)
        if known is not None and self._fresh(known):
            return known
        deadline = self._deadline(timeout)
        backoff = Backoff(self.config, "retry.backoff")
        while True:
            found = self.refresh([name], create=create, timeout=self._left(deadline)).get(name)
            if found is not None and not found.error_code:
                return found
            code = found.error_code if found is not None else codes.UNKNOWN_TOPIC_OR_PARTITION
            pause = backoff.next()
            if not is_retriable(code) or (code == codes.UNKNOWN_TOPIC_OR_PARTITION and not create) or self._left(deadline) < pause:
                raise broker_error(code, f"Asking for topic '{name}'")
            self.pause(pause)

    def partitions(self, name, *, create=False, timeout=None):
        """The indexes of a topic's partitions, sorted."""
        return list(self.topic(name, create=create, timeout=timeout).partitions)

    def leader(self, name, partition):
        """Return a partition's Leader from cached metadata, or None."""
        topic = self.shared.topics.get(name)
        found = topic.partitions.get(partition) if topic is not None else None
        node = self.shared.nodes.get(found.leader) if found is not None else None
        return Leader(node, found.epoch) if node is not None else None

    def known_topic(self, name):
        """Like `topic`, from the cache only: None if unknown or stale."""
        known = self.shared.topics.get(name)
        return known if known is not None and self._fresh(known) else None

    def topics(self, timeout=None):
        """Return {name: Topic} of all topics, including internal ones; always fetched."""
        return self.refresh(None, timeout=timeout)

    def node(self, node_id):
        """A Node by its id, or None."""
        return self.shared.nodes.get(node_id)

    def nodes(self):
        return list(self.shared.nodes.values())

    def cluster_id(self, timeout=None):
        """The cluster's id; fetched once."""
        if self.shared.cluster_id is None:
            self.refresh([], timeout=timeout)
        return self.shared.cluster_id

    @property
    def known_cluster_id(self):
        """Like `cluster_id`, from the cache only."""
        return self.shared.cluster_id

    def controller(self, timeout=None):
        """The controller, the Node that changes topics."""
        if self.shared.controller not in self.shared.nodes:
            self.refresh([], timeout=timeout)
        return self.shared.nodes.get(self.shared.controller)

    def coordinator(self, group, timeout=None):
        """The coordinator of a consumer group; wait while the brokers elect one."""
        return finish(self.finding_coordinator(group, timeout), self.clock, self.pause)

    def finding_coordinator(self, group, timeout=None, kind=CoordinatorType.GROUP):
        deadline = self._deadline(timeout)
        backoff = Backoff(self.config, "retry.backoff")
        while True:
            message = FindCoordinatorRequest(key=group, key_type=kind, coordinator_keys=[group])
            answer = yield from self.requesting(message, timeout=self._left(deadline))
            found = answer.coordinators[0] if answer.coordinators else answer  # a list since version 4
            if not found.error_code:
                node = Node(found.node_id, found.host, found.port)
                with self.shared.lock:
                    self.shared.nodes.setdefault(node.id, node)
                return node
            pause = backoff.next()
            if not is_retriable(found.error_code) or self._left(deadline) < pause:
                what = "group" if kind == CoordinatorType.GROUP else "transactional id"
                raise broker_error(found.error_code, f"Finding the coordinator of {what} '{group}'", found.error_message)
            yield Wait(None, 0, self.clock.monotonic() + pause)

    def refresh(self, topics, *, create=False, timeout=None, wait_for_brokers=True):
        """Fetch metadata: of topics by name, of the nodes only ([]), or of all topics (None). Return {name: Topic}, including errors."""
        return finish(self.refreshing(topics, create=create, timeout=timeout, wait_for_brokers=wait_for_brokers), self.clock, self.pause)

    def refreshing(self, topics, *, create=False, timeout=None, wait_for_brokers=True):
        named = topics and [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        message = MetadataRequest(topics=named, allow_auto_topic_creation=create)
        answer = yield from self.requesting(message, timeout=timeout, wait_for_brokers=wait_for_brokers)
        return self._learn(answer, everything=topics is None)

    def forget(self, name):
        """Invalidate a topic's metadata: fetch it before the next use."""
        with self.shared.lock:
            self.shared.topics.pop(name, None)

    def _learn(self, answer, everything):
        now = self.clock.monotonic()
        found = {topic.name: _topic(topic, now) for topic in answer.topics or () if topic.name is not None}
        shared = self.shared
        with shared.lock:
            if answer.brokers:
                shared.nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
            shared.controller = answer.controller_id
            shared.cluster_id = answer.cluster_id
            known = shared.topics
            if everything:
                shared.topics = {}
            for name, topic in found.items():
                if topic.error_code:
                    shared.topics.pop(name, None)
                else:
                    shared.topics[name] = found[name] = _with_newest_leaders(topic, known.get(name))
        return found

    def _fresh(self, topic):
        return self.clock.monotonic() - topic.fetched_at < self.config.seconds("metadata.max.age.ms")

    # ---- requests

    def request(self, message, node=None, timeout=None, repeat=True, ceiling=None, wait_for_brokers=True):
        """Send a kafka-python message to a node (a Node, its id, or None for any) and wait for the response.

        A failed connection attempt is retried until the timeout. So is a request whose connection is lost, unless repeat=False: then the broker
        may or may not have processed it, and the error is raised. With wait_for_brokers=False an error is raised at once if no broker is
        reachable. `ceiling` caps the version.
        """
        return finish(self.requesting(message, node, timeout, repeat, ceiling, wait_for_brokers), self.clock, self.pause)

    def requesting(self, message, node=None, timeout=None, repeat=True, ceiling=None, wait_for_brokers=True):
        limit = timeout if timeout is not None else self.config.seconds("request.timeout.ms")
        deadline = self._deadline(timeout)
        backoff, pause = Backoff(self.config, "retry.backoff"), 0.0
        while True:
            connection = yield from self._borrow(node, deadline, wait_for_brokers)
            try:
                seconds = min(limit, max(0.001, self._left(deadline)))
                response = yield from connection.calling(message, seconds, ceiling, self.client_id)
            except LogRetriableError:
                connection.close()
                if not repeat or self._left(deadline) <= pause:
                    raise
                if pause:
                    yield Wait(None, 0, self.clock.monotonic() + pause)
                pause = backoff.next()  # the first retry has no pause: an idle connection may just have been closed
                continue
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return response

    def connect(self, node, timeout=None):
        """Open a new connection to a node (a Node or its id), owned by the caller. One attempt, without backoff."""
        return finish(self.connecting(node, timeout), self.clock)

    def connecting(self, node, timeout=None):
        node = self._node(node)
        yield from ()  # makes this a generator, so that the error is raised by its steps
        return (yield from self._opening(_address(node), timeout))

    def _opening(self, address, timeout):
        steps = Connection.opening(*address, self.config, self.clock, timeout, client_id=self.client_id, credentials=self.shared.credentials)
        opened = yield from steps
        self.shared.features = opened.features
        return opened

    def feature(self, name):
        """The enabled level of a feature, as reported by the broker last connected to; 0 if disabled."""
        return self.shared.features.get(name, 0)

    def pause(self, seconds):
        """Wait between attempts; `close` interrupts it."""
        self.clock.wait(self.shared.closed, seconds)

    def close(self):
        """Close idle connections; requests in flight and later ones fail."""
        self.shared.closed.set()
        with self.shared.lock:
            idle, self.shared.idle = self.shared.idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _borrow(self, node, deadline, wait_for_brokers):
        """Return an unused connection to the node, or to any broker."""
        while True:
            if self.shared.closed.is_set():
                raise LogFatalError("The client is closed.", java_class("InterruptException"))
            addresses = self._candidates() if node is None else [_address(self._node(node))]
            for address in addresses:
                if connection := self._take_idle(address):
                    return connection
            for address in addresses:
                if connection := (yield from self._open(address, deadline)):
                    return connection
            until = self._next_attempt(addresses)
            if not wait_for_brokers or deadline < until:
                raise self._unreachable(addresses)
            yield Wait(None, 0, until)

    def _candidates(self):
        """Known nodes in random order, then the bootstrap servers, in case all nodes moved. Addresses that failed come last."""
        with self.shared.lock:
            known = [_address(node) for node in self.shared.nodes.values()]
            failed = set(self.shared.failed)
        random.shuffle(known)
        if not known or self.config["metadata.recovery.strategy"] == "rebootstrap":
            known += self._bootstrap()
        return sorted(dict.fromkeys(known), key=failed.__contains__)

    def _bootstrap(self):
        servers = self.config["bootstrap.servers"]
        if self.config["client.dns.lookup"] != "resolve_canonical_bootstrap_servers_only":
            return servers
        if self.shared.bootstrap is None:
            self.shared.bootstrap = [each for server in servers for each in _canonical(*server)]
        return self.shared.bootstrap

    def _take_idle(self, address):
        while True:
            with self.shared.lock:
                waiting = self.shared.idle.get(address)
                connection = waiting.pop() if waiting else None
            if connection is None:
                return None
            if connection.stale or connection.wait_readable(0):  # readable without a request: the broker closed it
                connection.close()
                continue
            return connection

    def _open(self, address, deadline):
        """Steps to a new connection; to None if that fails or is in backoff."""
        now = self.clock.monotonic()
        with self.shared.lock:
            backoff, not_before, _ = self.shared.failed.get(address) or (Backoff(self.config, "reconnect.backoff"), now, None)
        if now < not_before:
            return None
        setup = min(self.config.seconds("socket.connection.setup.timeout.ms"), max(0.05, self._left(deadline)))
        try:
            connection = yield from self._opening(address, setup)
        except LogRetriableError as problem:
            with self.shared.lock:
                self.shared.failed[address] = (backoff, self.clock.monotonic() + backoff.next(), str(problem))
            return None
        with self.shared.lock:
            self.shared.failed.pop(address, None)
        return connection

    def _next_attempt(self, addresses):
        """When one of the addresses may be tried again."""
        now = self.clock.monotonic()
        with self.shared.lock:
            return max(now + 0.001, min(self.shared.failed.get(address, (None, now))[1] for address in addresses))

    def _unreachable(self, addresses):
        names = ", ".join(f"{host}:{port}" for host, port in addresses)
        with self.shared.lock:
            why = " ".join(self.shared.failed[address][2] for address in addresses if address in self.shared.failed)
        return timed_out(f"No broker answers at {names}. {why} Is it running, and is bootstrap.servers correct?")

    def _give_back(self, connection):
        with self.shared.lock:
            waiting = self.shared.idle.setdefault((connection.host, connection.port), [])
            if not self.shared.closed.is_set() and len(waiting) < MOST_IDLE_CONNECTIONS:
                waiting.append(connection)
                return
        connection.close()

    def _node(self, node):
        found = node if isinstance(node, Node) else self.shared.nodes.get(node)
        if found is None:
            raise disconnected(f"Broker {node} is not one of the {len(self.shared.nodes)} brokers in the cluster's metadata.")
        return found

    def _deadline(self, timeout):
        return self.clock.monotonic() + (self.config.seconds("default.api.timeout.ms") if timeout is None else timeout)

    def _left(self, deadline):
        return deadline - self.clock.monotonic()


def _address(node):
    return node.host, node.port


def _canonical(host, port):
    """Canonical names of all addresses of a host, which Kerberos requires; the host itself if they cannot be resolved."""
    try:
        found = {item[4] for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        return sorted({(socket.getnameinfo(address, 0)[0], port) for address in found})
    except OSError:
        return [(host, port)]


def _with_newest_leaders(topic, known):
    """Return the topic; if a lagging broker reported outdated leaders, keep the newer known ones (KIP-320)."""
    if known is None or known.id != topic.id:
        return topic
    older = {index for index, part in topic.partitions.items() if index in known.partitions and part.epoch < known.partitions[index].epoch}
    if not older or any(part.epoch < 0 for part in topic.partitions.values()):
        return topic
    return dataclasses.replace(topic, partitions={n: known.partitions[n] if n in older else part for n, part in topic.partitions.items()})


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
