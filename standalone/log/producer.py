"""The producer: takes records as columns, packs them into batches per partition, sends and retries them.

    send()       the task's thread: adds to the inbox; blocks while buffer.memory is full
    run()        the sender's thread: inbox -> partition queues -> requests -> responses -> on_done

Java fills batches of batch.size (16 KiB) and waits linger.ms for more. Here waiting records are sent at once while nothing is in flight,
which gives the lowest latency at low rates; under load more records gather while a request is in flight, and batches grow up to
max.request.size. batch.size only sets when records without a key move on to another partition.
"""

import collections
import dataclasses
import logging
import threading

from standalone.errors import LogFatalError
from standalone.log import client_keys
from standalone.log.broker_errors import java_class, timed_out
from standalone.log.client_config import ProducerConfig, TransactionalConfig
from standalone.log.link import Waker
from standalone.log.partition_queue import Piece
from standalone.log.sender import Sender
from standalone.log.transactions import Transactions

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Delivered:
    """The result of one send. Rows are a slice or an array of row numbers."""

    error: Exception | None  # the first error, if some rows failed
    acks: list  # (rows, partition, first offset, log append time or -1); offset -1 if the broker no longer knows it
    failed: list  # (rows, error)


@dataclasses.dataclass
class Counters:
    records: int = 0  # acknowledged
    bytes: int = 0  # of acknowledged batches
    batches: int = 0
    requests: int = 0
    retried_batches: int = 0
    failed_records: int = 0
    largest_batch: int = 0

    def values(self):
        """Return the counters by the names of Java's producer metrics."""
        return {
            "record-send-total": self.records,
            "outgoing-byte-total": self.bytes,
            "request-total": self.requests,
            "record-retry-total": self.retried_batches,
            "record-error-total": self.failed_records,
            "batch-size-max": self.largest_batch,
        }


class Producer:
    """`config` holds Java's producer properties. The caller provides the thread for `run`.

    `halts`: after a record that is too large, nothing later is sent (HeldBack).
    """

    CONFIG = ProducerConfig

    def __init__(self, cluster, config, clock, halts=False):
        self.config = self.CONFIG.of(config)
        client_keys.tell(self.config)
        cluster = cluster.of_client(self.config["client.id"])
        self.counters = Counters()
        self._clock = clock
        self._space = threading.Condition()  # guards the following fields
        self._inbox = collections.deque()  # Deliveries
        self._used_bytes = 0
        self._undelivered = 0
        self._flushing = 0
        self._asleep = False
        self._closing = self._closed = False
        self._fault = None  # an error raised by an on_done, which `run` raises
        self._waker = Waker()
        self._transactions = self._new_transactions(cluster)
        self._sender = Sender(self.config, cluster, clock, self.counters, halts, self._transactions)

    def _new_transactions(self, cluster):
        return None

    def send(self, topic, partition, records, on_done):
        """Enqueue records; `on_done(Delivered)` is called once, on the sender's thread. If it raises, `run` ends.

        partition None: by key as in every Kafka client; rows without a key stay together. Blocks while buffer.memory is full, at most
        max.block.ms. The records' buffers must not change until they are delivered.
        """
        delivery = _Delivery(self, topic, partition, records, on_done, self._clock)
        with self._space:
            self._wait_for_space(delivery.size, topic)
            self._used_bytes += delivery.size
            self._undelivered += 1
            self._inbox.append(delivery)
            self._wake()

    def run(self):
        """Send until closed. Raise only for bugs here or in an on_done; all other errors go to the deliveries."""
        error = LogFatalError("The producer was closed before these records were acknowledged.", java_class("InterruptException"))
        try:
            while not self._closed:
                self._sender.work(self._take_inbox(), flushing=bool(self._flushing or self._closing))
                if self._fault is not None:
                    raise self._fault
                self._rest()
        except BaseException as problem:
            error = LogFatalError(f"The producer failed: {problem}")
            raise
        finally:
            with self._space:
                self._closing = self._closed = True
                left = list(self._inbox)
                self._inbox.clear()
            self._sender.stop(left, error)
            self._waker.close()
            with self._space:
                self._space.notify_all()

    def flush(self, timeout_s):
        """Wait until all enqueued records are delivered or failed; return whether they are."""
        return self._wait_until(lambda: not self._undelivered, timeout_s)

    def close(self, timeout_s=0):
        """Accept no more records, wait up to `timeout_s` for those in flight, fail the rest (on_done gets an error) and end `run`."""
        with self._space:
            self._closing = True
            self._space.notify_all()
        done = self._wait_until(lambda: not self._undelivered, timeout_s)
        with self._space:
            self._closed = True
            self._wake()
        self._sender.abort()
        return done

    # ---- for the sender's thread

    def _take_inbox(self):
        with self._space:
            taken = list(self._inbox)
            self._inbox.clear()
            return taken

    def _rest(self):
        """Wait for a broker, a deadline or new work."""
        with self._space:
            self._asleep = not self._inbox and not self._closed
            waker = self._waker if self._asleep else None
        self._sender.wait(waker)
        with self._space:
            self._asleep = False

    def _release(self, size):
        with self._space:
            self._used_bytes -= size
            self._space.notify_all()

    def _finished(self):
        with self._space:
            self._undelivered -= 1
            self._space.notify_all()

    # ---- with the lock held

    def _wake(self):
        if self._asleep:
            self._asleep = False
            self._waker.wake()

    def _wait_for_space(self, size, topic):
        limit = self.config["buffer.memory"]
        deadline = self._clock.monotonic() + self.config.seconds("max.block.ms")
        while not self._closing and self._used_bytes and self._used_bytes + size > limit:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise timed_out(
                    f"No room for {size} bytes of records for topic '{topic}' in {self.config['max.block.ms']} ms (max.block.ms): "
                    f"{self._used_bytes} of {limit} bytes (buffer.memory) are waiting for acknowledgement."
                )
            self._clock.wait(self._space, min(left, threading.TIMEOUT_MAX))
        if self._closing:
            raise LogFatalError(f"The producer is closed: it accepts no records for topic '{topic}'.", "java.lang.IllegalStateException")

    def _wait_until(self, condition, timeout_s):
        deadline = self._clock.monotonic() + timeout_s
        with self._space:
            self._flushing += 1
            self._wake()
            try:
                while not condition() and not self._closed:
                    left = deadline - self._clock.monotonic()
                    if left <= 0:
                        break
                    self._clock.wait(self._space, min(left, threading.TIMEOUT_MAX))
                return condition()
            finally:
                self._flushing -= 1


class TransactionalProducer(Producer):
    """Java's calls: init_transactions once, then repeatedly begin (by the first send), send, commit_transaction or abort_transaction.

    One thread makes these calls; `run` continues meanwhile. After any error only `abort_transaction` is allowed.
    """

    CONFIG = TransactionalConfig

    def _new_transactions(self, cluster):
        return Transactions(cluster, self.config, self._clock)

    def init_transactions(self):
        """Take over the transactional id. Waits for the coordinator until the producer is closed."""
        self._transactions.take_over()

    def commit_transaction(self):
        """Commit everything sent since the last transaction ended, or nothing. Call `flush` first: nothing may be in flight."""
        self._check_delivered()
        if self.counters.failed_records:
            raise LogFatalError("Records of the transaction failed: it cannot be committed.", java_class("KafkaException"))
        self._transactions.end(commit=True)

    def abort_transaction(self):
        """Abort: read_committed consumers never see what was sent since the last transaction ended."""
        self._check_delivered()
        self._transactions.end(commit=False)

    def close(self, timeout_s=0):
        done = super().close(timeout_s)
        self._transactions.closed = True
        return done

    def _check_delivered(self):
        with self._space:
            if self._undelivered:
                raise LogFatalError("The transaction has records that are still in flight: call flush first.", "java.lang.IllegalStateException")


class _Delivery:
    """One send and the results of its rows. Only the sender's thread changes it."""

    __slots__ = ("topic", "partition", "records", "size", "born", "now_ms", "_producer", "_on_done", "_left", "_acks", "_failed")

    def __init__(self, producer, topic, partition, records, on_done, clock):
        self.topic, self.partition, self.records = topic, partition, records
        self.size = records.nbytes
        self.born, self.now_ms = clock.monotonic(), clock.now_ms()
        self._producer, self._on_done = producer, on_done
        self._left = len(records)
        self._acks, self._failed = [], []

    def acknowledge(self, piece, partition, offset, log_append_time):
        self._producer.counters.records += len(piece)
        self._acks.append((piece.rows, partition, offset, log_append_time))
        self._settle(piece)

    def fail(self, piece, error):
        self._producer.counters.failed_records += len(piece)
        self._failed.append((piece.rows, error))
        self._settle(piece)

    def _settle(self, piece):
        self._producer._release(piece.size)
        self._left -= len(piece)
        if not self._left:
            self.finish()

    def finish(self):
        self.records = None
        try:
            self._on_done(Delivered(self._failed[0][1] if self._failed else None, self._acks, self._failed))
        except BaseException as error:  # raised once the sender has settled all other responses
            log.exception("The callback of a delivery to topic '%s' failed", self.topic)
            self._producer._fault = self._producer._fault or error
        finally:
            self._producer._finished()

    def whole(self):
        return Piece(self.records, slice(0, len(self.records)), self, self.now_ms)
