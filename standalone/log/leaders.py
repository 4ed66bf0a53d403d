"""Leaders: a consumer's connections to the brokers it fetches from: partition leaders or preferred read replicas.

Connections open without blocking: a broker that does not answer delays no other's records.
"""

from standalone.errors import LogRetriableError
from standalone.log.link import Link
from standalone.log.retry import Backoff, Outage
from standalone.log.steps import Underway


class Leader:
    def __init__(self, node, config):
        self.node = node
        self.link = None
        self.opening = None  # Underway, while connecting
        self.fatal = None  # why this broker rejects us; raised on the consumer's thread
        self.fetching = None  # {pair: (Partition, offset)} of the fetch in flight
        self.waits_long = False  # whether that fetch waits longer than a following request should
        self.empty_fetches = 0  # consecutive empty responses
        self.backoff = Backoff(config, "reconnect.backoff")
        self.not_before = 0
        self.outage = Outage(f"The broker at {node.host}:{node.port} answers again.")

    def leaves_out(self, parts):
        """Whether the fetch in flight does not cover all of these at their current position."""
        return any(self.fetching.get(part.pair) != (part, part.fetched_to) for part in parts)


class Leaders:
    """Connections open on demand, and reopen with backoff."""

    def __init__(self, cluster, config, clock, look_soon):
        self._cluster, self._config, self._clock, self._look_soon = cluster, config, clock, look_soon
        self._leaders = {}  # Node -> Leader

    def of(self, pairs):
        """Return {Node: its pairs}, by leader; request metadata for pairs without a known leader."""
        by_node = {}
        for pair in pairs:
            known = self._cluster.leader(*pair)
            if known is None:
                self._look_soon()
            else:
                by_node.setdefault(known.node, []).append(pair)
        return by_node

    def to_read(self, parts):
        """Return {Node: its Partitions}, each by its preferred read replica while that is valid, else by its leader."""
        by_node, now = {}, self._clock.monotonic()
        for part in parts:
            node = self._cluster.node(part.replica) if part.replica is not None else None
            failing = node is not None and node in self._leaders and self._leaders[node].not_before > now
            if part.replica is not None and (node is None or failing or now >= part.replica_until):
                part.replica = node = None
            if node is None:
                leader = self._cluster.leader(*part.pair)
                if leader is None:
                    self._look_soon()
                    continue
                node = leader.node
            by_node.setdefault(node, []).append(part)
        return by_node

    def is_fetching(self, node, parts):
        """Whether a fetch is in flight that these must wait for."""
        leader = self._leaders.get(node)
        return leader is not None and leader.fetching is not None and not (leader.waits_long and leader.leaves_out(parts))

    def connected(self, node):
        """Return a node's Leader, ready for requests; None while it is unreachable. Raise LogFatalError if it rejects us.

        A broker answers in order: a long-waiting fetch would delay the next request, so it is abandoned with its connection.
        """
        if node not in self._leaders:
            self._leaders[node] = Leader(node, self._config)
        leader = self._leaders[node]
        if leader.fatal is not None:
            error, leader.fatal = leader.fatal, None
            raise error
        if leader.opening is not None or self._clock.monotonic() < leader.not_before:
            return None
        if leader.fetching is not None and leader.waits_long:
            leader.link.close()
            leader.fetching, leader.empty_fetches = None, 0
        if leader.link is None or not leader.link.usable:
            leader.opening = Underway(self._cluster.connecting(node), lambda connection, error: self._opened(leader, connection, error))
            return None
        return leader

    def _opened(self, leader, connection, error):
        leader.opening = None
        if error is None:
            leader.link = Link(connection, leader.node, self._clock, self._config.seconds("request.timeout.ms"))
        elif isinstance(error, LogRetriableError):
            self.lost(leader, error)
        else:
            leader.fatal = error

    def lost(self, leader, error):
        leader.outage.begins(error)
        leader.fetching, leader.empty_fetches = None, 0
        leader.not_before = self._clock.monotonic() + leader.backoff.next()
        self._look_soon()

    def answered(self, leader):
        leader.outage.ends()
        leader.backoff.reset()

    @property
    def links(self):
        return [leader.link for leader in self._leaders.values() if leader.link is not None]

    @property
    def underway(self):
        """Return the pending connections."""
        return [leader.opening for leader in self._leaders.values() if leader.opening is not None]

    @property
    def wakes_at(self):
        now = self._clock.monotonic()
        return min([leader.not_before for leader in self._leaders.values() if leader.not_before > now], default=float("inf"))

    def close(self):
        for each in [*self.underway, *self.links]:
            each.close()
