"""Leaders: a consumer's own connections to the brokers that lead its partitions."""

from standalone.errors import LogRetriableError
from standalone.log.client import Backoff
from standalone.log.link import Link, Trouble


class Leader:
    def __init__(self, node, config):
        self.node = node
        self.link = None
        self.fetching = None  # {pair: (Partition, offset)} of the fetch under way
        self.is_patient = False  # whether that waits for longer than others should wait behind it
        self.in_vain = 0  # fetches in a row that brought nothing
        self.backoff = Backoff(config, "reconnect.backoff")
        self.not_before = 0
        self.trouble = Trouble(f"The broker at {node.host}:{node.port} answers again.")

    def leaves_out(self, parts):
        """Whether the fetch under way is not for all of these, where they are read now."""
        return any(self.fetching.get(part.pair) != (part, part.fetched_to) for part in parts)


class Leaders:
    """Connections are opened when they are needed, and again when they were lost, at a growing distance."""

    def __init__(self, cluster, config, clock, look_soon):
        self._cluster, self._config, self._clock, self._look_soon = cluster, config, clock, look_soon
        self._leaders = {}  # Node -> Leader

    def of(self, pairs):
        """{Node: its pairs}; who leads those that are left out is asked for."""
        by_node = {}
        for pair in pairs:
            known = self._cluster.leader(*pair)
            if known is None:
                self._look_soon()
            else:
                by_node.setdefault(known.node, []).append(pair)
        return by_node

    def is_fetching(self, node, parts):
        """Whether a fetch is under way that these are to wait for."""
        leader = self._leaders.get(node)
        return leader is not None and leader.fetching is not None and not (leader.is_patient and leader.leaves_out(parts))

    def connected(self, node):
        """The Leader of a node, ready to be sent requests; None while it is not to be reached.

        A broker answers in order: a patient fetch, which would hold the next request up, is given up with its connection.
        """
        if node not in self._leaders:
            self._leaders[node] = Leader(node, self._config)
        leader = self._leaders[node]
        if self._clock.monotonic() < leader.not_before:
            return None
        if leader.fetching is not None and leader.is_patient:
            leader.link.close()
            leader.fetching, leader.in_vain = None, 0
        if leader.link is None or not leader.link.usable:
            try:
                connection = self._cluster.connect(node)
            except LogRetriableError as error:
                self.lost(leader, error)
                return None
            leader.link = Link(connection, node, self._clock, self._config.seconds("request.timeout.ms"))
        return leader

    def lost(self, leader, error):
        leader.trouble.is_on(error)
        leader.fetching, leader.in_vain = None, 0
        leader.not_before = self._clock.monotonic() + leader.backoff.next()
        self._look_soon()

    def answered(self, leader):
        leader.trouble.is_over()
        leader.backoff.reset()

    @property
    def links(self):
        return [leader.link for leader in self._leaders.values() if leader.link is not None]

    @property
    def wakes_at(self):
        now = self._clock.monotonic()
        return min([leader.not_before for leader in self._leaders.values() if leader.not_before > now], default=float("inf"))

    def close(self):
        for link in self.links:
            link.close()
