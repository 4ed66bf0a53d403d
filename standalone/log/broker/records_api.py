"""Produce, Fetch, ListOffsets, DeleteRecords: one handler per request.

Each handler gets the node, its call and the decoded request; it returns the response, or None if the response follows later.
"""

from kafka.protocol.admin import DeleteRecordsResponse
from kafka.protocol.consumer import ListOffsetsResponse, OffsetSpec
from kafka.protocol.producer import ProduceResponse

from standalone.errors import CorruptBatchError
from standalone.log import batch_header
from standalone.log.broker.opaque import FetchResponse
from standalone.log.broker.operations import TOPIC, TRANSACTIONAL_ID
from standalone.log.broker.options import FSYNC
from standalone.log.broker.partitions import LEADER_EPOCH
from standalone.log.broker.refusal import NONE, Refusal, codes

ZSTD = 4
JOINS_BY_ITSELF = 12  # the version of Produce (KIP-890)
EARLIEST_LOCAL, LATEST_TIERED = -4, -5
NO_OFFSET, NO_TIME = -1, -1
READ_COMMITTED = 1


def produce(node, call, request):
    """Versions 3-13. One batch per partition: validated, assigned an offset, written; fsynced later (embedded.log.flush.interval.ms).

    acks 1 and -1 are the same on one node; with acks 0 there is no response, and an error closes the connection, as in Kafka.
    A transactional batch must belong to an ongoing transaction of the partition; from version 12 on it adds the partition to it.
    Not implemented: quotas; record-level errors (a batch is accepted or rejected as a whole).
    """
    Topic = ProduceResponse.TopicProduceResponse
    now, refused = node.clock.now_ms(), False
    topics, wakes, kept = [], [], []
    forbidden = _why_no_transaction(call, request)
    for wanted in request.topic_data:
        partitions = []
        for part in wanted.partition_data:
            answer = Topic.PartitionProduceResponse(version=call.version, index=part.index, error_code=NONE, record_errors=[])
            try:
                if forbidden:
                    raise forbidden
                partition = _partition(node, call, wanted.name, wanted.topic_id, part.index, by_id=call.version >= 13)
                _check_produce(request, call.version, part.records)
                _check_transaction(node, request, partition, part.records, joins=call.version >= JOINS_BY_ITSELF)
                answer.log_start_offset = partition.start
                end = partition.end
                appended = partition.append(part.records, now)
                answer.base_offset, answer.log_append_time_ms = appended
                kept.append(partition)
                if partition.end != end:
                    wakes.append((partition, len(part.records)))
            except Refusal as refusal:
                refused = True
                answer.error_code, answer.base_offset, answer.error_message = refusal.code, NO_OFFSET, refusal.message
            partitions.append(answer)
        topics.append(Topic(version=call.version, name=wanted.name, topic_id=wanted.topic_id, partition_responses=partitions))
    for partition, size in wakes:
        node.appended(partition, size)
    if request.acks != 0:
        response = ProduceResponse(version=call.version, responses=topics)
        if not kept or node.settings["embedded.log.acks"] != FSYNC:
            return response
        # A duplicate also waits for the flush: the original may not be durable yet.
        node.flush(lambda errors: _acknowledge(call, response, errors), [*kept, node.store])
        return None
    if refused:
        call.hang_up("a produce request without acks was refused")
    else:
        call.no_answer()
    return None


def _why_no_transaction(call, request):
    try:
        if request.transactional_id is not None:
            call.require(TRANSACTIONAL_ID, request.transactional_id)
    except Refusal as refusal:
        return refusal
    return None


def _acknowledge(call, response, errors):
    """Respond after the flush; if the disk has failed, acknowledge no batch."""
    for topic in response.responses if errors else ():
        for part in topic.partition_responses:
            if part.error_code == NONE:
                part.error_code, part.base_offset, part.error_message = codes.KafkaStorageError.errno, NO_OFFSET, errors[0]
    call.answer(response)


def _check_produce(request, version, records):
    if request.acks not in (-1, 0, 1):
        raise Refusal(codes.InvalidRequiredAcksError, f"acks={request.acks} is none of -1, 0, 1.")
    if version < 7 and records is not None and len(records) >= batch_header.HEADER.size:
        if records[batch_header.ATTRIBUTES_AT + 1] & batch_header.CODEC_MASK == ZSTD:
            raise Refusal(codes.UnsupportedCompressionTypeError, "zstd needs version 7 of the produce request.")


def _check_transaction(node, request, partition, records, joins):
    if records is None or len(records) < batch_header.HEADER.size or records[batch_header.MAGIC_AT] != batch_header.MAGIC:
        return  # rejected by the partition
    header = batch_header.parse_header(records)
    if header.is_transactional:
        if request.transactional_id is None:
            raise Refusal(codes.InvalidTxnStateError, "A transactional batch came without a transactional id.")
        if joins:
            node.transactions.join(request.transactional_id, partition, header)
        else:
            node.transactions.check_batch(partition, header)


def _partition(node, call, name, topic_id, number, by_id=False):
    """Find the partition by topic name, or by topic id in newer versions. Raise Refusal if it is unknown or not allowed."""
    if by_id:
        topic = node.topics.by_id(topic_id)
        if topic is None:
            raise Refusal(codes.UnknownTopicIdError, f"There is no topic with the id {topic_id}.")
        name = topic.name
    call.require(TOPIC, name)
    return node.topics.partition(name, number)


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
        partition = _partition(self._node, self._call, wanted.topic, wanted.topic_id, part.partition, by_id=self._call.version >= 13)
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
                partition = _partition(node, call, wanted.name, None, part.partition_index)
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
                partition = _partition(node, call, wanted.name, None, part.partition_index)
                node.topics.trim(partition, partition.high_watermark if part.offset == -1 else part.offset)
                answer.low_watermark = partition.start
            except Refusal as refusal:
                answer.error_code, answer.low_watermark = refusal.code, NO_OFFSET
            parts.append(answer)
        topics.append(Topic(version=call.version, name=wanted.name, partitions=parts))
    return DeleteRecordsResponse(version=call.version, topics=topics)
