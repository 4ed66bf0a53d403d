"""What a distributed Connect worker has: its properties, and what its three storage topics hold, read for who moves from it.

    worker_keys(props, folder)     the keys of a worker of ours, and what has happened to each of theirs
    read_storage(log, props)       Storage: connectors, target states, source offsets, last statuses

The topics are read to their ends, and nothing is written to them. Sinks need nothing: their groups are connect-NAME in both modes and continue
there.
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
STATES = {"STARTED": "RUNNING", "PAUSED": "PAUSED", "STOPPED": "STOPPED"}  # of the config topic -> initial_state of a connector's file

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
    """(properties for a worker of ours, [Became] of every key that is not taken as it is)"""
    kept, said = {}, []
    exactly_once = props.get("exactly.once.source.support", "disabled").strip().lower() == "enabled"
    for key, value in props.items():
        if key == "group.id":
            said.append(Became(key, "no group of workers: one worker has all connectors. Sinks continue in their own groups, connect-NAME"))
        elif key.startswith(_TOPICS):
            said.append(Became(key, "connectors are in files beside this one; what REST changes is kept in state.dir"))
        elif key.startswith(_OFFSETS) and not exactly_once:
            said.append(Became(key, f"source offsets are in offset.storage.file.filename ({_offsets_file(folder)})"))
        elif key in _WITHOUT_A_GROUP or key.startswith(_BETWEEN_WORKERS):
            said.append(Became(key, "left out: there are no other workers to agree with"))
        else:
            kept[key] = value
            if key == "plugin.path":
                said.append(Became(key, "kept; folders with jars bring nothing here: name those of Python plugins"))
    kept["offset.storage.file.filename"] = _offsets_file(folder)
    said.append(Became("offset.storage.file.filename", "new: where source offsets are kept"))
    if spark_master:
        kept["spark.master"], kept["tasks.run.on"] = spark_master, "cluster"
        said.append(Became("tasks.run.on", f"new: tasks run on the executors of {spark_master}"))
    return kept, said


def _offsets_file(folder):
    return os.path.join(os.path.abspath(folder), "connect.offsets")


def storage_access(config):
    """The LogAccess by which a distributed worker reads its topics: with the worker's keys that have no prefix."""
    properties = config.client("admin")
    kinds = {kind: dict(properties) for kind in ("admin", "producer", "consumer")}
    kinds["consumer"].update({"isolation.level": "read_committed", "auto.offset.reset": "earliest", "allow.auto.create.topics": "false"})
    return LogAccess(kinds)


def read_storage(access, props):
    """What the topics of that distributed worker hold. Raises NotFoundError where one is not there."""
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
        raise NotFoundError(f"The properties name no {key}: they are not those of a distributed worker.")
    return props[key]


def _latest(access, topic):
    """{key: last value} of a compacted topic of JSON; of the offsets' keys, which are lists, the text."""
    found = {}
    for _, _, records in access.read(access.ranges(access.partitions(topic))):
        for offset, _, key, value, _ in rows(records):
            try:
                found[key.decode()] = None if value is None else orjson.loads(value)
            except (ValueError, AttributeError):
                log.warning("The record at offset %d of %s is none of Connect's, and is skipped", offset, topic)
    return found


def _texts(properties):
    return {key: value for key, value in properties.items() if value is not None}


def store_offsets(path, storage):
    """Into the offsets file of a worker that does not run; how many there are."""
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
