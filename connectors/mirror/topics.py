"""Create the source's topics on the target with the same partition counts, and sync their configurations and ACLs."""

import logging

from standalone.log import Acls

log = logging.getLogger(__name__)

ALL_OPERATIONS, READ, WRITE, ALLOW = 2, 3, 4, 3  # Kafka's numeric codes


class Topics:
    """The topics that a mirror source mirrors. `source` and `target` are Clients."""

    def __init__(self, config, source, target, policy, topics, properties):
        self._config, self._source, self._target = config, source, target
        self._policy, self._topics, self._properties = policy, topics, properties
        self._told_of_security = False
        self.partitions = []  # (topic, number) on the source

    def refresh(self):
        """Read the source's topics and create missing ones on the target; return whether the mirrored partitions changed."""
        names = sorted(name for name in self._source.admin.list_topics(internal=True) if self.mirrors(name))
        described = self._source.admin.describe_topics(*names) if names else {}
        found = sorted((name, number) for name, topic in described.items() for number in topic.partitions)
        self._make({name: len(topic.partitions) for name, topic in described.items()})
        changed, self.partitions = found != self.partitions, found
        return changed

    def mirrors(self, name):
        policy = self._policy
        wanted = self._topics.take(name) or (self._config["heartbeats.replication.enabled"] and policy.is_heartbeats(name))
        return wanted and not policy.is_internal(name) and not policy.is_cycle(name, self._config["target.cluster.alias"])

    def remote(self, name):
        return self._policy.remote(self._config["source.cluster.alias"], name)

    def _make(self, counts):
        there = self._target.admin.list_topics(internal=True)
        for name, count in counts.items():
            remote = self.remote(name)
            if remote not in there:
                configs = self._wanted(self._source.admin.own_configs(name))
                if self._target.admin.create_topics(remote, count, self._config["replication.factor"], configs):
                    log.info("Created topic %s with %d partitions for %s of the source cluster", remote, count, name)
                continue
            has = len(self._target.admin.describe_topics(remote)[remote].partitions)
            if has < count:
                self._target.admin.create_partitions(remote, count)
                log.info("Topic %s has %d partitions now, as %s of the source cluster", remote, count, name)

    def _wanted(self, configs):
        return {key: value for key, value in configs.items() if value is not None and self._properties.take(key)}

    def sync_configs(self):
        """Copy configurations set on source topics to the target; reset those no longer set on the source."""
        for name in {name for name, _ in self.partitions}:
            wanted = self._wanted(self._source.admin.own_configs(name))
            remote = self.remote(name)
            has = self._wanted(self._target.admin.own_configs(remote))
            changes = {key: value for key, value in wanted.items() if has.get(key) != value}
            changes.update(dict.fromkeys(has.keys() - wanted.keys()))
            if changes:
                self._target.admin.incremental_alter_configs(remote, changes)
                log.info("Synced the configuration of topic %s from the source cluster: %s", remote, ", ".join(sorted(changes)))

    def sync_acls(self):
        """Copy read permissions of topics to the target. Write permissions are not copied: only the mirror may write there."""
        found = Acls(self._source.admin).read()
        names = {name for name, _ in self.partitions}
        wanted = [
            acl._replace(topic=self.remote(acl.topic), operation=READ if is_leave_for_all(acl) else acl.operation)
            for acl in found or ()
            if acl.topic in names and not (acl.permission == ALLOW and acl.operation == WRITE)
        ]
        if found is None or not Acls(self._target.admin).write(wanted):
            if not self._told_of_security:
                log.info("ACLs are not synced: the %s cluster has no authorizer", "source" if found is None else "target")
            self._told_of_security = True


def is_leave_for_all(acl):
    return acl.permission == ALLOW and acl.operation == ALL_OPERATIONS
