"""MirrorSourceConnector: mirror topics from one cluster to another, record by record.

    topics.py        topics to mirror and their settings        policy.py   their names
    offset_syncs.py  pairs of source and target offsets

A record keeps key, value, headers, timestamp and partition. Set the converters of the connector (key, value and header) to
org.apache.kafka.connect.converters.ByteArrayConverter: then bytes pass through unchanged. The source offset of a partition is that of
the last record mirrored.
"""

import logging

from connectors.mirror.clients import Clients
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
from connectors.mirror.offset_syncs import SyncWriter
from connectors.mirror.policy import policy_of
from connectors.mirror.schedule import STOP_SECONDS, Schedule
from connectors.mirror.source_offsets import OFFSET, PARTITION, TOPIC, check_partition, is_whole
from connectors.mirror.topics import Topics
from standalone import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    SHORT,
    ConnectError,
    ExactlyOnceSupport,
    Header,
    Option,
    Schema,
    SourceBatch,
    SourceConnector,
    SourceTask,
)
from standalone.log import LogRetriableError

log = logging.getLogger(__name__)

CLUSTER = "cluster"  # of source partitions


class MirrorSourceConnector(SourceConnector):
    """Copy topics from one Kafka cluster to another, with partitions, configurations and ACLs."""

    java_name = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    passing = PASSING

    config_def = BASE.extend(
        Option("topics", LIST, HIGH, "Regular expressions for the whole names of topics to mirror.", default=".*", check=patterns_are_right),
        Option(
            "topics.exclude", LIST, HIGH, "Topics to exclude, even if `topics` matches them.",
            default=r".*[\-\.]internal,.*\.replica,__.*", check=patterns_are_right,
        ),
        Option(
            "config.properties.exclude", LIST, HIGH, "Names, or regular expressions, of topic configs that are not synced.",
            default=(
                r"follower\.replication\.throttled\.replicas,leader\.replication\.throttled\.replicas,message\.timestamp\.difference\.max\.ms,"
                r"message\.timestamp\.type,unclean\.leader\.election\.enable,min\.insync\.replicas"
            ),
            check=patterns_are_right,
        ),
        TOPIC_FILTER,
        class_key(
            "config.property.filter.class", ["org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"],
            "Filter of topic configs to sync, by config.properties.exclude.",
        ),
        POLL_TIMEOUT,
        Option("refresh.topics.enabled", BOOLEAN, LOW, "Whether new topics and partitions are mirrored, too.", default=True),
        seconds("refresh.topics.interval.seconds", 600, "Interval between checks for them."),
        Option("sync.topic.configs.enabled", BOOLEAN, LOW, "Whether changed topic configs are synced.", default=True),
        seconds("sync.topic.configs.interval.seconds", 600, "How often."),
        Option("sync.topic.acls.enabled", BOOLEAN, LOW, "Whether topic ACLs are synced.", default=True),
        seconds("sync.topic.acls.interval.seconds", 600, "How often."),
        Option("replication.factor", INT, LOW, "Replication factor of topics created on the target; -1: its default.", default=2),
        Option("offset-syncs.topic.replication.factor", SHORT, LOW, "Replication factor of the offset syncs topic, if it is created.", default=3),
        Option(
            "offset.lag.max", LONG, LOW, "Maximum records between two offset syncs, and so the maximum lag of translated offsets.",
            default=100,
        ),
        SYNCS_LOCATION,
        Option("emit.offset-syncs.enabled", BOOLEAN, LOW, "Whether offset syncs are written: MirrorCheckpointConnector needs them.", default=True),
        Option("heartbeats.replication.enabled", BOOLEAN, LOW, "Whether heartbeats are mirrored, regardless of `topics`.", default=True),
    )  # fmt: skip

    _schedule = _source = _target = None

    def validate(self, config):
        return cluster_errors(config)

    def exactly_once_support(self, config):
        """Only with read_committed: otherwise records of aborted transactions would be mirrored as committed."""
        isolation = config.get("source.consumer.isolation.level") or config.get("consumer.isolation.level") or ""
        return ExactlyOnceSupport.SUPPORTED if isolation.lower() == "read_committed" else ExactlyOnceSupport.UNSUPPORTED

    def start(self, config):
        self.config = config
        parsed = self._parsed = self.config_def.parse(config)
        if not parsed["enabled"]:
            return
        self._source, self._target = Clients(config, SOURCE), Clients(config, TARGET)
        self._topics = Topics(
            *(parsed, self._source, self._target, policy_of(parsed)),
            *(Names(parsed["topics"], parsed["topics.exclude"]), Names([".*"], parsed["config.properties.exclude"])),
        )
        if parsed["emit.offset-syncs.enabled"]:
            home = self._source if parsed["offset-syncs.topic.location"] == SOURCE else self._target
            alias = parsed["target.cluster.alias" if parsed["offset-syncs.topic.location"] == SOURCE else "source.cluster.alias"]
            factor = parsed["offset-syncs.topic.replication.factor"]
            home.make_topic(policy_of(parsed).offset_syncs(alias), 1, factor, {"cleanup.policy": "compact"})
        self._topics.refresh()
        self._schedule = Schedule("mirror-source")
        for what, call, at_once in (
            ("sync.topic.acls", self._topics.sync_acls, True),
            ("sync.topic.configs", self._topics.sync_configs, False),
            ("refresh.topics", self._refresh, False),
        ):
            if parsed[f"{what}.enabled"]:
                self._schedule.every(parsed[f"{what}.interval.seconds"], call, what, at_once)
        self._schedule.start()

    def _refresh(self):
        if self._topics.refresh():
            log.info("The topics to mirror have changed: reassigning partitions to tasks")
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks):
        if not self._parsed["enabled"] or not self._topics.partitions:
            return []
        count = min(max_tasks, len(self._topics.partitions))
        shares = [self._topics.partitions[at::count] for at in range(count)]
        return [
            {**self.config, "task.index": str(at), "task.assigned.partitions": ",".join(f"{topic}-{number}" for topic, number in share)}
            for at, share in enumerate(shares)
        ]

    def stop(self):
        if self._schedule is not None:
            self._schedule.stop()
        for clients in (self._source, self._target):
            if clients is not None:
                clients.close()
        if self._schedule is not None:
            self._schedule.join(STOP_SECONDS)

    def alter_offsets(self, config, offsets):
        for partition, offset in offsets:
            check_partition(partition, (CLUSTER, TOPIC, PARTITION))
            if offset is not None and not is_whole(offset.get(OFFSET)):
                raise ConnectError(f"The source offset {offset!r} must be {{\"{OFFSET}\": N}}, N the offset of the last record mirrored, 0 or more.")
        return True


class MirrorSourceTask(SourceTask):
    """Mirrors its partitions of the source cluster."""

    java_name = "org.apache.kafka.connect.mirror.MirrorSourceTask"

    def start(self, config):
        self.config = config
        parsed = MirrorSourceConnector.config_def.parse(config)
        self._alias = parsed["source.cluster.alias"]
        self._policy = policy_of(parsed)
        self._patience = parsed["consumer.poll.timeout.ms"] / 1000
        self._stopped = False
        self._source, self._target = Clients(config, SOURCE), Clients(config, TARGET)
        self._consumer = self._source.consumer()
        self._syncs = None
        if parsed["emit.offset-syncs.enabled"]:
            at_source = parsed["offset-syncs.topic.location"] == SOURCE
            topic = self._policy.offset_syncs(parsed["target.cluster.alias"] if at_source else self._alias)
            self._syncs = SyncWriter((self._source if at_source else self._target).writer(), topic, parsed["offset.lag.max"])
        pairs = assigned(config["task.assigned.partitions"])
        self._consumer.assign(pairs)
        for pair in pairs:
            stored = self.context.offset_reader.offset(self._partition(*pair))
            if stored is not None:
                self._consumer.seek(*pair, stored[OFFSET] + 1)

    def _partition(self, topic, number):
        return {CLUSTER: self._alias, TOPIC: topic, PARTITION: number}

    def poll(self):
        if self._stopped:
            return None
        try:
            return [self._batch(*each) for each in self._consumer.poll(self._patience)]
        except LogRetriableError as error:
            log.warning("The source cluster cannot be read now, retrying: %s", error)
            return None

    def _batch(self, topic, number, records, _):
        headers = None
        if records.headers is not None:
            headers = [tuple(Header(name, value, Schema.OPTIONAL_BYTES) for name, value in row or ()) for row in records.headers]
        offsets = records.offsets
        return SourceBatch(
            len(records),
            self._policy.remote(self._alias, topic),
            records.values,
            Schema.OPTIONAL_BYTES,
            key=records.keys,
            key_schema=Schema.OPTIONAL_BYTES,
            partition=number,
            timestamps=records.timestamps,
            headers=headers,
            source_partition=self._partition(topic, number),
            offset_of=lambda row: {OFFSET: int(offsets[row])},
        )

    def commit_batch(self, batch, rows, topic, partition, offset):
        """Record that these rows are on the target from `offset` on."""
        if self._syncs is not None and offset is not None and len(rows):
            place = batch.source_partition
            offsets = [batch.offset_of(row)[OFFSET] for row in (int(rows[0]), int(rows[-1]))]
            self._syncs.note((place[TOPIC], place[PARTITION]), *offsets, offset, offset + len(rows) - 1)

    def commit(self):
        if self._syncs is not None:
            self._syncs.write()

    def stop(self):
        self._stopped = True
        self._consumer.wakeup()

    def close(self):
        if self._syncs is not None:
            self._syncs.close(STOP_SECONDS)
        self._consumer.close(0)
        for clients in (self._source, self._target):
            clients.close()


def assigned(text):
    """Parse task.assigned.partitions into [(topic, number)]."""
    return [(topic, int(number)) for topic, _, number in (each.rpartition("-") for each in text.split(","))]


MirrorSourceConnector.task_class = MirrorSourceTask
