"""MirrorMaker 2's replication policies: names of topics on the target cluster, and a topic's origin."""

HEARTBEATS = "heartbeats"


class ReplicationPolicy:
    """DefaultReplicationPolicy: alias, separator, topic."""

    def __init__(self, config):
        self._separator = config["replication.policy.separator"]
        inner = self._separator if config["replication.policy.internal.topic.separator.enabled"] else "."
        self._internal = f"{inner}internal"
        self._checkpoints = f"{inner}checkpoints{self._internal}"
        self._syncs = f"mm2-offset-syncs{inner}"

    def remote(self, alias, topic):
        """Return the topic's name on the target."""
        return f"{alias}{self._separator}{topic}"

    def source(self, topic):
        """Return the alias of a topic's source cluster; None for a local topic."""
        alias, found, _ = topic.partition(self._separator)
        return alias if found else None

    def upstream(self, topic):
        """Return its name on the source cluster; None for a local topic."""
        source = self.source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def original(self, topic):
        """Return its name where it was first written."""
        upstream = self.upstream(topic)
        return topic if upstream is None else self.original(upstream)

    def is_heartbeats(self, topic):
        return self.original(topic) == HEARTBEATS

    def is_internal(self, topic):
        """Whether the topic is internal to Kafka or MirrorMaker."""
        return topic.startswith(("__", ".")) or topic.endswith(self._internal)

    def offset_syncs(self, alias):
        return f"{self._syncs}{alias}{self._internal}"

    def checkpoints(self, alias):
        return f"{alias}{self._checkpoints}"

    def is_cycle(self, topic, target):
        """Whether records of the topic have already been on that cluster."""
        source = self.source(topic)
        if source is None or source == target:
            return source == target
        upstream = self.upstream(topic)
        return upstream is not None and upstream != topic and self.is_cycle(upstream, target)


class IdentityReplicationPolicy(ReplicationPolicy):
    """Topics keep their names, except heartbeats. The origin is not visible, so two clusters must not mirror each other this way."""

    def __init__(self, config):
        super().__init__(config)
        self._alias = config["source.cluster.alias"]

    def remote(self, alias, topic):
        return super().remote(alias, topic) if self._looks_like_heartbeats(topic) else topic

    def source(self, topic):
        return super().source(topic) if self._looks_like_heartbeats(topic) else self._alias

    def upstream(self, topic):
        return super().upstream(topic) if self._looks_like_heartbeats(topic) else topic

    def original(self, topic):
        return super().original(topic) if self._looks_like_heartbeats(topic) else topic

    @staticmethod
    def _looks_like_heartbeats(topic):
        return topic == HEARTBEATS or topic.endswith(HEARTBEATS)


def policy_of(config):
    """Return the policy in a connector's parsed configuration."""
    is_identity = config["replication.policy.class"].endswith("IdentityReplicationPolicy")
    return (IdentityReplicationPolicy if is_identity else ReplicationPolicy)(config)
