"""The transactions of one producer: coordinator, partitions of the ongoing one, commit and abort.

    take_over()    get the producer id with a bumped epoch: fences the previous producer and aborts its transaction
    joining()      add partitions to the transaction before their first batch; nothing where batches do that themselves
    end()          commit, or abort

Transient errors (a coordinator that moves or loads, a transaction still ending) are retried. All others are a LogFatalError, after which
the producer is unusable: a new one takes over the id and aborts what is open.

With transaction.version 2 (KIP-890), a batch adds its partition to the transaction, and each end bumps the producer's epoch, so
that late batches of one transaction cannot get into the next. On older clusters partitions are added explicitly, and the epoch is bumped
when the id is taken over.
"""

from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from standalone.errors import LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, is_retriable, java_class
from standalone.log.produce_request import HIGHEST_VERSION
from standalone.log.retry import Backoff
from standalone.log.steps import Wait, finish

LONGEST_LOOK_S = 2.0  # for finding the coordinator, before checking whether the producer is closed
FEATURE, BY_EPOCHS = "transaction.version", 2
_HIGHEST_PRODUCE = 11  # from version 12 on a batch adds its partition to the transaction
_HIGHEST_INIT, _HIGHEST_JOIN, _HIGHEST_END = 4, 3, 4  # from version 5 on an end bumps the epoch
_PASSING = (codes.CONCURRENT_TRANSACTIONS, codes.OPERATION_NOT_ATTEMPTED)
_ELSEWHERE = (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR)


class Transactions:
    """The sender's thread uses `identity` and `holds` and runs the steps of `joining`; the caller uses the rest."""

    def __init__(self, cluster, config, clock):
        self.id = config["transactional.id"]
        self.identity = None  # (producer id, epoch), once the id is taken over
        self.closed = False
        self._cluster, self._config, self._clock = cluster, config, clock
        self._coordinator = None
        self._joined = frozenset()
        self._begun = False  # whether the coordinator may know of an ongoing transaction
        self._by_epochs = False  # KIP-890; changes only between transactions

    def take_over(self):
        """Fence the previous producer of the id, and abort its open transaction."""
        request = InitProducerIdRequest(
            transactional_id=self.id, transaction_timeout_ms=self._config["transaction.timeout.ms"], producer_id=-1, producer_epoch=-1
        )
        answer = self._finish(self._asking(request, f"Taking over the transactional id '{self.id}'", _code, _HIGHEST_INIT))
        self.identity = answer.producer_id, answer.producer_epoch
        self._look_at_features()

    def _look_at_features(self):
        self._by_epochs = self._cluster.feature(FEATURE) >= BY_EPOCHS

    def holds(self, topic, partition):
        """Whether batches of the partition may be sent; records that they will be."""
        if self._by_epochs and self.identity is not None:
            self._begun = True
            return True
        return (topic, partition) in self._joined

    @property
    def highest_produce(self):
        return HIGHEST_VERSION if self._by_epochs else _HIGHEST_PRODUCE

    def joining(self, pairs):
        """Steps that add these partitions to the transaction."""
        kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        topics = {}
        for topic, partition in pairs:
            topics.setdefault(topic, []).append(partition)
        producer_id, epoch = self.identity
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[kind(name=name, partitions=partitions) for name, partitions in topics.items()],
        )
        self._begun = True
        yield from self._asking(request, f"Adding partitions to the transaction of '{self.id}'", _worst_code, _HIGHEST_JOIN)
        self._joined |= set(pairs)

    def end(self, commit):
        """Commit or abort the transaction; nothing may be in flight. A lost response is retried, which is idempotent."""
        if self._begun:
            producer_id, epoch = self.identity
            what = f"{'Committing' if commit else 'Aborting'} the transaction of '{self.id}'"
            request = EndTxnRequest(transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, committed=commit)
            answer = self._finish(self._asking(request, what, _code, _HIGHEST_END + self._by_epochs))
            if answer.producer_id >= 0:
                self.identity = answer.producer_id, answer.producer_epoch
        self._joined, self._begun = frozenset(), False
        self._look_at_features()

    def _finish(self, steps):
        return finish(steps, self._clock, self._cluster.pause)

    def _asking(self, request, what, code_of, ceiling):
        """Steps to a successful response of the coordinator, retried without limit."""
        backoff = Backoff(self._config, "retry.backoff")
        while not self.closed:
            try:
                if self._coordinator is None:
                    self._coordinator = yield from self._cluster.finding_coordinator(self.id, LONGEST_LOOK_S, CoordinatorType.TRANSACTION)
                answer = yield from self._cluster.requesting(
                    request, self._coordinator, self._config.seconds("request.timeout.ms"), ceiling=ceiling, wait_for_brokers=False
                )
                code = code_of(answer)
            except LogRetriableError:
                self._coordinator = None
            else:
                if not code:
                    return answer
                if code in _ELSEWHERE:
                    self._coordinator = None
                elif code not in _PASSING and not is_retriable(code):
                    error = broker_error(code, what)
                    raise LogFatalError(str(error), error.java_class)
            yield Wait(None, 0, self._clock.monotonic() + backoff.next())
        raise LogFatalError(f"{what}: the producer is closed.", java_class("InterruptException"))


def _code(answer):
    return answer.error_code


def _worst_code(answer):
    """Return the worst code of all partitions: permanent before retriable. The broker does not attempt partitions beside a rejected one."""
    found = [part.partition_error_code for topic in answer.results_by_topic_v3_and_below for part in topic.results_by_partition]
    found = [code for code in found if code]
    return next((code for code in found if code not in _PASSING and not is_retriable(code)), found[0] if found else codes.NONE)
