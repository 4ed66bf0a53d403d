"""Migration from a distributed Connect worker: reads its properties and its three storage topics.

    worker_keys(props, folder)     the keys of the new worker, and what became of each old key
    read_storage(log, props)       Storage: connectors, target states, source offsets, last statuses

The topics are read to the end and never written. Sinks need no migration: their consumer groups are connect-NAME in both modes.
"""

import logging
import os
from typing import NamedTuple

import orjson

from standalone.errors import NotFoundError
from standalone.runtime.offsets.journal import OffsetsFile
from standalone.tools.log_access import LogAccess, rows

log = logging.getLogger(__name__)

CONNECTOR, TARGET, STATUS = "connector-", "target-state-", "status-connector-"
STATES = {"STARTED": "RUNNING", "PAUSED": "PAUSED", "STOPPED": "STOPPED"}  # target state in the config topic -> initial_state of a connector file

_TOPICS = ("config.storage.", "status.storage.")
_WITHOUT_A_GROUP = (
    *("session.timeout.ms", "heartbeat.interval.ms", "rebalance.timeout.ms", "scheduled.rebalance.max.delay.ms", "connect.protocol"),
    *("worker.sync.timeout.ms", "worker.unsync.backoff.ms"),
)
_BETWEEN_WORKERS = "inter.worker."
_OFFSETS = "offset.storage."


class Became(NamedTuple):
    key: str
    said: str


class Storage(NamedTuple):
    connectors: dict  # name -> its configuration
    targets: dict  # name -> STARTED, PAUSED, STOPPED
    offsets: list  # (connector, source partition, source offset)
    statuses: dict  # name -> {"state", "trace", "worker_id"}


def worker_keys(props, folder, spark_master=None):
    """(properties of the new worker, [Became] of every key that is changed or dropped)"""
    kept, said = {}, []
    exactly_once = props.get("exactly.once.source.support", "disabled").strip().lower() == "enabled"
    for key, value in props.items():
        if key == "group.id":
            said.append(Became(key, "dropped: one worker runs all connectors. Sinks continue in their own groups, connect-NAME"))
        elif key.startswith(_TOPICS):
            said.append(Became(key, "connectors are in files beside this one; changes by REST are stored in state.dir"))
        elif key.startswith(_OFFSETS) and not exactly_once:
            said.append(Became(key, f"source offsets are in offset.storage.file.filename ({_offsets_file(folder)})"))
        elif key in _WITHOUT_A_GROUP or key.startswith(_BETWEEN_WORKERS):
            said.append(Became(key, "dropped: there are no other workers to coordinate with"))
        else:
            kept[key] = value
            if key == "plugin.path":
                said.append(Became(key, "kept, but jars have no effect here: name folders of Python plugins"))
    kept["offset.storage.file.filename"] = _offsets_file(folder)
    said.append(Became("offset.storage.file.filename", "new: the file of the source offsets"))
    if spark_master:
        kept["spark.master"], kept["tasks.run.on"] = spark_master, "cluster"
        said.append(Became("tasks.run.on", f"new: tasks run on the executors of {spark_master}"))
    return kept, said


def _offsets_file(folder):
    return os.path.join(os.path.abspath(folder), "connect.offsets")


def storage_access(config):
    """A LogAccess with the distributed worker's own client settings, the keys without a prefix."""
    properties = config.client("admin")
    kinds = {kind: dict(properties) for kind in ("admin", "producer", "consumer")}
    kinds["consumer"].update({"isolation.level": "read_committed", "auto.offset.reset": "earliest", "allow.auto.create.topics": "false"})
    return LogAccess(kinds)


def read_storage(access, props):
    """The content of the distributed worker's storage topics. Raises NotFoundError if one is missing."""
    connectors, targets, statuses = {}, {}, {}
    for key, value in _latest(access, _named(props, "config.storage.topic")).items():
        if key.startswith(CONNECTOR) and value is not None:
            connectors[key.removeprefix(CONNECTOR)] = _texts(value["properties"])
        elif key.startswith(TARGET) and value is not None:
            targets[key.removeprefix(TARGET)] = value.get("state.v2") or value["state"]
    for key, value in _latest(access, _named(props, "status.storage.topic")).items():
        if key.startswith(STATUS) and value is not None:
            statuses[key.removeprefix(STATUS)] = {name: value.get(name) for name in ("state", "trace", "worker_id")}
    own = {config["offsets.storage.topic"] for config in connectors.values() if config.get("offsets.storage.topic")}
    offsets = {}
    for topic in (_named(props, "offset.storage.topic"), *sorted(own)):
        offsets.update(_latest(access, topic))
    found = [(*orjson.loads(key), value) for key, value in offsets.items() if value is not None]
    return Storage(connectors, targets, found, {name: status for name, status in statuses.items() if name in connectors})


def _named(props, key):
    if not props.get(key):
        raise NotFoundError(f"The properties have no {key}: this is not a distributed worker's file.")
    return props[key]


def _latest(access, topic):
    """{key: last value} of a compacted topic of JSON; the keys of the offset topic, which are lists, as text."""
    found = {}
    for _, _, records in access.read(access.ranges(access.partitions(topic))):
        for offset, _, key, value, _ in rows(records):
            try:
                found[key.decode()] = None if value is None else orjson.loads(value)
            except (ValueError, AttributeError):
                log.warning("Skipping the record at offset %d of %s: Connect did not write it", offset, topic)
    return found


def _texts(properties):
    return {key: value for key, value in properties.items() if value is not None}


def store_offsets(path, storage):
    """Write the offsets to the offsets file of a worker that is not running; returns their number."""
    file = OffsetsFile(path).open()
    try:
        by_connector = {}
        for connector, partition, offset in storage.offsets:
            by_connector.setdefault(connector, []).append((partition, offset))
        for connector, entries in by_connector.items():
            file.append(connector, entries)
    finally:
        file.close()
    return len(storage.offsets)
