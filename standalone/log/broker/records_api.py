"""Fetch, ListOffsets, DeleteRecords: one function per request.

Each handler gets the node, its call and the decoded request; it returns the response, or None if the response follows later.
"""

from kafka.protocol.admin import DeleteRecordsResponse
from kafka.protocol.consumer import ListOffsetsResponse, OffsetSpec

from standalone.errors import CorruptBatchError
from standalone.log.broker import lookup
from standalone.log.broker.opaque import FetchResponse
from standalone.log.broker.partitions import LEADER_EPOCH
from standalone.log.broker.refusal import NONE, Refusal, codes

EARLIEST_LOCAL, LATEST_TIERED = -4, -5
NO_OFFSET, NO_TIME = -1, -1
READ_COMMITTED = 1


def fetch(node, call, request):
    """Versions 4-17. Whole batches from the one with the offset on; the first is returned even if it exceeds max bytes.

    Waits up to max wait for min bytes and responds as soon as they are available. read_committed ends at the last stable offset and lists the
    aborted transactions. Not implemented: fetch sessions (responds with session id 0, so clients send full fetches), followers and
    preferred replicas.
    """
    if request.session_id:
        response = FetchResponse(version=call.version, error_code=codes.FetchSessionIdNotFoundError.errno, session_id=0, responses=[])
        call.answer_spliced(response)
        return
    _Fetch(node, call, request).begin()


class _Fetch:
    """One fetch, which may wait on several partitions."""

    def __init__(self, node, call, request):
        self._node = node
        self._call = call
        self._request = request
        self._waits_in = []
        self._missing = 0
        self._timer = None
        self._committed_only = request.isolation_level == READ_COMMITTED

    def _bound(self, partition):
        return partition.last_stable_offset if self._committed_only else None

    def begin(self):
        request = self._request
        missing, partitions = max(request.min_bytes, 0), []
        if request.max_wait_ms > 0 and missing:
            for wanted in request.topics:
                for part in wanted.partitions:
                    try:
                        partition = self._look_up(wanted, part)
                        missing -= min(partition.available(part.fetch_offset, self._bound(partition)), part.partition_max_bytes)
                    except Refusal:
                        missing = 0  # respond at once with an error
                        break
                    partitions.append(partition)
        if not partitions or missing <= 0 or request.max_wait_ms <= 0:
            self._answer()
            return
        self._missing = missing
        self._waits_in = partitions
        for partition in partitions:
            partition.waiting.add(self)
        self._timer = self._node.timers.after(request.max_wait_ms / 1000, self._answer)
        self._call.on_hang_up = self._give_up

    def wake(self, more):
        """Called when `more` bytes were appended, or with None when waiting is pointless."""
        self._missing -= more if more is not None else self._missing
        if self._missing <= 0:
            self._answer()

    def _give_up(self):
        for partition in self._waits_in:
            partition.waiting.discard(self)
        self._waits_in = []
        if self._timer:
            self._timer.cancel()

    def _answer(self):
        self._give_up()
        version, room, is_first = self._call.version, self._request.max_bytes, True
        Topic = FetchResponse.FetchableTopicResponse
        topics = []
        for wanted in self._request.topics:
            parts = []
            for part in wanted.partitions:
                answer = Topic.PartitionData(
                    version=version, partition_index=part.partition, error_code=NONE, aborted_transactions=[], records=None
                )
                try:
                    partition = self._look_up(wanted, part)
                    answer.records = partition.read(part.fetch_offset, min(part.partition_max_bytes, room), is_first, self._bound(partition))
                    answer.high_watermark, answer.last_stable_offset = partition.high_watermark, partition.last_stable_offset
                    if self._committed_only:
                        aborted = partition.aborted.between(part.fetch_offset, partition.last_stable_offset) if answer.records else ()
                        answer.aborted_transactions = [
                            Topic.PartitionData.AbortedTransaction(version=version, producer_id=row.producer_id, first_offset=row.first)
                            for row in aborted
                        ]
                    answer.log_start_offset = partition.start
                except Refusal as refusal:
                    answer.error_code, answer.high_watermark = refusal.code, NO_OFFSET
                if answer.records:
                    is_first = False
                    room = max(room - answer.records.length, 0)
                parts.append(answer)
            topics.append(Topic(version=version, topic=wanted.topic, topic_id=wanted.topic_id, partitions=parts))
        self._call.answer_spliced(FetchResponse(version=version, session_id=0, responses=topics))

    def _look_up(self, wanted, part):
        partition = lookup.partition(self._node, self._call, wanted.topic, wanted.topic_id, part.partition, by_id=self._call.version >= 13)
        if part.current_leader_epoch > LEADER_EPOCH:
            raise Refusal(codes.UnknownLeaderEpochError)
        if not partition.start <= part.fetch_offset <= partition.end:
            raise Refusal(codes.OffsetOutOfRangeError)
        return partition


def list_offsets(node, call, request):
    """Versions 1-10. By time, earliest (-2), latest (-1), largest timestamp (-3).

    There is no tiered storage: earliest local (-4) equals earliest, latest tiered (-5) is none.
    """
    Topic = ListOffsetsResponse.ListOffsetsTopicResponse
    topics, committed_only = [], request.isolation_level == READ_COMMITTED
    for wanted in request.topics:
        parts = []
        for part in wanted.partitions:
            answer = Topic.ListOffsetsPartitionResponse(version=call.version, partition_index=part.partition_index, error_code=NONE)
            try:
                partition = lookup.partition(node, call, wanted.name, None, part.partition_index)
                answer.timestamp, answer.offset = offset_for(partition, part.timestamp, committed_only)
                answer.leader_epoch = LEADER_EPOCH if answer.offset != NO_OFFSET else -1
            except Refusal as refusal:
                answer.error_code = refusal.code
            parts.append(answer)
        topics.append(Topic(version=call.version, name=wanted.name, partitions=parts))
    return ListOffsetsResponse(version=call.version, topics=topics)


def offset_for(partition, timestamp, committed_only):
    """(timestamp, offset)"""
    if timestamp == OffsetSpec.LATEST:
        return NO_TIME, partition.last_stable_offset if committed_only else partition.high_watermark
    if timestamp in (OffsetSpec.EARLIEST, EARLIEST_LOCAL):
        return NO_TIME, partition.start
    if timestamp == LATEST_TIERED:
        return NO_TIME, NO_OFFSET
    if timestamp == OffsetSpec.MAX_TIMESTAMP:
        timestamp = partition.max_timestamp
        if timestamp < 0:
            return NO_TIME, NO_OFFSET
    if timestamp < 0:
        raise Refusal(codes.InvalidRequestError, f"{timestamp} is no time that ListOffsets knows.")
    for header, batch in partition.since(timestamp):
        found = _first_since(header, batch, timestamp, partition.start)
        if found:
            return found
    return NO_TIME, NO_OFFSET


def _first_since(header, batch, timestamp, start):
    """Return (timestamp, offset) of the first record in the batch at or after `timestamp`."""
    from standalone.log import record_batch  # imports numba, which little else here needs

    try:
        found = record_batch.unpack(batch, from_offset=start, check_crc=False).records
    except CorruptBatchError:
        return header.max_timestamp, max(header.base_offset, start)  # records cannot be decoded: use the header
    for records in found:
        times = records.timestamps.tolist() if records.timestamps is not None else [NO_TIME] * len(records)
        for row, time_ms in enumerate(times):
            if time_ms >= timestamp:
                return time_ms, int(records.offsets[row])
    return None


def delete_records(node, call, request):
    """Versions 0-2. Move the partition's start to the given offset (-1: its end) and delete segments wholly before it."""
    Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
    topics = []
    for wanted in request.topics:
        parts = []
        for part in wanted.partitions:
            answer = Topic.DeleteRecordsPartitionResult(version=call.version, partition_index=part.partition_index, error_code=NONE)
            try:
                partition = lookup.partition(node, call, wanted.name, None, part.partition_index)
                node.topics.trim(partition, partition.high_watermark if part.offset == -1 else part.offset)
                answer.low_watermark = partition.start
            except Refusal as refusal:
                answer.error_code, answer.low_watermark = refusal.code, NO_OFFSET
            parts.append(answer)
        topics.append(Topic(version=call.version, name=wanted.name, partitions=parts))
    return DeleteRecordsResponse(version=call.version, topics=topics)
