"""MirrorHeartbeatConnector: a record per second on the target, which shows downstream mirrors that replication works."""

import threading

from connectors.mirror.clients import Clients
from connectors.mirror.formats import Heartbeat, heartbeat_key, heartbeat_value
from connectors.mirror.keys import BASE, PASSING, TARGET, cluster_errors
from connectors.mirror.policy import HEARTBEATS
from connectors.mirror.source_offsets import OFFSET, check_zero
from standalone import BOOLEAN, LONG, LOW, SHORT, ConnectError, Option, Schema, SourceConnector, SourceRecord, SourceTask, at_least
from standalone.log import SYSTEM

SOURCE_ALIAS, TARGET_ALIAS = "sourceClusterAlias", "targetClusterAlias"


class MirrorHeartbeatConnector(SourceConnector):
    """Write heartbeats to the topic `heartbeats` of the target cluster."""

    java_name = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"
    passing = PASSING

    config_def = BASE.extend(
        Option("emit.heartbeats.enabled", BOOLEAN, LOW, "Whether heartbeats are written.", default=True),
        Option("emit.heartbeats.interval.seconds", LONG, LOW, "How often.", default=1, check=at_least(1)),
        Option("heartbeats.topic.replication.factor", SHORT, LOW, "Replication factor of the heartbeats topic, if it has to be created.", default=3),
    )

    def validate(self, config):
        return cluster_errors(config, [TARGET])  # for the source its alias is enough

    def start(self, config):
        self.config = config
        self._parsed = parsed = self.config_def.parse(config)
        if self._is_on():
            target = Clients(config, TARGET)
            try:
                target.make_topic(HEARTBEATS, 1, parsed["heartbeats.topic.replication.factor"], {"cleanup.policy": "compact"})
            finally:
                target.close()

    def _is_on(self):
        return self._parsed["enabled"] and self._parsed["emit.heartbeats.enabled"]

    def task_configs(self, max_tasks):
        return [dict(self.config)] if self._is_on() else []

    def alter_offsets(self, config, offsets):
        for partition, offset in offsets:
            check_alias_partition(partition)
            check_zero(offset)
        return True


class MirrorHeartbeatTask(SourceTask):
    java_name = "org.apache.kafka.connect.mirror.MirrorHeartbeatTask"

    def start(self, config):
        self.config = config
        parsed = MirrorHeartbeatConnector.config_def.parse(config)
        self._aliases = parsed["source.cluster.alias"], parsed["target.cluster.alias"]
        self._interval = parsed["emit.heartbeats.interval.seconds"]
        self._due = SYSTEM.monotonic()
        self._stopped = threading.Event()

    def poll(self):
        left = self._due - SYSTEM.monotonic()
        if left > 0 and (self._stopped.wait(min(left, 1.0)) or self._due > SYSTEM.monotonic()):
            return None
        self._due = SYSTEM.monotonic() + self._interval
        beat = Heartbeat(*self._aliases, SYSTEM.now_ms())
        return [
            SourceRecord(
                HEARTBEATS,
                heartbeat_value(beat),
                dict(zip((SOURCE_ALIAS, TARGET_ALIAS), self._aliases)),
                {OFFSET: 0},
                partition=0,
                key_schema=Schema.BYTES,
                key=heartbeat_key(beat),
                value_schema=Schema.BYTES,
                timestamp=beat.timestamp,
            )
        ]

    def stop(self):
        self._stopped.set()


def check_alias_partition(partition):
    if partition is None or set(partition) != {SOURCE_ALIAS, TARGET_ALIAS}:
        raise ConnectError(f"The source partition {partition!r} must have {SOURCE_ALIAS} and {TARGET_ALIAS}, and nothing else.")


MirrorHeartbeatConnector.task_class = MirrorHeartbeatTask
