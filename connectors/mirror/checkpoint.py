"""MirrorCheckpointConnector: translate the offsets of consumer groups from source to target.

A checkpoint is a record of the topic ALIAS.checkpoints.internal on the target: a group's offset in a source partition and the
corresponding offset on the target (offset_syncs.py). With sync.group.offsets.enabled, these offsets are committed for groups without
members on the target, so that their consumers can move over and continue.
"""

import logging
import threading

from connectors.mirror.clients import Clients
from connectors.mirror.formats import Checkpoint, checkpoint_key, checkpoint_value, read_checkpoint
from connectors.mirror.keys import (
    BASE,
    PASSING,
    POLL_TIMEOUT,
    SOURCE,
    SYNCS_LOCATION,
    TARGET,
    TOPIC_FILTER,
    Names,
    class_key,
    cluster_errors,
    patterns_are_right,
    seconds,
)
from connectors.mirror.offset_syncs import NO_PLACE, SyncStore
from connectors.mirror.policy import policy_of
from connectors.mirror.schedule import STOP_SECONDS, Schedule
from connectors.mirror.source_offsets import OFFSET, PARTITION, TOPIC, check_partition, check_zero
from standalone import BOOLEAN, HIGH, LIST, LOW, SHORT, Option, Schema, SourceConnector, SourceRecord, SourceTask
from standalone.log import SYSTEM, LogError

log = logging.getLogger(__name__)

GROUP = "group"  # of source partitions
EMPTY, DEAD = "Empty", "Dead"


class MirrorCheckpointConnector(SourceConnector):
    """Write checkpoints of consumer groups, and optionally commit their offsets on the target."""

    java_name = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"
    passing = (*PASSING, "topics")  # Java's topic filter uses these keys, too

    config_def = BASE.extend(
        POLL_TIMEOUT,
        Option("groups", LIST, HIGH, "Names, or regular expressions for whole names, of the groups.", default=".*", check=patterns_are_right),
        Option(
            "groups.exclude", LIST, HIGH, "Groups to exclude, even if `groups` matches them.",
            default="console-consumer-.*,connect-.*,__.*", check=patterns_are_right,
        ),
        class_key(
            "group.filter.class", ["org.apache.kafka.connect.mirror.DefaultGroupFilter"],
            "Filter of groups to checkpoint, by groups and groups.exclude.",
        ),
        Option("refresh.groups.enabled", BOOLEAN, LOW, "Whether new groups are checkpointed, too.", default=True),
        seconds("refresh.groups.interval.seconds", 600, "Interval between checks for them."),
        Option("emit.checkpoints.enabled", BOOLEAN, LOW, "Whether checkpoints are written.", default=True),
        seconds("emit.checkpoints.interval.seconds", 60, "How often."),
        Option(
            "sync.group.offsets.enabled", BOOLEAN, LOW, "Whether translated offsets are committed for groups without members on the target.",
            default=False,
        ),
        seconds("sync.group.offsets.interval.seconds", 60, "How often."),
        Option("checkpoints.topic.replication.factor", SHORT, LOW, "Replication factor of the checkpoints topic, if it is created.", default=3),
        SYNCS_LOCATION,
        TOPIC_FILTER,
    )  # fmt: skip

    _schedule = _source = None
    _groups = ()

    def validate(self, config):
        return cluster_errors(config)

    def start(self, config):
        self.config = config
        parsed = self._parsed = self.config_def.parse(config)
        if not self._is_on():
            return
        self._names = Names(parsed["groups"], parsed["groups.exclude"])
        self._source = Clients(config, SOURCE)
        target = Clients(config, TARGET)
        try:
            topic = policy_of(parsed).checkpoints(parsed["source.cluster.alias"])
            target.make_topic(topic, 1, parsed["checkpoints.topic.replication.factor"], {"cleanup.policy": "compact"})
        finally:
            target.close()
        self._groups = self._find()
        self._schedule = Schedule("mirror-checkpoint")
        if parsed["refresh.groups.enabled"]:
            self._schedule.every(parsed["refresh.groups.interval.seconds"], self._refresh, "refresh.groups")
        self._schedule.start()

    def _is_on(self):
        return self._parsed["enabled"] and self._parsed["emit.checkpoints.enabled"]

    def _find(self):
        return sorted(group for group in self._source.admin.list_groups() if self._names.take(group))

    def _refresh(self):
        found = self._find()
        if found != self._groups:
            self._groups = found
            log.info("The groups to checkpoint have changed: reassigning them to tasks")
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks):
        if not self._is_on() or not self._groups:
            return []
        count = min(max_tasks, len(self._groups))
        return [{**self.config, "task.index": str(at), "task.assigned.groups": ",".join(self._groups[at::count])} for at in range(count)]

    def stop(self):
        if self._schedule is not None:
            self._schedule.stop()
        if self._source is not None:
            self._source.close()
        if self._schedule is not None:
            self._schedule.join(STOP_SECONDS)

    def alter_offsets(self, config, offsets):
        for partition, offset in offsets:
            check_partition(partition, (GROUP, TOPIC, PARTITION))
            check_zero(offset)
        return True


class MirrorCheckpointTask(SourceTask):
    """Writes the checkpoints of its groups."""

    java_name = "org.apache.kafka.connect.mirror.MirrorCheckpointTask"

    def start(self, config):
        self.config = config
        parsed = MirrorCheckpointConnector.config_def.parse(config)
        policy = self._policy = policy_of(parsed)
        self._alias = parsed["source.cluster.alias"]
        self._groups = config["task.assigned.groups"].split(",")
        self._topics = Names([".*"], [])
        if config.get("topics") or config.get("topics.exclude"):
            self._topics = Names((config.get("topics") or ".*").split(","), filter(None, (config.get("topics.exclude") or "").split(",")))
        self._checkpoints_topic = policy.checkpoints(self._alias)
        self._interval = parsed["emit.checkpoints.interval.seconds"]
        self._sync_interval = parsed["sync.group.offsets.interval.seconds"] if parsed["sync.group.offsets.enabled"] else None
        self._patience = parsed["admin.timeout.ms"] / 1000
        self._source, self._target = Clients(config, SOURCE), Clients(config, TARGET)
        at_source = parsed["offset-syncs.topic.location"] == SOURCE
        self._syncs_topic = policy.offset_syncs(parsed["target.cluster.alias"] if at_source else self._alias)
        self._syncs_at = self._source if at_source else self._target
        self._syncs_read = {}  # partition of that topic -> offset: SyncStore keeps what was read, although the topic is compacted
        self._syncs = SyncStore()
        self._sent = self._stored()  # (group, topic, number) -> Checkpoint
        self._due = self._sync_due = SYSTEM.monotonic()
        self._stopped = threading.Event()

    def _stored(self):
        """Read the stored checkpoints: a group's checkpoints never go back."""
        found = {}
        for key, value in self._target.read_all(self._checkpoints_topic, self._patience):
            if value is not None:
                each = read_checkpoint(key, value)
                if each.group in self._groups:
                    found[each[:3]] = each
        return found

    def poll(self):
        left = self._due - SYSTEM.monotonic()
        if left > 0 and (self._stopped.wait(min(left, 1.0)) or self._due > SYSTEM.monotonic()):
            return None
        self._due = SYSTEM.monotonic() + self._interval
        try:
            self._syncs.take(self._syncs_at.read_all(self._syncs_topic, self._patience, self._syncs_read))
            found = [each for group in self._groups for each in self._checkpoints(group)]
            self._sent.update((each[:3], each) for each in found)
            if self._sync_interval is not None and self._sync_due <= SYSTEM.monotonic():
                self._sync_due = SYSTEM.monotonic() + self._sync_interval
                self._sync_groups()
        except LogError as error:
            log.warning("Checkpoints of %d groups failed and are retried in %d s: %s", len(self._groups), self._interval, error)
            return None
        return [self._record(each) for each in found]

    def _checkpoints(self, group):
        """Return the group's changed checkpoints."""
        for (topic, number), (offset, metadata) in self._source.admin.group_commits(group).items():
            if not self._topics.take(topic) or self._policy.is_internal(topic):
                continue
            there = self._syncs.translate(topic, number, offset)
            if there is None or there == NO_PLACE:
                continue
            each = Checkpoint(group, self._policy.remote(self._alias, topic), number, offset, there, metadata or "")
            before = self._sent.get(each[:3])
            if before is None or before.downstream < each.downstream or before.upstream > each.upstream:
                yield each

    def _record(self, each):
        return SourceRecord(
            self._checkpoints_topic,
            checkpoint_value(each),
            {GROUP: each.group, TOPIC: each.topic, PARTITION: each.partition},
            {OFFSET: 0},
            partition=0,
            key_schema=Schema.BYTES,
            key=checkpoint_key(each),
            value_schema=Schema.BYTES,
            timestamp=SYSTEM.now_ms(),
        )

    def _sync_groups(self):
        """Commit checkpoints for groups without members on the target; never move their offsets back."""
        for group in self._groups:
            wanted = {(each.topic, each.partition): each for each in self._sent.values() if each.group == group}
            if not wanted or self._target.admin.describe_group(group).state not in (EMPTY, DEAD):
                continue
            has = self._target.admin.group_offsets(group)
            there = self._target.admin.list_topics(internal=True)
            changes = {
                pair: (each.downstream, each.metadata)
                for pair, each in wanted.items()
                if pair[0] in there and has.get(pair, NO_PLACE) < each.downstream
            }
            if changes:
                self._target.admin.alter_group_offsets(group, changes)
                log.info("Synced the offsets of group %s for %d partitions to the target", group, len(changes))

    def stop(self):
        self._stopped.set()

    def close(self):
        for clients in (self._source, self._target):
            clients.close()


MirrorCheckpointConnector.task_class = MirrorCheckpointTask
