"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, WriteTxnMarkers; DescribeTransactions, ListTransactions,
DescribeProducers.

Each handler gets the node, its call and the decoded request; it returns the response, or None if the response follows later.
The logic is in transactions.py. Not implemented: external two-phase commit (InitProducerId 6).
"""

import re

from kafka.protocol.admin import DescribeProducersResponse, DescribeTransactionsResponse, ListTransactionsResponse
from kafka.protocol.producer import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkersResponse,
)

from standalone.log.broker.groups import MAX_METADATA
from standalone.log.broker.member import Committed
from standalone.log.broker.operations import ALTER, CLUSTER, GROUP, IDEMPOTENT_WRITE, TOPIC, TRANSACTIONAL_ID, WRITE
from standalone.log.broker.refusal import NONE, InvalidRegularExpression, Refusal, codes
from standalone.log.broker.transactions import STATES


def _code(call, refusal, fenced_from):
    """Map PRODUCER_FENCED for versions before `fenced_from`, which do not know it."""
    if refusal.code == codes.ProducerFencedError.errno and call.version < fenced_from:
        return codes.InvalidProducerEpochError.errno
    return refusal.code


def init_producer_id(node, call, request):
    """Versions 0-5. A new id for an idempotent producer; a transactional id keeps its own and fences its previous producer."""
    try:
        if request.transactional_id is not None:
            call.require(TRANSACTIONAL_ID, request.transactional_id)
        elif not call.may_some(TOPIC, WRITE):
            call.require(CLUSTER, operation=IDEMPOTENT_WRITE)
        if request.transactional_id is None:
            producer_id, epoch = node.store.new_producer_id(), 0
        else:
            producer_id, epoch = node.transactions.begin_producer(
                request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
            )
        return InitProducerIdResponse(version=call.version, error_code=NONE, producer_id=producer_id, producer_epoch=epoch)
    except Refusal as refusal:
        error = _code(call, refusal, 4)
        if error == codes.KafkaStorageError.errno:
            # The disk is full: clients retry after this code, but not after KAFKA_STORAGE_ERROR.
            error = codes.CoordinatorNotAvailableError.errno
        return InitProducerIdResponse(version=call.version, error_code=error, producer_id=-1, producer_epoch=-1)


def add_partitions(node, call, request):
    """Versions 0-3. Adds all partitions or none."""
    Topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    keys = {(topic.name, number) for topic in request.v3_and_below_topics for number in topic.partitions}
    forbidden = {key for key in keys if not call.may(TOPIC, key[0])}
    missing = {key for key in keys if key in forbidden or not _exists(node, *key)}
    error = NONE
    try:
        call.require(TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
        transaction = node.transactions.check(
            request.v3_and_below_transactional_id, request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        )
        if not missing:
            node.transactions.add_partitions(transaction, keys)
    except Refusal as refusal:
        error, missing = _code(call, refusal, 2), set()

    def code(key):
        if not missing:
            return error
        if key in forbidden:
            return codes.TopicAuthorizationFailedError.errno
        return codes.UnknownTopicOrPartitionError.errno if key in missing else codes.OperationNotAttemptedError.errno

    topics = [
        Topic(
            version=call.version,
            name=topic.name,
            results_by_partition=[
                Topic.AddPartitionsToTxnPartitionResult(
                    version=call.version, partition_index=number, partition_error_code=code((topic.name, number))
                )
                for number in topic.partitions
            ],
        )
        for topic in request.v3_and_below_topics
    ]
    return AddPartitionsToTxnResponse(version=call.version, results_by_topic_v3_and_below=topics)


def _exists(node, topic, number):
    try:
        node.topics.partition(topic, number)
    except Refusal:
        return False
    return True


def add_offsets(node, call, request):
    """Versions 0-4."""
    error = NONE
    try:
        call.require(GROUP, request.group_id)
        transaction = node.transactions.check(request.transactional_id, request.producer_id, request.producer_epoch)
        node.transactions.add_group(transaction, request.group_id)
    except Refusal as refusal:
        error = _code(call, refusal, 2)
    return AddOffsetsToTxnResponse(version=call.version, error_code=error)


def offset_commit(node, call, request):
    """Versions 0-5. The offsets apply once the transaction commits; a member's generation is checked from version 3 on.

    From version 5 on this also adds the group to the transaction.
    """
    Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    error, wanted, refused = NONE, {}, {}
    for topic in request.topics:
        for part in topic.partitions:
            key, metadata = (topic.name, part.partition_index), part.committed_metadata or ""
            if not call.may(TOPIC, topic.name):
                refused[key] = codes.TopicAuthorizationFailedError.errno
            elif len(metadata) > MAX_METADATA:
                refused[key] = codes.OffsetMetadataTooLargeError.errno
            else:
                wanted[key] = Committed(part.committed_offset, part.committed_leader_epoch, metadata)
    try:
        call.require(TRANSACTIONAL_ID, request.transactional_id)
        call.require(GROUP, request.group_id)
        transaction = node.transactions.check(request.transactional_id, request.producer_id, request.producer_epoch)
        group = node.groups.get(request.group_id)
        if request.generation_id >= 0 or request.member_id:
            if group is None:
                raise Refusal(codes.IllegalGenerationError)
            group.check_commit(request.member_id, request.group_instance_id, request.generation_id)
        if call.version >= 5:
            node.transactions.add_group(transaction, request.group_id)
        node.transactions.add_offsets(transaction, request.group_id, wanted)
    except Refusal as refusal:
        error = refusal.code
        if error == codes.ProducerFencedError.errno:
            error = codes.InvalidProducerEpochError.errno
        if error == codes.ConcurrentTransactionsError.errno or error == codes.KafkaStorageError.errno:
            error = codes.CoordinatorLoadInProgressError.errno  # the code after which clients retry
    topics = [
        Topic(
            version=call.version,
            name=topic.name,
            partitions=[
                Topic.TxnOffsetCommitResponsePartition(
                    version=call.version,
                    partition_index=part.partition_index,
                    error_code=refused.get((topic.name, part.partition_index), error),
                )
                for part in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return TxnOffsetCommitResponse(version=call.version, topics=topics)


def end(node, call, request):
    """Versions 0-5. Responds when the markers are written and the offsets committed; from version 5 on with the producer's next epoch."""

    def answer(error, producer_id=-1, epoch=-1):
        call.answer(EndTxnResponse(version=call.version, error_code=error, producer_id=producer_id, producer_epoch=epoch))

    def ended():
        answer(NONE, transaction.producer_id, transaction.epoch)

    try:
        if call.version >= 5:
            transaction = node.transactions.check_end(request.transactional_id, request.producer_id, request.producer_epoch)
            node.transactions.end_epoch(transaction, (request.producer_id, request.producer_epoch), request.committed, ended)
        else:
            transaction = node.transactions.check(request.transactional_id, request.producer_id, request.producer_epoch)
            node.transactions.end(transaction, request.committed, ended)
    except Refusal as refusal:
        error = _code(call, refusal, 2)
        answer(codes.CoordinatorNotAvailableError.errno if error == codes.KafkaStorageError.errno else error)


def write_markers(node, call, request):
    """Versions 1-2. An admin ends a transaction that hangs in a partition."""
    Marker = WriteTxnMarkersResponse.WritableTxnMarkerResult
    markers = []
    for marker in request.markers:
        topics = []
        for topic in marker.topics:
            parts = []
            for number in topic.partition_indexes:
                error = NONE
                try:
                    if not call.may(CLUSTER):
                        call.require(CLUSTER, operation=ALTER)
                    partition = node.topics.partition(topic.name, number)
                    size = partition.end_transaction(
                        marker.producer_id, marker.producer_epoch, marker.transaction_result, node.clock.now_ms()
                    )
                    node.appended(partition, size)
                except Refusal as refusal:
                    error = refusal.code
                Result = Marker.WritableTxnMarkerTopicResult.WritableTxnMarkerPartitionResult
                parts.append(Result(version=call.version, partition_index=number, error_code=error))
            topics.append(Marker.WritableTxnMarkerTopicResult(version=call.version, name=topic.name, partitions=parts))
        markers.append(Marker(version=call.version, producer_id=marker.producer_id, topics=topics))
    return WriteTxnMarkersResponse(version=call.version, markers=markers)


# --- Describing transactions


def describe_transactions(node, call, request):
    """Version 0."""
    State = DescribeTransactionsResponse.TransactionState
    found = []
    for name in request.transactional_ids:
        transaction = node.transactions.get(name)
        forbidden = not call.may(TRANSACTIONAL_ID, name)
        if transaction is None or forbidden:
            error = (codes.TransactionalIdAuthorizationFailedError if forbidden else codes.TransactionalIdNotFoundError).errno
            state = State(version=call.version, error_code=error, transactional_id=name, transaction_state="", topics=[])
        else:
            topics = {}
            for topic, number in sorted(key for key in transaction.partitions if call.may(TOPIC, key[0])):
                topics.setdefault(topic, []).append(number)
            state = State(
                version=call.version,
                error_code=NONE,
                transactional_id=name,
                transaction_state=transaction.state,
                transaction_timeout_ms=transaction.timeout_ms,
                transaction_start_time_ms=transaction.started_ms if transaction.partitions else -1,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                topics=[State.TopicData(version=call.version, topic=topic, partitions=numbers) for topic, numbers in topics.items()],
            )
        found.append(state)
    return DescribeTransactionsResponse(version=call.version, transaction_states=found)


def list_transactions(node, call, request):
    """Versions 0-2, filtered by state, producer id, duration and a pattern of the id."""
    State = ListTransactionsResponse.TransactionState
    now = node.clock.now_ms()
    pattern = getattr(request, "transactional_id_pattern", None)
    try:
        matches = re.compile(pattern).fullmatch if pattern else lambda name: True
    except re.error:
        error = InvalidRegularExpression.errno
        return ListTransactionsResponse(version=call.version, error_code=error, unknown_state_filters=[], transaction_states=[])
    age = getattr(request, "duration_filter", -1)
    states = [
        State(
            version=call.version,
            transactional_id=transaction.id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state,
        )
        for transaction in node.transactions
        if call.may(TRANSACTIONAL_ID, transaction.id)
        and (not request.state_filters or transaction.state in request.state_filters)
        and (not request.producer_id_filters or transaction.producer_id in request.producer_id_filters)
        and (age is None or age < 0 or (transaction.partitions and now - transaction.started_ms > age))
        and matches(transaction.id)
    ]
    unknown = [state for state in request.state_filters or () if state not in STATES]
    return ListTransactionsResponse(version=call.version, error_code=NONE, unknown_state_filters=unknown, transaction_states=states)


def describe_producers(node, call, request):
    """Version 0. The active producers of a partition."""
    Topic = DescribeProducersResponse.TopicResponse
    Part = Topic.PartitionResponse
    topics = []
    for wanted in request.topics:
        parts = []
        for number in wanted.partition_indexes:
            try:
                call.require(TOPIC, wanted.name)
                partition = node.topics.partition(wanted.name, number)
            except Refusal as refusal:
                parts.append(
                    Part(
                        version=call.version,
                        partition_index=number,
                        error_code=refusal.code,
                        error_message=refusal.message,
                        active_producers=[],
                    )
                )
                continue
            producers = [
                Part.ProducerState(
                    version=call.version,
                    producer_id=producer_id,
                    producer_epoch=producer.epoch,
                    last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
                    last_timestamp=producer.seen_ms,
                    coordinator_epoch=0,
                    current_txn_start_offset=-1 if producer.transaction_start is None else producer.transaction_start,
                )
                for producer_id, producer in partition.producers.items()
            ]
            parts.append(
                Part(version=call.version, partition_index=number, error_code=NONE, error_message=None, active_producers=producers)
            )
        topics.append(Topic(version=call.version, name=wanted.name, partitions=parts))
    return DescribeProducersResponse(version=call.version, topics=topics)
