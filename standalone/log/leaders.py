"""Leaders: a consumer's own connections to the brokers that it reads from: those that lead its partitions, or replicas they prefer.

Connections are opened without waiting for them: a broker that does not answer holds up no other's records.
"""

from standalone.errors import LogRetriableError
from standalone.log.link import Link
from standalone.log.retry import Backoff, Outage
from standalone.log.steps import Underway


class Leader:
    def __init__(self, node, config):
        self.node = node
        self.link = None
        self.opening = None  # Underway, while the link is being made
        self.fatal = None  # why this broker will never have us; raised on the consumer's own thread
        self.fetching = None  # {pair: (Partition, offset)} of the fetch under way
        self.waits_long = False  # whether that waits for longer than others should wait after it
        self.empty_fetches = 0  # in a row
        self.backoff = Backoff(config, "reconnect.backoff")
        self.not_before = 0
        self.outage = Outage(f"The broker at {node.host}:{node.port} answers again.")

    def leaves_out(self, parts):
        """Whether the fetch under way is not for all of these, where they are read now."""
        return any(self.fetching.get(part.pair) != (part, part.fetched_to) for part in parts)


class Leaders:
    """Connections are opened when they are needed, and again when they were lost, at a growing distance."""

    def __init__(self, cluster, config, clock, look_soon):
        self._cluster, self._config, self._clock, self._look_soon = cluster, config, clock, look_soon
        self._leaders = {}  # Node -> Leader

    def of(self, pairs):
        """{Node: its pairs}, by leader; who leads those that are left out is asked for."""
        by_node = {}
        for pair in pairs:
            known = self._cluster.leader(*pair)
            if known is None:
                self._look_soon()
            else:
                by_node.setdefault(known.node, []).append(pair)
        return by_node

    def to_read(self, parts):
        """{Node: its Partitions}, each by the replica that its leader prefers for us, while that holds, or else by the leader."""
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
        """Whether a fetch is under way that these are to wait for."""
        leader = self._leaders.get(node)
        return leader is not None and leader.fetching is not None and not (leader.waits_long and leader.leaves_out(parts))

    def connected(self, node):
        """The Leader of a node, ready to be sent requests; None while it is not to be reached. Raises LogFatalError where it never will.

        A broker answers in order: a fetch that waits long, which would hold the next request up, is given up with its connection.
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
        """Connections that are being made."""
        return [leader.opening for leader in self._leaders.values() if leader.opening is not None]

    @property
    def wakes_at(self):
        now = self._clock.monotonic()
        return min([leader.not_before for leader in self._leaders.values() if leader.not_before > now], default=float("inf"))

    def close(self):
        for each in [*self.underway, *self.links]:
            each.close()
