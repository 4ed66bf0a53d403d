"""The Fetch request, and a decoder for its response that does not copy records.

kafka-python's decoder would copy every byte of the records, so the few fields around them are decoded here.
"""

import collections
import struct
import uuid

from kafka.protocol.consumer import FetchRequest

from standalone.kernels import BYTES, LONG, compiled
from standalone.log.broker_errors import disconnected

BY_ID = 13  # from this version on topics are identified by id
FETCH_CEILING = 17  # the highest version supported here
SESSION_NONE, EPOCH_NONE = 0, -1
BATCH_HEADER = 61

Answer = collections.namedtuple("Answer", "topic partition error_code high_watermark stable_offset aborted replica records")
Answer.__doc__ = """One partition of a response. topic: its id or name, as requested; aborted: [(producer id, first offset)];
replica: the id of the preferred read replica (KIP-392), or -1."""


def request(wanted, *, min_bytes, max_wait_ms, max_bytes, partition_bytes, isolation, rack):
    """Build (message, version ceiling) from [(topic name, topic id or None, partition, offset, leader epoch or -1)]."""
    ceiling = FETCH_CEILING if all(each[1] for each in wanted) else BY_ID - 1
    topics = {}
    for name, topic_id, partition, offset, leader_epoch in wanted:
        topics.setdefault((name, topic_id), []).append(FetchRequest.FetchTopic.FetchPartition(
            partition=partition, current_leader_epoch=leader_epoch, fetch_offset=offset, last_fetched_epoch=-1, log_start_offset=-1,
            partition_max_bytes=partition_bytes))
    message = FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=SESSION_NONE,
        session_epoch=EPOCH_NONE,
        topics=[FetchRequest.FetchTopic(topic=name, topic_id=key, partitions=parts) for (name, key), parts in topics.items()],
        forgotten_topics_data=[],
        rack_id=rack,
    )
    return message, ceiling


def read(body, version):
    """Decode a response into (top-level error code, [Answer]); each `records` is a slice of `body`, or None."""
    try:
        return _Walk(body, version).answer()
    except (struct.error, IndexError, ValueError, OverflowError) as problem:
        raise disconnected(f"A broker's answer to Fetch (version {version}, {len(body)} bytes) cannot be read: {problem}.") from problem


class _Walk:
    def __init__(self, body, version):
        self._body, self._at, self._version = body, 0, version
        self._flexible = version >= 12

    def answer(self):
        self._take(">i")  # throttle time
        error_code = 0
        if self._version >= 7:
            error_code, _ = self._take(">hi")
        answers = []
        for _ in range(self._length()):
            topic = self._uuid() if self._version >= BY_ID else self._string()
            answers.extend([self._partition(topic) for _ in range(self._length())])
            self._tags()
        return error_code, answers

    def _partition(self, topic):
        index, error_code, high_watermark, stable_offset = self._take(">ihqq")
        if self._version >= 5:
            self._take(">q")  # log start offset
        aborted = []
        for _ in range(self._length()):
            aborted.append(self._take(">qq"))
            self._tags()
        replica = self._take(">i")[0] if self._version >= 11 else -1
        size = self._length()
        records = self._body[self._at : self._at + size] if size > 0 else None
        self._at += max(size, 0)
        self._tags()
        return Answer(topic, index, error_code, high_watermark, stable_offset, aborted, replica, records)

    def _take(self, kinds):
        values = struct.unpack_from(kinds, self._body, self._at)
        self._at += struct.calcsize(kinds)
        return values

    def _varint(self):
        value = shift = 0
        while True:
            byte = self._body[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _length(self):
        """Length of an array or of records; 0 for null."""
        return max(0, self._varint() - 1 if self._flexible else self._take(">i")[0])

    def _string(self):
        size = self._varint() - 1 if self._flexible else self._take(">h")[0]
        self._at += size
        return str(self._body[self._at - size : self._at], "utf-8")

    def _uuid(self):
        self._at += 16
        return uuid.UUID(bytes=bytes(self._body[self._at - 16 : self._at]))

    def _tags(self):
        """Skip tagged fields."""
        if self._flexible:
            for _ in range(self._varint()):
                self._varint()
                size = self._varint()
                self._at += size


@compiled
def next_offset(data: BYTES, offset: LONG):
    """Return (offset after the last whole batch of `data`, its leader epoch), so that the next fetch can be sent before `unpack`;
    (`offset`, -1) if there is no batch."""
    at = 0
    epoch = -1
    while len(data) - at >= BATCH_HEADER:
        base = 0
        for byte in range(8):
            base = (base << 8) | int(data[at + byte])
        length = last = taken = 0
        for byte in range(4):
            length = (length << 8) | int(data[at + 8 + byte])
            taken = (taken << 8) | int(data[at + 12 + byte])
            last = (last << 8) | int(data[at + 23 + byte])
        if data[at] >= 128 or data[at + 16] != 2 or length < BATCH_HEADER - 12 or length > len(data) - at - 12 or last >= 1 << 31:
            break
        offset = max(offset, base + last + 1)
        epoch = taken if taken < 1 << 31 else -1
        at += 12 + length
    return offset, epoch
