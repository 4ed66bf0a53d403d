"""Produce, the request that brings records: of one client, or of many at once.

With many connections most turns of the owner's loop find several of these requests. They are kept together then (`Together`): what goes into one
partition by one write, with one wake-up of who waits for it, and by embedded.log.acks=fsync with one flush. Each is answered for itself.
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
BY_ID = 13  # the version that names no names
_MOST_TOGETHER = 32  # so that the first ones are answered while the others are still sent

logger = logging.getLogger(__name__)


def produce(node, call, request):
    """Versions 3-13. One batch a partition; checked, given its offset, written; fsynced later (embedded.log.flush.interval.ms).

    acks 1 and -1 are the same on one node; with acks 0 there is no answer, and an error closes the connection, as Kafka does.
    A transactional batch must be of a transaction that continues in the partition; from version 12 on it brings the partition into it.
    Left out: quotas; record-level errors (a batch is taken whole or not at all).
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
    """The produce requests that came while it `is_open`: with `finish`, or as soon as they are many, they are done.

    Until then their connections are busy, so that nothing is received over the batches. Transactional ones, which may change more than their
    partition, never wait here.
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
            logger.exception("%d produce requests could not be done; their connections are closed.", len(asked))
            for call, _ in asked:
                call.hang_up("a produce request that could not be done")


def _keep(node, asked):
    """Append the batches of [(call, request)]; their requests hold what became of them."""
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
    """By how many bytes the partition has grown: a repeat is kept already."""
    before = partition.written_bytes
    for part, outcome in zip(parts, partition.append_all([part.records for part in parts], now)):
        if isinstance(outcome, Refusal):
            part.refuse(outcome)
        else:
            part.keep(partition, *outcome)
    return partition.written_bytes - before


def _conclude(node, asked):
    """Answer each, at once or when what it wrote is on the disk."""
    flushes = []
    for call, request in asked:
        if request.acks == 0:
            if any(part.error_code != NONE for part in request.partitions()):
                call.hang_up("a produce request without acks was refused")
            else:
                call.no_answer()
        elif _waits_for_the_disk(node, request):
            # Of a repeat, too: what it repeats may not be on the disk yet.
            kept_in = {part.kept_in for part in request.partitions() if part.kept_in is not None}
            flushes.append((lambda errors, call=call, request=request: _acknowledge(call, request, errors), [*kept_in, node.store]))
        else:
            call.answer(ProduceResponse(call.version, request.topics))
    if flushes:
        node.flush_all(flushes)


def _waits_for_the_disk(node, request):
    return node.settings["embedded.log.acks"] == FSYNC and any(part.kept_in is not None for part in request.partitions())


def _acknowledge(call, request, errors):
    """What the request wrote is on the disk now, or the disk has failed: then none of its batches is acknowledged."""
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
        raise Refusal(codes.InvalidRequiredAcksError, f"acks={request.acks} is none of -1, 0, 1.")
    if version < ZSTD_VERSION and records is not None and len(records) >= batch_header.HEADER.size:
        if records[batch_header.ATTRIBUTES_AT + 1] & batch_header.CODEC_MASK == ZSTD:
            raise Refusal(codes.UnsupportedCompressionTypeError, f"zstd needs version {ZSTD_VERSION} of the produce request.")


def _check_transaction(node, request, partition, records, joins):
    if records is None or len(records) < batch_header.HEADER.size or records[batch_header.MAGIC_AT] != batch_header.MAGIC:
        return  # refused by the partition
    if not records[batch_header.ATTRIBUTES_AT + 1] & batch_header.TRANSACTIONAL_BIT:
        return
    header = batch_header.parse_header(records)
    if request.transactional_id is None:
        raise Refusal(codes.InvalidTxnStateError, "A transactional batch came without a transactional id.")
    if joins:
        node.transactions.join(request.transactional_id, partition, header)
    else:
        node.transactions.check_batch(partition, header)
