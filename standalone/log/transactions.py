"""The transactions of one producer: its coordinator, which partitions are in the one that continues, and how that ends.

    take_over()    the producer id with a higher epoch: who had the transactional id before is fenced, what it left open is aborted
    joining()      partitions into the transaction, before their first batch is sent; where each batch does that, nothing
    end()          commit, or abort

What passes by itself (a coordinator that moves or loads, a transaction that is still being ended) is tried again. All else is a
LogFatalError, behind which the producer is of no use: another takes the id over and aborts what is open.

Where the cluster has turned on transaction.version 2 (KIP-890), a batch brings its partition into the transaction by itself, and each end gives
the producer a higher epoch, so that nothing late of one transaction can get into the next. On others partitions are added by name, and the
epoch goes up when the id is taken over.
"""

from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from standalone.errors import LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, is_retriable, java_class
from standalone.log.produce_request import HIGHEST_VERSION
from standalone.log.retry import Backoff
from standalone.log.steps import Wait, finish

LONGEST_LOOK_S = 2.0  # for the coordinator, before it is looked whether the producer is closed
FEATURE, BY_EPOCHS = "transaction.version", 2
_HIGHEST_PRODUCE = 11  # from version 12 on a batch joins its transaction by itself
_HIGHEST_INIT, _HIGHEST_JOIN, _HIGHEST_END = 4, 3, 4  # from version 5 on an end raises the epoch
_PASSING = (codes.CONCURRENT_TRANSACTIONS, codes.OPERATION_NOT_ATTEMPTED)
_ELSEWHERE = (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR)


class Transactions:
    """`identity` and `holds` are asked on the sender's thread, which also runs the steps of `joining`; the rest is the caller's."""

    def __init__(self, cluster, config, clock):
        self.id = config["transactional.id"]
        self.identity = None  # (producer id, epoch), once the id is taken over
        self.closed = False
        self._cluster, self._config, self._clock = cluster, config, clock
        self._coordinator = None
        self._joined = frozenset()
        self._begun = False  # whether the coordinator may know of a transaction that continues
        self._by_epochs = False  # KIP-890; changes between two transactions only

    def take_over(self):
        """Fence whoever had the id, and have what it left open aborted."""
        request = InitProducerIdRequest(
            transactional_id=self.id, transaction_timeout_ms=self._config["transaction.timeout.ms"], producer_id=-1, producer_epoch=-1
        )
        answer = self._finish(self._asking(request, f"Taking over the transactional id '{self.id}'", _code, _HIGHEST_INIT))
        self.identity = answer.producer_id, answer.producer_epoch
        self._look_at_features()

    def _look_at_features(self):
        self._by_epochs = self._cluster.feature(FEATURE) >= BY_EPOCHS

    def holds(self, topic, partition):
        """Whether batches of that partition may be sent; they will be."""
        if self._by_epochs and self.identity is not None:
            self._begun = True
            return True
        return (topic, partition) in self._joined

    @property
    def highest_produce(self):
        return HIGHEST_VERSION if self._by_epochs else _HIGHEST_PRODUCE

    def joining(self, pairs):
        """Steps that bring these partitions into the transaction."""
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
        """Commit or abort what has begun; nothing may be under way. An end whose answer is lost is asked for again, and is one end."""
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
        """Steps to a good answer of the coordinator, however long that takes."""
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
    """Of the partitions, one that does not pass before one that does. A partition beside a refused one is not attempted."""
    found = [part.partition_error_code for topic in answer.results_by_topic_v3_and_below for part in topic.results_by_partition]
    found = [code for code in found if code]
    return next((code for code in found if code not in _PASSING and not is_retriable(code)), found[0] if found else codes.NONE)
