"""Transactions: Kafka's transaction coordinator for one node.

A transactional id has a producer id and an epoch. When a producer takes over the id, the epoch is bumped and the previous producer is fenced.
Its transaction is EMPTY, then ONGOING from its first partition on, PREPARE_* once its outcome is decided, and COMPLETE_* when every partition
has a marker and its offsets are committed. Every state is stored before it takes effect: after a crash a decided end is completed, and an
undecided transaction is aborted at its timeout. With embedded.log.acks=fsync this also holds for a power loss: each state is durable before
it takes effect or is reported, and all markers are durable before the transaction is complete.

Offsets are committed after the transaction's records and markers are fsynced, so no offset outlives its records.
"""

import logging

from standalone.log.broker.member import Committed
from standalone.log.broker.options import FSYNC
from standalone.log.broker.refusal import Refusal, codes

EMPTY, ONGOING = "Empty", "Ongoing"
PREPARE_COMMIT, PREPARE_ABORT = "PrepareCommit", "PrepareAbort"
COMPLETE_COMMIT, COMPLETE_ABORT = "CompleteCommit", "CompleteAbort"
STATES = (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT)
MAX_TIMEOUT_MS = 15 * 60 * 1000
EXPIRATION_MS = 7 * 24 * 60 * 60 * 1000  # of an unused id
_LAST_EPOCH = (1 << 15) - 2
_RETRY_SECONDS = 1.0
_KIND = "transaction"

logger = logging.getLogger(__name__)


class Transaction:
    """The state of one transactional id."""

    def __init__(self, name, producer_id, epoch, timeout_ms):
        self.id = name
        self.producer_id = producer_id
        self.epoch = epoch
        self.previous = None  # (producer id, epoch) that ended the last transaction, if that bumped the epoch
        self.timeout_ms = timeout_ms
        self.state = EMPTY
        self.partitions = set()  # (topic, number)
        self.offsets = {}  # group -> {(topic, number): Committed}, to be committed with it
        self.started_ms = -1
        self.changed_ms = 0
        self.is_completing = False  # whether its COMPLETE_* state is not durable yet

    @property
    def is_ending(self):
        return self.is_completing or self.state in (PREPARE_COMMIT, PREPARE_ABORT)

    def body(self):
        return {
            "producer_id": self.producer_id,
            "epoch": self.epoch,
            "previous": self.previous,
            "timeout_ms": self.timeout_ms,
            "state": self.state,
            "partitions": sorted(self.partitions),
            "offsets": {group: [[*key, *committed] for key, committed in offsets.items()] for group, offsets in self.offsets.items()},
            "started_ms": self.started_ms,
            "changed_ms": self.changed_ms,
        }

    @classmethod
    def of(cls, name, body):
        found = cls(name, body["producer_id"], body["epoch"], body["timeout_ms"])
        found.state = body["state"]
        found.previous = tuple(body["previous"]) if body.get("previous") else None  # stored since KIP-890 is supported
        found.partitions = {tuple(key) for key in body["partitions"]}
        found.offsets = {
            group: {(topic, number): Committed(*committed) for topic, number, *committed in rows} for group, rows in body["offsets"].items()
        }
        found.started_ms, found.changed_ms = body["started_ms"], body["changed_ms"]
        return found


class Transactions:
    """Owned by one thread; `node` has topics, groups, store, clock, timers, appended() and flush()."""

    def __init__(self, node):
        self._node = node
        self._is_synced = node.settings["embedded.log.acks"] == FSYNC
        self._by_id = {name: Transaction.of(name, body) for name, body in node.store.documents(_KIND).items()}
        self._by_producer = {transaction.producer_id: transaction for transaction in self._by_id.values()}

    def __iter__(self):
        return iter(sorted(self._by_id.values(), key=lambda transaction: transaction.id))

    def get(self, name):
        return self._by_id.get(name)

    # --- Producer requests. Each raises a Refusal.

    def begin_producer(self, name, timeout_ms, producer_id=-1, epoch=-1):
        """Return (producer id, epoch) for a producer that takes over the transactional id; abort its predecessor's open transaction."""
        if not name:
            raise Refusal(codes.InvalidRequestError, "A transactional id cannot be empty.")
        if not 0 < timeout_ms <= MAX_TIMEOUT_MS:
            raise Refusal(codes.InvalidTransactionTimeoutError)
        transaction = self._by_id.get(name)
        if transaction is None:
            transaction = Transaction(name, self._node.store.new_producer_id(), -1, timeout_ms)
        elif producer_id >= 0 and (producer_id, epoch) != (transaction.producer_id, transaction.epoch):
            raise Refusal(codes.ProducerFencedError)
        elif transaction.is_ending:
            raise Refusal(codes.ConcurrentTransactionsError)
        elif transaction.state == ONGOING:
            transaction.epoch += 1
            self._end(transaction, PREPARE_ABORT)
            if transaction.is_ending:
                raise Refusal(codes.ConcurrentTransactionsError)
        if transaction.epoch >= _LAST_EPOCH:
            self._by_producer.pop(transaction.producer_id, None)
            transaction.producer_id, transaction.epoch = self._node.store.new_producer_id(), -1
        transaction.epoch += 1
        transaction.timeout_ms = timeout_ms
        transaction.state = EMPTY
        self._save(transaction, durably=True)
        self._by_id[name] = self._by_producer[transaction.producer_id] = transaction
        return transaction.producer_id, transaction.epoch

    def check(self, name, producer_id, epoch):
        """Return the transaction if this producer may continue it."""
        transaction = self._by_id.get(name)
        if transaction is None or transaction.producer_id != producer_id:
            raise Refusal(codes.InvalidProducerIdMappingError)
        if transaction.epoch != epoch:
            raise Refusal(codes.ProducerFencedError)
        return transaction

    def check_end(self, name, producer_id, epoch):
        """Like `check`, for an end that bumps the epoch: a producer that got no response may retry with the previous epoch."""
        transaction = self._by_id.get(name)
        if transaction is not None and transaction.previous == (producer_id, epoch):
            return transaction
        return self.check(name, producer_id, epoch)

    def add_partitions(self, transaction, partitions):
        self._go_on(transaction)
        if not partitions <= transaction.partitions or transaction.state != ONGOING:
            transaction.partitions |= partitions
            self._begin(transaction)
            self._save(transaction)

    def add_group(self, transaction, group_id):
        self._go_on(transaction)
        transaction.offsets.setdefault(group_id, {})
        self._begin(transaction)
        self._save(transaction)

    def add_offsets(self, transaction, group_id, offsets):
        """offsets: {(topic, number): Committed}"""
        self._go_on(transaction)
        if transaction.state != ONGOING or group_id not in transaction.offsets:
            raise Refusal(codes.InvalidTxnStateError)
        transaction.offsets[group_id].update(offsets)
        self._save(transaction)

    def join(self, name, partition, header):
        """Add the batch's partition to the transaction. Raise Refusal, with codes that producers know, if the batch may not be written."""
        try:
            transaction = self.check(name, header.producer_id, header.producer_epoch)
        except Refusal as refusal:
            problem = f"Producer {header.producer_id} has no transaction of '{name}' at epoch {header.producer_epoch}."
            raise Refusal(codes.InvalidProducerEpochError, problem) from refusal
        self.add_partitions(transaction, {(partition.topic, partition.number)})

    def check_batch(self, partition, header):
        """Raise Refusal if this batch belongs to no ongoing transaction of the partition."""
        transaction = self._by_producer.get(header.producer_id)
        if transaction is None or transaction.epoch != header.producer_epoch:
            raise Refusal(
                codes.InvalidProducerEpochError, f"Producer {header.producer_id} has no transaction at epoch {header.producer_epoch}."
            )
        if transaction.state != ONGOING or (partition.topic, partition.number) not in transaction.partitions:
            raise Refusal(codes.InvalidTxnStateError, f"{partition} is in no ongoing transaction of '{transaction.id}'.")

    def end(self, transaction, commit, then):
        """Commit or abort, then call `then()`."""
        done = COMPLETE_COMMIT if commit else COMPLETE_ABORT
        wanted = PREPARE_COMMIT if commit else PREPARE_ABORT
        if transaction.is_completing or transaction.state == wanted:
            raise Refusal(codes.ConcurrentTransactionsError)
        if transaction.state == done:
            return then()
        if transaction.state != ONGOING:
            raise Refusal(codes.InvalidTxnStateError)
        return self._end(transaction, wanted, then)

    def end_epoch(self, transaction, identity, commit, then):
        """Like `end`, and the producer continues with a bumped epoch (KIP-890). `identity` is the (producer id, epoch) of the request."""
        if transaction.is_ending:
            raise Refusal(codes.ConcurrentTransactionsError)
        if transaction.previous == identity:
            if transaction.state != (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
                raise Refusal(codes.ProducerFencedError if transaction.state in (ONGOING, EMPTY) else codes.InvalidTxnStateError)
            return then()
        if commit and transaction.state != ONGOING:
            raise Refusal(codes.InvalidTxnStateError)
        return self._end(transaction, PREPARE_COMMIT if commit else PREPARE_ABORT, then, raises_epoch=True)

    def has_pending_offset(self, group_id, topic, number):
        """Whether an open transaction may still commit an offset there."""
        return any((topic, number) in transaction.offsets.get(group_id, ()) for transaction in self._by_id.values())

    # --- State changes

    def _go_on(self, transaction):
        if transaction.is_ending:
            raise Refusal(codes.ConcurrentTransactionsError)

    def _begin(self, transaction):
        if transaction.state != ONGOING:
            transaction.state = ONGOING
            transaction.started_ms = self._node.clock.now_ms()
            self._limit(transaction)

    def _limit(self, transaction):
        """Abort the transaction at its timeout."""
        begun = transaction.started_ms
        left_ms = begun + transaction.timeout_ms - self._node.clock.now_ms()

        def over():
            if transaction.state != ONGOING or transaction.started_ms != begun or self._by_id.get(transaction.id) is not transaction:
                return
            logger.warning("The transaction of '%s' was not ended within %d ms; it is aborted.", transaction.id, transaction.timeout_ms)
            transaction.epoch += 1  # fence its producer
            try:
                self._end(transaction, PREPARE_ABORT)
            except Refusal as refusal:
                logger.error("The transaction of '%s' cannot be aborted now: %s", transaction.id, refusal.message)
                self._node.timers.after(_RETRY_SECONDS, over)

        self._node.timers.after(max(left_ms, 0) / 1000, over)

    def _end(self, transaction, state, then=None, raises_epoch=False):
        before = transaction.state, transaction.producer_id, transaction.epoch, transaction.previous
        transaction.state, transaction.previous = state, None
        try:
            if raises_epoch:
                transaction.previous = transaction.producer_id, transaction.epoch
                if transaction.epoch >= _LAST_EPOCH:
                    transaction.producer_id, transaction.epoch = self._node.store.new_producer_id(), -1
                transaction.epoch += 1
            self._save(transaction)
        except Refusal:  # otherwise the producer would see CONCURRENT_TRANSACTIONS forever
            transaction.state, transaction.producer_id, transaction.epoch, transaction.previous = before
            raise
        self._by_producer.pop(before[1], None)
        self._by_producer[transaction.producer_id] = transaction
        self._when_decided(transaction, then)

    def _when_decided(self, transaction, then):
        """Wait until the decision is durable: a marker that survives a power loss without it would leave other partitions without theirs."""
        if not self._is_synced and self._marked(transaction)[0] == transaction.producer_id:
            return self._carry_out(transaction, then)

        def synced(errors):
            if errors:
                logger.error("The end of the transaction of '%s' cannot be stored now: %s", transaction.id, errors[0])
                self._node.timers.after(_RETRY_SECONDS, lambda: self._when_decided(transaction, then))
            else:
                self._carry_out(transaction, then)

        self._node.flush(synced, [self._node.store])
        return None

    def _carry_out(self, transaction, then=None):
        """Write the missing markers, then commit the offsets; retry later if the disk fails."""
        commit = transaction.state == PREPARE_COMMIT
        written = []
        try:
            for topic, number in sorted(transaction.partitions):
                partition = self._partition(topic, number)
                if partition is None:
                    continue
                producer_id, epoch = self._marked(transaction)
                if partition.producers.transaction_start(producer_id) is not None:
                    self._write_marker(partition, producer_id, epoch, commit)
                written.append(partition)
        except Refusal as refusal:
            logger.error("The transaction of '%s' cannot be ended now: %s", transaction.id, refusal.message)
            self._node.timers.after(_RETRY_SECONDS, lambda: self._carry_out(transaction, then))
            return
        offsets = {group: found for group, found in transaction.offsets.items() if found} if commit else {}
        if not offsets and not self._is_synced:
            self._complete(transaction, then)
            return

        def flushed(errors):
            try:
                if errors:
                    raise Refusal(codes.KafkaStorageError, errors[0])
                for group, found in offsets.items():
                    self._node.groups.make(group).commit(found, self._node.clock.now_ms())
            except Refusal as refusal:
                logger.error("The offsets of the transaction of '%s' cannot be stored now: %s", transaction.id, refusal.message)
                self._node.timers.after(_RETRY_SECONDS, lambda: self._carry_out(transaction, then))
                return
            self._complete(transaction, then)

        self._node.flush(flushed, written)

    def _complete(self, transaction, then):
        """Store that the transaction is complete, then call `then()`. Its producer cannot begin the next one earlier: recovery ends a PREPARE_*
        transaction again, and its markers would end the next one, which may have written to the same partitions."""
        transaction.is_completing = True
        ending = transaction.state, transaction.partitions, transaction.offsets
        transaction.state = COMPLETE_COMMIT if transaction.state == PREPARE_COMMIT else COMPLETE_ABORT
        transaction.partitions, transaction.offsets = set(), {}

        def stored(errors):
            if errors:
                return retry(errors[0])
            transaction.is_completing = False
            if then:
                then()
            return None

        def retry(why):
            logger.error("The end of the transaction of '%s' cannot be stored now: %s", transaction.id, why)
            transaction.state, transaction.partitions, transaction.offsets = ending
            self._node.timers.after(_RETRY_SECONDS, lambda: self._complete(transaction, then))

        try:
            self._save(transaction)
        except Refusal as refusal:
            return retry(refusal.message)
        if self._is_synced:
            return self._node.flush(stored, [self._node.store])
        return stored(())

    @staticmethod
    def _marked(transaction):
        """Return (producer id of the records, epoch of the markers): the next epoch, so that late batches of the producer are fenced."""
        if transaction.previous is None:
            return transaction.producer_id, transaction.epoch
        return transaction.previous[0], transaction.previous[1] + 1

    def _write_marker(self, partition, producer_id, epoch, commit):
        size = partition.end_transaction(producer_id, epoch, commit, self._node.clock.now_ms())
        self._node.appended(partition, size)

    def _partition(self, topic, number):
        try:
            return self._node.topics.partition(topic, number)
        except Refusal:
            return None  # deleted

    def _save(self, transaction, durably=False):
        transaction.changed_ms = self._node.clock.now_ms()
        self._node.store.save_document(_KIND, transaction.id, transaction.body(), durably or self._is_synced)

    # --- Recovery and cleanup

    def recover(self):
        """Continue where the last process stopped; abort transactions that are open in a partition but have no owner."""
        for transaction in list(self._by_id.values()):
            if transaction.is_ending:
                self._carry_out(transaction)
            elif transaction.state == ONGOING:
                self._limit(transaction)
        for partition in list(self._node.topics.partitions()):
            for producer_id, epoch in partition.producers.open_transactions:
                owner = self._by_producer.get(producer_id)
                if owner is not None and owner.is_ending:
                    continue
                if owner is not None and owner.epoch == epoch:
                    # After a power loss the batch may be there without the partition entry: the producer retries and gets a duplicate acknowledged.
                    self.add_partitions(owner, {(partition.topic, partition.number)})
                    continue
                logger.warning("%s has an open transaction of the unknown producer %d; aborting it.", partition, producer_id)
                self._write_marker(partition, producer_id, epoch, False)

    def tidy(self):
        oldest = self._node.clock.now_ms() - EXPIRATION_MS
        for transaction in list(self._by_id.values()):
            if transaction.state not in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT) and transaction.changed_ms < oldest:
                self._node.store.delete_document(_KIND, transaction.id)
                del self._by_id[transaction.id]
                self._by_producer.pop(transaction.producer_id, None)
