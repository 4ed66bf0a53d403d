"""Produce requests and responses, without an object for each field.

They are most of the requests of a busy log, and kafka-python, which interprets message definitions, takes longer to decode one than the disk
to write its records. This code reads a request in one pass. A partition's batch is a view of the receive buffer, never a copy; its outcome is
stored next to it and encoded from there. tests/log/test_produce_messages.py compares both with kafka-python's, in every version.
"""

from struct import Struct
from uuid import UUID

from kafka.protocol.api_message import ApiMessage

from standalone.log.broker.primitives import INT, NO_TAGS, SHORT, count_bytes, not_null, skip_tags, string, text_bytes, varint, view
from standalone.log.broker.refusal import NONE

UNKNOWN = -1
_WITH_START, _WITH_MESSAGE, _FLEXIBLE, _BY_ID = 5, 8, 9, 13  # the first versions with these fields
_TWO_INTS = Struct(">ii")
_ACKS, _ACKS_AND_COUNT = Struct(">hi"), Struct(">hii")
_OUTCOME, _OUTCOME_AND_START = Struct(">ihqq"), Struct(">ihqqq")
_UUID_BYTES = 16
_NO_ERRORS, _NOT_THROTTLED = (b"\0\0\0\0", b"\1"), b"\0\0\0\0"


class PartitionData:
    """A partition's batch, or None, and its outcome."""

    __slots__ = ("index", "records", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "error_message", "kept_in")

    def __init__(self, index, records):
        self.index = index
        self.records = records
        self.error_code = NONE
        self.base_offset = self.log_append_time_ms = self.log_start_offset = UNKNOWN
        self.error_message = None
        self.kept_in = None  # the partition to which it was appended

    def keep(self, partition, base_offset, append_time):
        self.base_offset, self.log_append_time_ms = base_offset, append_time
        self.kept_in = partition
        self.records = None  # the buffer may be reused

    def refuse(self, refusal):
        self.error_code, self.base_offset, self.error_message = refusal.code, UNKNOWN, refusal.message
        self.records = None


class TopicData:
    __slots__ = ("name", "topic_id", "partitions")

    def __init__(self, name, topic_id, partitions):
        self.name = name
        self.topic_id = topic_id  # identifies it from version 13 on
        self.partitions = partitions


class Produce:
    """A decoded request."""

    __slots__ = ("transactional_id", "acks", "timeout_ms", "topics")

    def __init__(self, transactional_id, acks, timeout_ms, topics):
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics

    def partitions(self):
        for topic in self.topics:
            yield from topic.partitions


class ProduceRequest(ApiMessage):
    """kafka-python's definition, with another `decode`."""

    @classmethod
    def decode(cls, data, version=None, header=False, framed=False):
        """Decode a `Produce` after the header. Raises ValueError, StructError, LookupError or EOFError if it is malformed."""
        data = memoryview(data)
        return _read_flexible(data, version) if version >= _FLEXIBLE else _read(data)


class ProduceResponse:
    """The response, in the form that `Call.answer` takes."""

    __slots__ = ("version", "topics", "_correlation_id")

    def __init__(self, version, topics):
        self.version = version
        self.topics = topics
        self._correlation_id = 0

    def with_header(self, correlation_id):
        self._correlation_id = correlation_id

    def encode(self, header=True, framed=True):
        """The encoded response with its header and length prefix."""
        version = self.version
        flexible = version >= _FLEXIBLE
        pieces = [NO_TAGS if flexible else b"", count_bytes(len(self.topics), flexible)]
        for topic in self.topics:
            pieces.append(topic.topic_id.bytes if version >= _BY_ID else text_bytes(topic.name, flexible))
            pieces.append(count_bytes(len(topic.partitions), flexible))
            pieces += [_outcome(part, version, flexible) for part in topic.partitions]
            if flexible:
                pieces.append(NO_TAGS)
        pieces.append(_NOT_THROTTLED + NO_TAGS if flexible else _NOT_THROTTLED)
        body = b"".join(pieces)
        return _TWO_INTS.pack(INT.size + len(body), self._correlation_id) + body


# --- Reading


def _read(data):
    """Versions 3-8."""
    (length,) = SHORT.unpack_from(data)
    transactional_id, at = string(data, SHORT.size, length) if length >= 0 else (None, SHORT.size)
    acks, timeout_ms, topic_count = _ACKS_AND_COUNT.unpack_from(data, at)
    at += _ACKS_AND_COUNT.size
    topics = []
    for _ in range(not_null(topic_count, "topic_data")):
        (length,) = SHORT.unpack_from(data, at)
        name, at = string(data, at + SHORT.size, not_null(length, "name"))
        (partition_count,) = INT.unpack_from(data, at)
        at += INT.size
        partitions = []
        for _ in range(not_null(partition_count, "partition_data")):
            index, length = _TWO_INTS.unpack_from(data, at)
            records, at = view(data, at + _TWO_INTS.size, length)
            partitions.append(PartitionData(index, records))
        topics.append(TopicData(name, None, partitions))
    return Produce(transactional_id, acks, timeout_ms, topics)


def _read_flexible(data, version):
    """From version 9 on."""
    size, at = varint(data, 0)
    transactional_id, at = string(data, at, size - 1) if size else (None, at)
    acks, timeout_ms = _ACKS.unpack_from(data, at)
    size, at = varint(data, at + _ACKS.size)
    topics = []
    for _ in range(not_null(size - 1, "topic_data")):
        name = topic_id = None
        if version >= _BY_ID:
            topic_id, at = UUID(bytes=bytes(data[at : at + _UUID_BYTES])), at + _UUID_BYTES
        else:
            size, at = varint(data, at)
            name, at = string(data, at, not_null(size - 1, "name"))
        size, at = varint(data, at)
        partitions = []
        for _ in range(not_null(size - 1, "partition_data")):
            (index,) = INT.unpack_from(data, at)
            size, at = varint(data, at + INT.size)
            records, at = view(data, at, size - 1)
            at = skip_tags(data, at)
            partitions.append(PartitionData(index, records))
        at = skip_tags(data, at)
        topics.append(TopicData(name, topic_id, partitions))
    skip_tags(data, at)
    return Produce(transactional_id, acks, timeout_ms, topics)


# --- Writing


def _outcome(part, version, flexible):
    row = part.index, part.error_code, part.base_offset, part.log_append_time_ms
    encoded = _OUTCOME.pack(*row) if version < _WITH_START else _OUTCOME_AND_START.pack(*row, part.log_start_offset)
    if version >= _WITH_MESSAGE:
        encoded += _NO_ERRORS[flexible] + text_bytes(part.error_message, flexible)
    return encoded + NO_TAGS if flexible else encoded
