"""The Produce request, encoded without joining or copying batches.

kafka-python's encoder copies each batch twice while it holds the GIL, which costs more than packing and sending it. So the few bytes
around the batches are encoded here. A test compares the result with kafka-python's.
"""

import struct

from kafka.protocol.producer import ProduceRequest

# From version 13 on topics are identified by id, so the broker rejects records for a topic that was recreated; by name they reach
# the new topic.
HIGHEST_VERSION = 12
LOWEST_VERSION = 3


def produce_body(version, acks, timeout_ms, batches, transactional_id=None):
    """Return the body as a list of buffers; `batches` are (topic, partition, data), grouped by topic."""
    flexible = ProduceRequest.flexible_version_q(version)
    topics = {}
    for topic, partition, data in batches:
        topics.setdefault(topic, []).append((partition, data))
    head = _nullable(transactional_id, flexible) + struct.pack(">hi", acks, timeout_ms)
    parts = [head + _count(len(topics), flexible)]
    for topic, partitions in topics.items():
        name = topic.encode()
        length = unsigned_varint(len(name) + 1) if flexible else struct.pack(">h", len(name))
        parts.append(length + name + _count(len(partitions), flexible))
        for partition, data in partitions:
            size = unsigned_varint(len(data) + 1) if flexible else struct.pack(">i", len(data))
            parts += (struct.pack(">i", partition) + size, data)
            parts += (b"\x00",) if flexible else ()  # no tagged fields: of the partition, of the topic, of the request
        parts += (b"\x00",) if flexible else ()
    parts += (b"\x00",) if flexible else ()
    return parts


def _nullable(text, flexible):
    if text is None:
        return b"\x00" if flexible else b"\xff\xff"
    data = text.encode()
    return (unsigned_varint(len(data) + 1) if flexible else struct.pack(">h", len(data))) + data


def _count(items, flexible):
    return unsigned_varint(items + 1) if flexible else struct.pack(">i", items)


def unsigned_varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
