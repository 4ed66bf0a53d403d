"""The bytes of MirrorMaker 2's own records: checkpoints, offset syncs and heartbeats, in Kafka's protocol types.

Numbers are big-endian, a string is its length in two bytes and its UTF-8. Values of checkpoints and heartbeats begin with a version, 0.
"""

import collections
import struct

VERSION = 0

# A group's offset in a partition: `upstream` on the source, `downstream` on the target.
Checkpoint = collections.namedtuple("Checkpoint", "group topic partition upstream downstream metadata")

# The record at `upstream` of a source partition has offset `downstream` on the target.
OffsetSync = collections.namedtuple("OffsetSync", "topic partition upstream downstream")

Heartbeat = collections.namedtuple("Heartbeat", "source target timestamp")


def checkpoint_key(each):
    return _text(each.group) + _text(each.topic) + struct.pack(">i", each.partition)


def checkpoint_value(each):
    return struct.pack(">hqq", VERSION, each.upstream, each.downstream) + _text(each.metadata)


def read_checkpoint(key, value):
    group, at = _read_text(key, 0)
    topic, at = _read_text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    _, upstream, downstream = struct.unpack_from(">hqq", value)
    metadata, _ = _read_text(value, 18)
    return Checkpoint(group, topic, partition, upstream, downstream, metadata)


def sync_key(each):
    return _text(each.topic) + struct.pack(">i", each.partition)


def sync_value(each):
    return struct.pack(">qq", each.upstream, each.downstream)


def read_sync(key, value):
    topic, at = _read_text(key, 0)
    (partition,) = struct.unpack_from(">i", key, at)
    return OffsetSync(topic, partition, *struct.unpack(">qq", value))


def heartbeat_key(each):
    return _text(each.source) + _text(each.target)


def heartbeat_value(each):
    return struct.pack(">hq", VERSION, each.timestamp)


def read_heartbeat(key, value):
    source, at = _read_text(key, 0)
    target, _ = _read_text(key, at)
    return Heartbeat(source, target, struct.unpack(">hq", value)[1])


def _text(text):
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _read_text(data, at):
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length
