"""What is known of a cluster, and requests to it: bootstrap, metadata, retries, over connections that all clients share.

    Clusters   one Cluster for all clients of the process that are configured alike
    Cluster    nodes, topics, leaders; `request` for anything small; `connect` for a data connection of one's own
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


class Clusters:
    """One cluster for each distinct set of connection settings: fifty connectors do not make fifty bootstraps.

    What `get` gives is that of one client: its requests bear its client.id, everything else is shared.
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
    """What all clients of a cluster know and use together, under its lock."""

    def __init__(self, config, clock):
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.cluster_id = None
        self.controller = None
        self.nodes = {}  # id -> Node
        self.topics = {}  # name -> Topic
        self.features = {}  # name -> level, of what is turned on
        self.idle = {}  # (host, port) -> [Connection], the last used at the end
        self.failed = {}  # (host, port) -> (Backoff, not before, the last reason)
        self.credentials = Credentials(config, clock)
        self.bootstrap = None  # addresses, once they were looked up


class Cluster:
    """Thread-safe. Nothing is asked of the network before the first call that needs it.

    A method in -ing gives steps (steps.py) to what the one without it waits for.
    """

    def __init__(self, config, clock, shared=None, client_id=None):
        self.config = ClientConfig.of(config)
        self.clock = clock
        self.client_id = self.config["client.id"] if client_id is None else client_id
        if not self.config["bootstrap.servers"]:
            raise ConfigError.of({"bootstrap.servers": "missing: no broker to begin with"})
        self.shared = shared or _Shared(self.config, clock)

    def of_client(self, client_id):
        """The same cluster for a client of that client.id."""
        return self if client_id == self.client_id else Cluster(self.config, self.clock, self.shared, client_id)

    # ---- what is known

    def topic(self, name, *, create=False, timeout=None):
        """What is known of a topic, asked for if it is not known or old. Waits for one that comes into being.

        Raises LogRetriableError where it does not exist in time, LogFatalError where it is forbidden or no valid name.
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
        """The indexes of a topic's partitions, in order."""
        return list(self.topic(name, create=create, timeout=timeout).partitions)

    def leader(self, name, partition):
        """Who leads a partition by what is known now, without asking: a Leader, or None."""
        topic = self.shared.topics.get(name)
        found = topic.partitions.get(partition) if topic is not None else None
        node = self.shared.nodes.get(found.leader) if found is not None else None
        return Leader(node, found.epoch) if node is not None else None

    def known_topic(self, name):
        """As `topic`, without asking: None where it is not known or too old to be trusted."""
        known = self.shared.topics.get(name)
        return known if known is not None and self._fresh(known) else None

    def topics(self, timeout=None):
        """{name: Topic} of every topic there is, internal ones too; always asked."""
        return self.refresh(None, timeout=timeout)

    def node(self, node_id):
        """A Node by its id, or None."""
        return self.shared.nodes.get(node_id)

    def nodes(self):
        return list(self.shared.nodes.values())

    def cluster_id(self, timeout=None):
        """The name that the cluster gave itself; asked for once."""
        if self.shared.cluster_id is None:
            self.refresh([], timeout=timeout)
        return self.shared.cluster_id

    @property
    def known_cluster_id(self):
        """As `cluster_id`, without asking."""
        return self.shared.cluster_id

    def controller(self, timeout=None):
        """The Node that takes changes to topics."""
        if self.shared.controller not in self.shared.nodes:
            self.refresh([], timeout=timeout)
        return self.shared.nodes.get(self.shared.controller)

    def coordinator(self, group, timeout=None):
        """The Node that coordinates a consumer group; waits while one is being found."""
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
        """Ask for topics by name, [] for the nodes alone, None for all topics; {name: Topic}, errors among them."""
        return finish(self.refreshing(topics, create=create, timeout=timeout, wait_for_brokers=wait_for_brokers), self.clock, self.pause)

    def refreshing(self, topics, *, create=False, timeout=None, wait_for_brokers=True):
        named = topics and [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        message = MetadataRequest(topics=named, allow_auto_topic_creation=create)
        answer = yield from self.requesting(message, timeout=timeout, wait_for_brokers=wait_for_brokers)
        return self._learn(answer, everything=topics is None)

    def forget(self, name):
        """What is known of a topic proved wrong: ask before the next use."""
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
        """Send a message of kafka-python's to a node (a Node or its id; None: any) and wait for its answer.

        A connection that fails to open is tried again until the timeout. One that is lost underway, too, unless
        repeat=False: then the request may or may not have been done, and the caller is told. wait_for_brokers=False: where nobody can be
        reached now, that is an error at once. `ceiling` caps the version.
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
                pause = backoff.next()  # at first without one: an idle connection may have been closed in this very moment
                continue
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return response

    def connect(self, node, timeout=None):
        """A new connection to a node (a Node or its id) that belongs to the caller. One attempt; no pause is kept."""
        return finish(self.connecting(node, timeout), self.clock)

    def connecting(self, node, timeout=None):
        node = self._node(node)
        yield from ()  # what is raised here belongs to the steps, too
        return (yield from self._opening(_address(node), timeout))

    def _opening(self, address, timeout):
        steps = Connection.opening(*address, self.config, self.clock, timeout, client_id=self.client_id, credentials=self.shared.credentials)
        opened = yield from steps
        self.shared.features = opened.features
        return opened

    def feature(self, name):
        """The level to which the cluster has turned a feature on, as the broker said that was connected to last; 0 if it is not."""
        return self.shared.features.get(name, 0)

    def pause(self, seconds):
        """Between attempts; `close` ends it."""
        self.clock.wait(self.shared.closed, seconds)

    def close(self):
        """Close what is idle; requests underway fail, and so does every later one."""
        self.shared.closed.set()
        with self.shared.lock:
            idle, self.shared.idle = self.shared.idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _borrow(self, node, deadline, wait_for_brokers):
        """A connection that nobody uses, to the node or to whichever answers."""
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
        """Addresses of known nodes in random order, then the bootstrap servers: they hold even if all nodes moved. Who failed comes last."""
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
            if connection.stale or connection.wait_readable(0):  # readable with nothing asked: the other side hung up
                connection.close()
                continue
            return connection

    def _open(self, address, deadline):
        """The steps to a new connection; to None where that fails, or failed a moment ago."""
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
        """When one of them may be tried again."""
        now = self.clock.monotonic()
        with self.shared.lock:
            return max(now + 0.001, min(self.shared.failed.get(address, (None, now))[1] for address in addresses))

    def _unreachable(self, addresses):
        names = ", ".join(f"{host}:{port}" for host, port in addresses)
        with self.shared.lock:
            why = " ".join(self.shared.failed[address][2] for address in addresses if address in self.shared.failed)
        return timed_out(f"No broker answers at {names}. {why} Is it running, and is bootstrap.servers right?")

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
            raise disconnected(f"Broker {node} is not among the {len(self.shared.nodes)} that the cluster names.")
        return found

    def _deadline(self, timeout):
        return self.clock.monotonic() + (self.config.seconds("default.api.timeout.ms") if timeout is None else timeout)

    def _left(self, deadline):
        return deadline - self.clock.monotonic()


def _address(node):
    return node.host, node.port


def _canonical(host, port):
    """The canonical names of all addresses of a host, as Kerberos wants them; the host itself where they are not to be found out."""
    try:
        found = {item[4] for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        return sorted({(socket.getnameinfo(address, 0)[0], port) for address in found})
    except OSError:
        return [(host, port)]


def _with_newest_leaders(topic, known):
    """The topic; where a broker that lags behind told of leaders that were followed by others, with those (KIP-320)."""
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
