"""The Produce request: from one client, or from many at once.

With many connections, most turns of the owner's loop find several of these requests. They are then processed together (`Together`): batches
for one partition are appended in one write with one wake-up of its waiters and, with embedded.log.acks=fsync, one flush. Each gets its own response.
"""

import logging

from standalone.log import batch_header
from standalone.log.broker import lookup
from standalone.log.broker.operations import TRANSACTIONAL_ID
from standalone.log.broker.options import FSYNC
from standalone.log.broker.produce_messages import ProduceResponse
from standalone.log.broker.refusal import NONE, Refusal, codes

ZSTD, ZSTD_VERSION = 4, 7
JOINS_BY_ITSELF = 12  # the version (KIP-890)
BY_ID = 13  # the version with topic ids instead of names
_MOST_TOGETHER = 32  # so that the first get responses while the others are still being sent

logger = logging.getLogger(__name__)


def produce(node, call, request):
    """Versions 3-13. One batch per partition; it is validated, gets its offset, is written, and fsynced later (embedded.log.flush.interval.ms).

    acks 1 and -1 are the same on one node; with acks 0 there is no response, and an error closes the connection, as in Kafka.
    A transactional batch must belong to a transaction of the partition; from version 12 on the batch adds the partition to it.
    Not supported: quotas; record-level errors (a batch is accepted or rejected as a whole).
    """
    if node.produces.is_open and request.transactional_id is None:
        node.produces.add(call, request)
        return None
    _keep(node, [(call, request)])
    if request.acks and not _waits_for_the_disk(node, request):
        return ProduceResponse(call.version, request.topics)
    _conclude(node, [(call, request)])
    return None


class Together:
    """Collects produce requests while it `is_open`; they are processed by `finish`, or as soon as there are many.

    Until then no more data is received on their connections, so that the buffers with the batches stay valid. Transactional requests, which
    may change more than their partition, never wait here.
    """

    def __init__(self, node):
        self._node = node
        self._asked = []
        self.is_open = False

    def add(self, call, request):
        self._asked.append((call, request))
        if len(self._asked) >= _MOST_TOGETHER:
            self._do()

    def finish(self):
        self.is_open = False
        if self._asked:
            self._do()

    def _do(self):
        asked, self._asked = self._asked, []
        try:
            _keep(self._node, asked)
            _conclude(self._node, asked)
        except Exception:
            logger.exception("%d produce requests failed; closing their connections.", len(asked))
            for call, _ in asked:
                call.hang_up("a failed produce request")


def _keep(node, asked):
    """Append the batches of [(call, request)]; store the outcomes in the requests."""
    now, chosen = node.clock.now_ms(), {}
    for call, request in asked:
        forbidden = _why_no_transaction(call, request)
        for topic in request.topics:
            for part in topic.partitions:
                try:
                    if forbidden:
                        raise forbidden
                    partition = lookup.partition(node, call, topic.name, topic.topic_id, part.index, by_id=call.version >= BY_ID)
                    _check_produce(request, call.version, part.records)
                    _check_transaction(node, request, partition, part.records, joins=call.version >= JOINS_BY_ITSELF)
                except Refusal as refusal:
                    part.refuse(refusal)
                else:
                    part.log_start_offset = partition.start
                    chosen.setdefault(partition, []).append(part)
    grown = [(partition, more) for partition, parts in chosen.items() if (more := _append(partition, parts, now))]
    for partition, more in grown:
        node.appended(partition, more)


def _append(partition, parts, now):
    """Return the number of bytes appended: 0 for a duplicate batch."""
    before = partition.written_bytes
    for part, outcome in zip(parts, partition.append_all([part.records for part in parts], now)):
        if isinstance(outcome, Refusal):
            part.refuse(outcome)
        else:
            part.keep(partition, *outcome)
    return partition.written_bytes - before


def _conclude(node, asked):
    """Answer each at once, or when its data is on the disk."""
    flushes = []
    for call, request in asked:
        if request.acks == 0:
            if any(part.error_code != NONE for part in request.partitions()):
                call.hang_up("a produce request without acks was rejected")
            else:
                call.no_answer()
        elif _waits_for_the_disk(node, request):
            # A duplicate waits, too: the original may not be on the disk yet.
            kept_in = {part.kept_in for part in request.partitions() if part.kept_in is not None}
            flushes.append((lambda errors, call=call, request=request: _acknowledge(call, request, errors), [*kept_in, node.store]))
        else:
            call.answer(ProduceResponse(call.version, request.topics))
    if flushes:
        node.flush_all(flushes)


def _waits_for_the_disk(node, request):
    return node.settings["embedded.log.acks"] == FSYNC and any(part.kept_in is not None for part in request.partitions())


def _acknowledge(call, request, errors):
    """The data is on the disk now, or the disk has failed: then no batch is acknowledged."""
    for part in request.partitions() if errors else ():
        if part.error_code == NONE:
            part.refuse(Refusal(codes.KafkaStorageError, errors[0]))
    call.answer(ProduceResponse(call.version, request.topics))


def _why_no_transaction(call, request):
    try:
        if request.transactional_id is not None:
            call.require(TRANSACTIONAL_ID, request.transactional_id)
    except Refusal as refusal:
        return refusal
    return None


def _check_produce(request, version, records):
    if request.acks not in (-1, 0, 1):
        raise Refusal(codes.InvalidRequiredAcksError, f"acks={request.acks} is invalid; valid are -1, 0, 1.")
    if version < ZSTD_VERSION and records is not None and len(records) >= batch_header.HEADER.size:
        if records[batch_header.ATTRIBUTES_AT + 1] & batch_header.CODEC_MASK == ZSTD:
            raise Refusal(codes.UnsupportedCompressionTypeError, f"zstd needs version {ZSTD_VERSION} of the Produce request.")


def _check_transaction(node, request, partition, records, joins):
    if records is None or len(records) < batch_header.HEADER.size or records[batch_header.MAGIC_AT] != batch_header.MAGIC:
        return  # rejected by the partition
    if not records[batch_header.ATTRIBUTES_AT + 1] & batch_header.TRANSACTIONAL_BIT:
        return
    header = batch_header.parse_header(records)
    if request.transactional_id is None:
        raise Refusal(codes.InvalidTxnStateError, "The request has a transactional batch, but no transactional id.")
    if joins:
        node.transactions.join(request.transactional_id, partition, header)
    else:
        node.transactions.check_batch(partition, header)
