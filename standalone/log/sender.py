"""The producer's sender: routes records, sends batches, handles responses, retries in order.

Everything runs on the thread that calls `work` and `wait` in turn, except `abort`.
"""

import logging
import select

import numpy as np
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from standalone.errors import LogError, LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import (
    broker_error,
    disconnected,
    explain,
    is_retriable,
    is_stale_metadata,
    java_class,
    timed_out,
)
from standalone.log.client_config import MAX_INT
from standalone.log.intake import Intake, held_back
from standalone.log.partition_queue import NO_OFFSET, IdentityPending, PartitionQueue
from standalone.log.produce_request import HIGHEST_VERSION, produce_body
from standalone.log.retry import Backoff
from standalone.log.steps import Underway

log = logging.getLogger(__name__)

LONGEST_CALL_S = 5.0  # limit of one metadata request, before it is repeated
GRACE_S = 1.0  # no warning within this time: a cluster that starts or a new topic needs a moment
MOST_RESTARTS = 3  # sequence restarts in a row before a broker's rejection counts
FAULTS_OF_SINGLE_RECORDS = (codes.INVALID_TIMESTAMP, codes.INVALID_RECORD)  # the broker rejects the whole batch for some records
FOREVER = float("inf")


class Sender:
    def __init__(self, config, cluster, clock, counters, halts=False, transactions=None):
        self._config, self._cluster, self._clock, self._counters = config, cluster, clock, counters
        self._intake = Intake(config, cluster, self._queue, halts)
        self._halts = halts
        self._transactions = transactions
        self._queues = {}  # (topic, partition) -> PartitionQueue
        self._brokers = {}  # node id -> _Broker
        self._stale = set()  # topics whose metadata must be fetched
        self._asking = _Pause(config, "retry.backoff")
        self._identity = self._next_identity = None  # (producer id, epoch)
        self._no_identity = None  # the permanent error of requesting one
        self._asking_identity = _Pause(config, "retry.backoff")
        self._questions = {}  # kind -> Underway: pending requests to the cluster
        self._wake_at = FOREVER
        self._stopping = False
        self._largest = config["max.request.size"]
        self._in_flight = config["max.in.flight.requests.per.connection"]
        self._delivery_s = FOREVER if config["delivery.timeout.ms"] == MAX_INT else config.seconds("delivery.timeout.ms")

    def work(self, deliveries, flushing):
        """Accept deliveries and send what can be sent; with `flushing`, do not linger."""
        self._wake_at = FOREVER
        for delivery in deliveries:
            self._intake.admit(delivery)
        if unknown := self._intake.route():
            self._stale |= unknown
            self._refresh()
            self._intake.route()
        if self._delivery_s != FOREVER:
            self._expire()
        self._dispatch(flushing)
        if self._stale:
            self._refresh()

    def wait(self, waker):
        """Wait until a broker responds, the waker is woken or something is due; without a waker only poll."""
        poller, brokers, underway = select.poll(), {}, {}
        for broker in self._brokers.values():
            if broker.connection is not None:
                brokers[broker.connection.fileno()] = broker
                poller.register(broker.connection, select.POLLIN | (select.POLLOUT if broker.connection.wants_write else 0))
                self._due(broker.deadline)
        for each in self._underway():
            underway[each.register(poller)] = each
            self._due(each.until)
        timeout = 0
        if waker is not None:
            poller.register(waker, select.POLLIN)
            timeout = None if self._wake_at == FOREVER else max(0.0, self._wake_at - self._clock.monotonic()) * 1000 + 0.5
        for file, events in poller.poll(timeout):
            if file in brokers:
                self._serve(brokers[file], events)
            elif file in underway:
                underway[file].advance()
            else:
                waker.drain()
        now = self._clock.monotonic()
        for each in self._underway():
            if each.until <= now:
                each.advance()
        for broker in brokers.values():
            if broker.deadline <= now:
                waited = self._config["request.timeout.ms"]
                self._lose(broker, timed_out(f"The broker at {broker.connection.name} did not answer within {waited} ms."))

    def _underway(self):
        opening = [broker.opening for broker in self._brokers.values() if broker.opening is not None]
        return [*self._questions.values(), *opening]

    def _ask(self, kind, steps, then):
        """Ask the cluster without blocking; call `then(result, error)` later on this thread."""

        def over(result, error):
            del self._questions[kind]
            then(result, error)

        self._questions[kind] = Underway(steps, over)
        self._questions[kind].advance()

    def abort(self):
        """Interrupt blocking calls of the sender's thread. May be called from any thread."""
        self._stopping = True
        for broker in list(self._brokers.values()):
            if (connection := broker.connection) is not None:
                connection.abort()

    def stop(self, deliveries, error):
        """Fail everything that is left, and these deliveries."""
        self._stopping = True
        for each in self._underway():
            each.close()
        for broker in self._brokers.values():
            broker.hang_up()
        for queue in self._queues.values():
            queue.give_up(error)
        for delivery in deliveries:
            self._intake.admit(delivery)
        self._intake.give_up_all(error)

    # ---- queues

    def _queue(self, topic, partition):
        queue = self._queues.get((topic, partition))
        if queue is None:
            idempotent = self._config["enable.idempotence"]
            queue = self._queues[topic, partition] = PartitionQueue(
                topic,
                partition,
                self._largest,
                # Without sequences the broker would accept a later batch before the retry of an earlier one.
                self._in_flight if idempotent or self._config["acks"] == 0 else 1,
                {
                    "compression": self._config["compression.type"],
                    "level": self._config.compression_level,
                    "transactional": self._transactions is not None,
                },
                self._new_identity if idempotent else None,
                _Pause(self._config, "retry.backoff"),
            )
        return queue

    def _new_identity(self, fresh=False):
        """Return (producer id, epoch), with `fresh` a new one. Raise IdentityPending while it is requested."""
        if self._transactions is not None:
            return self._transactional_identity()
        if self._no_identity is not None:
            error, self._no_identity = self._no_identity, None
            raise error
        if self._next_identity is not None:
            self._identity, self._next_identity = self._next_identity, None
        elif self._identity is None or fresh:
            now = self._clock.monotonic()
            if self._asking_identity.until > now:
                self._due(self._asking_identity.until)
            elif "identity" not in self._questions:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=MAX_INT)
                self._ask("identity", self._cluster.requesting(request, timeout=LONGEST_CALL_S, wait_for_brokers=False), self._identified)
            raise IdentityPending
        return self._identity

    def _transactional_identity(self):
        if self._transactions.identity is None:
            raise LogFatalError("Records were sent before init_transactions().", "java.lang.IllegalStateException")
        return self._transactions.identity

    def _identified(self, answer, error):
        what = "Asking for a producer id"
        if error is None and answer.error_code:
            error = broker_error(answer.error_code, what)
        if error is None:
            self._next_identity = answer.producer_id, answer.producer_epoch
            self._over(self._asking_identity, "Got a producer id")
        elif isinstance(error, LogRetriableError):
            self._again(self._asking_identity, what, error, GRACE_S)
        else:
            self._no_identity = error
        self._due(self._clock.monotonic())

    # ---- topic metadata

    def _refresh(self):
        """Fetch metadata of topics without known partitions or leaders, unless that failed a moment ago."""
        if "topics" in self._questions:
            return
        if self._clock.monotonic() < self._asking.until:
            self._due(self._asking.until)
            return
        names = sorted(self._stale)
        self._stale.clear()
        steps = self._cluster.refreshing(names, create=True, timeout=LONGEST_CALL_S, wait_for_brokers=False)
        self._ask("topics", steps, lambda found, error: self._refreshed(names, found, error))

    def _refreshed(self, names, found, error):
        if isinstance(error, LogRetriableError):
            self._again(self._asking, f"Asking for {_topics(names)}", error)
            return
        if error is not None:
            for name in names:
                self._give_up_topic(name, error)
            return
        missing = {}
        for name in names:
            code = found[name].error_code if name in found else codes.UNKNOWN_TOPIC_OR_PARTITION
            if code and not is_retriable(code):
                self._give_up_topic(name, broker_error(code, f"Sending to topic '{name}'"))
            elif code:
                missing[name] = explain(code)
            elif any(partition.leader < 0 for partition in found[name].partitions.values()):
                missing[name] = "a partition without leader"
        if missing:
            # Auto-creation of a topic takes a moment.
            reasons = "; ".join(sorted(set(missing.values())))
            self._again(self._asking, f"Asking for {_topics(sorted(missing))}", reasons, GRACE_S)
        else:
            self._over(self._asking, f"{_topics(names)[0].upper()}{_topics(names)[1:]} available again")
        self._due(self._clock.monotonic())

    def _give_up_topic(self, name, error):
        self._intake.give_up(name, error)
        for queue in self._queues.values():
            if queue.topic == name:
                queue.give_up(error)

    # ---- requests

    def _dispatch(self, flushing):
        now = self._clock.monotonic()
        ready, outside = {}, []
        for queue in self._queues.values():
            if not queue.sendable:
                continue
            if queue.pause.until > now:
                self._due(queue.pause.until)
                continue
            if self._transactions is not None and not self._transactions.holds(queue.topic, queue.partition):
                outside.append(queue)
                continue
            leader = self._cluster.leader(queue.topic, queue.partition)
            if leader is None:
                self._stale.add(queue.topic)
            else:
                ready.setdefault(leader.node, []).append(queue)
        for node, queues in ready.items():
            broker = self._brokers.get(node.id)
            if broker is None or broker.node != node:
                if broker is not None:
                    self._lose(broker, disconnected(f"Broker {node.id} moved to {node.host}:{node.port}."))
                broker = self._brokers[node.id] = _Broker(node, _Pause(self._config, "reconnect.backoff"))
            if self._connected(broker, now):
                self._fill(broker, queues, now, flushing)
        if outside:
            self._join(outside)

    def _join(self, queues):
        """Add partitions to the transaction; their batches wait for that."""
        if "transaction" in self._questions:
            return

        def joined(_, error):
            self._due(self._clock.monotonic())
            if error is not None:
                for queue in queues:
                    queue.give_up(error)

        self._ask("transaction", self._transactions.joining([(queue.topic, queue.partition) for queue in queues]), joined)

    def _connected(self, broker, now):
        if broker.connection is not None and broker.connection.stale:
            if broker.requests:
                return False  # the login expires soon: wait for responses, then reconnect
            broker.hang_up()
        if broker.connection is not None:
            return True
        if broker.pause.until > now:
            self._due(broker.pause.until)
            return False
        if broker.opening is None:
            broker.opening = Underway(self._cluster.connecting(broker.node), lambda made, error: self._opened(broker, made, error))
            broker.opening.advance()
        return broker.connection is not None

    def _opened(self, broker, connection, error):
        broker.opening = None
        self._due(self._clock.monotonic())
        if error is None:
            broker.connection = connection
            self._over(broker.pause, f"Connected to the broker at {connection.name} again")
            return
        queues = [queue for queue in self._queues.values() if not queue.empty and self._leads(broker, queue)]
        if isinstance(error, LogRetriableError):
            self._stale.update(queue.topic for queue in queues)
            topics = sorted({queue.topic for queue in queues})
            self._again(broker.pause, f"Sending to {_topics(topics)}" if topics else "Connecting", error)
        else:
            for queue in queues:
                queue.give_up(error)

    def _leads(self, broker, queue):
        leader = self._cluster.leader(queue.topic, queue.partition)
        return leader is not None and leader.node == broker.node

    def _fill(self, broker, queues, now, flushing):
        """Send requests until enough are in flight or nothing is left."""
        linger = self._config.seconds("linger.ms")
        while len(broker.requests) < self._in_flight and broker.connection is not None and not broker.connection.wants_write:
            chosen = []
            for queue in queues:
                if not queue.sendable:
                    continue
                if not (queue.full or flushing or not broker.requests or now - queue.waiting_since >= linger):
                    self._due(queue.waiting_since + linger)
                    continue
                chosen.append(queue)
            chosen.sort(key=lambda queue: queue.born)  # longest waiting first, in case not all fit
            batches = self._collect(chosen)
            if not batches:
                return
            self._send(broker, batches)

    def _collect(self, queues):
        """Take a batch from each queue, as many as fit into one request."""
        batches, size = [], 0
        for queue in queues:
            try:
                if self._transactions is not None:
                    queue.follow(self._transactions.identity)
                batch = queue.next_batch()
            except IdentityPending:
                continue
            except LogRetriableError as error:
                self._again(queue.pause, f"Sending to {queue.name}", error, GRACE_S)
                continue
            except LogError as error:
                queue.give_up(error)
                continue
            if batch is None:
                continue
            if batches and size + len(batch.data) > self._largest:
                break
            size += len(batch.data)
            batches.append(batch)
        return batches

    def _send(self, broker, batches):
        acks = self._config["acks"]
        connection = broker.connection
        for batch in batches:
            batch.queue.take(batch)
        counters = self._counters
        counters.requests += 1
        counters.retried_batches += sum(batch.attempts > 1 for batch in batches)
        counters.largest_batch = max(counters.largest_batch, *(len(batch.data) for batch in batches))
        try:
            version = connection.version(ProduceRequest, HIGHEST_VERSION if self._transactions is None else self._transactions.highest_produce)
            timeout_ms = self._config["request.timeout.ms"]
            named = [(b.queue.topic, b.queue.partition, b.data) for b in batches]
            body = produce_body(version, acks, timeout_ms, named, self._transactions.id if self._transactions is not None else None)
            correlation = connection.send_raw(ProduceRequest, version, body, answered=acks != 0, block=False)
        except LogRetriableError as error:
            for batch in batches:
                self._unanswered(batch, error)
            self._lose(broker, error)
            return
        except LogError as error:
            for batch in batches:
                if not batch.given_up:
                    self._refuse(batch, error)
            return
        if acks:
            broker.requests[correlation] = (batches, self._clock.monotonic() + timeout_ms / 1000)
        else:
            for batch in batches:
                self._landed(batch, NO_OFFSET, -1)

    # ---- responses

    def _serve(self, broker, events):
        """Send what is unsent, read what has arrived."""
        try:
            if events & select.POLLOUT:
                broker.connection.pump()
            if not events & ~select.POLLOUT:
                return
            if not broker.requests:  # nothing in flight: the broker closed an idle connection
                broker.hang_up()
                return
            while True:
                correlation, answer = broker.connection.receive_message()
                batches, _ = broker.requests.pop(correlation)
                self._settle(batches, answer)
                if not broker.requests or not broker.connection.has_buffered():
                    return
        except LogRetriableError as error:
            self._lose(broker, error)

    def _settle(self, batches, answer):
        found = {(topic.name, p.index): p for topic in answer.responses for p in topic.partition_responses}
        for batch in batches:
            if batch.given_up:
                continue
            queue = batch.queue
            result = found.get((queue.topic, queue.partition))
            if result is None:
                self._unanswered(batch, disconnected("The broker's answer does not name the partition."))
                self._again(queue.pause, f"Sending to {queue.name}", "the broker's answer does not name the partition.")
            elif result.error_code == codes.NONE:
                self._landed(batch, result.base_offset, result.log_append_time_ms)
            else:
                self._failed(batch, result.error_code, result.error_message, result.record_errors)

    def _failed(self, batch, code, message, named=None):
        """`named` are the records that the broker reports as invalid, if any, by their index in the batch."""
        queue = batch.queue
        idempotent = self._config["enable.idempotence"]
        error = broker_error(code, f"Sending {batch.count} records to {queue.name}", message)
        if code == codes.DUPLICATE_SEQUENCE_NUMBER:
            self._landed(batch, NO_OFFSET, -1)
        elif batch.held_back is not None:
            queue.refused(batch, batch.held_back)
        elif code in (codes.MESSAGE_TOO_LARGE, codes.RECORD_LIST_TOO_LARGE):
            if not queue.split(batch):
                self._refuse(batch, self._refused_as_too_large(batch))
        elif code in FAULTS_OF_SINGLE_RECORDS and named and all(0 <= each.batch_index < batch.count for each in named):
            self._leave_out(batch, self._refused_records(batch, code, named))
        elif code in FAULTS_OF_SINGLE_RECORDS and batch.count > 1:
            queue.halve(batch)
        elif idempotent and code in (codes.OUT_OF_ORDER_SEQUENCE_NUMBER, codes.UNKNOWN_PRODUCER_ID) and not queue.should_be_in_order(batch):
            queue.lost(batch, uncertain=False)  # an earlier batch failed, and is retried or failed
        elif idempotent and self._may_restart_sequence(queue, code):
            log.warning("%s Starting a new sequence with them.", error)
            queue.restart(batch)
        elif (is_retriable(code) or code == codes.CONCURRENT_TRANSACTIONS) and batch.attempts <= self._config["retries"]:
            queue.lost(batch, uncertain=True if code in (codes.REQUEST_TIMED_OUT, codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND) else None)
            if is_stale_metadata(code):
                self._stale.add(queue.topic)
            self._again(queue.pause, f"Sending to {queue.name}", explain(code, message))
        else:
            self._refuse(batch, LogFatalError(str(error), error.java_class))

    def _may_restart_sequence(self, queue, code):
        """Whether sequences may restart; not within a transaction, where part of it may be in the log."""
        lost_count = code in (codes.OUT_OF_ORDER_SEQUENCE_NUMBER, codes.UNKNOWN_PRODUCER_ID)
        return lost_count and queue.restarts < MOST_RESTARTS and self._transactions is None

    def _refuse(self, batch, error):
        """Fail the batch for good."""
        self._halt_after(batch)
        batch.queue.refused(batch, error)

    def _leave_out(self, batch, bad):
        """Fail these rows of the batch, [(row numbers, error)], for good."""
        if self._halts:
            self._halt_after(batch)
            rows, error = min(bad, key=lambda each: each[0].min())
            first = int(rows.min())
            bad = [(np.array([first]), error), (np.arange(first + 1, batch.count), held_back(batch.queue.topic))]
        batch.queue.leave_out(batch, bad)

    def _halt_after(self, batch):
        """With `halts`, send nothing after a rejected record: later records would be duplicated once it is fixed and sent again."""
        if not self._halts:
            return
        error, born = held_back(batch.queue.topic), batch.born
        self._intake.halt(error, born)
        for queue in self._queues.values():
            if queue is batch.queue:
                queue.hold_back(error, behind=batch)
            else:
                queue.hold_back(error, born=born)

    @staticmethod
    def _refused_records(batch, code, named):
        """Return [(row numbers, error)] of the records that a broker rejects, grouped by error."""
        reasons = {}
        for each in named:
            reasons.setdefault(each.batch_index_error_message, []).append(each.batch_index)
        what = f"Sending a record to {batch.queue.name}"
        errors = ((np.array(sorted(set(rows))), broker_error(code, what, message)) for message, rows in reasons.items())
        return [(rows, LogFatalError(str(error), error.java_class)) for rows, error in errors]

    def _refused_as_too_large(self, batch):
        return LogFatalError(
            f"A record for {batch.queue.name} needs a batch of {len(batch.data)} bytes, more than the topic allows: increase the topic's "
            f"max.message.bytes (or the broker's message.max.bytes). max.request.size here is {self._largest}.",
            java_class("RecordTooLargeException"),
        )

    def _landed(self, batch, base_offset, log_append_time):
        self._counters.batches += 1
        self._counters.bytes += len(batch.data)
        batch.queue.answered(batch, base_offset, log_append_time)
        self._over(batch.queue.pause, f"{batch.queue.name} accepts records again")

    def _unanswered(self, batch, error):
        """Handle a lost response: resend the batch up to `retries` times; it may be in the log or not."""
        if batch.held_back is not None:
            batch.queue.refused(batch, batch.held_back)
        elif batch.attempts <= self._config["retries"]:
            batch.queue.lost(batch, uncertain=True)
        else:
            self._refuse(batch, LogFatalError(f"{error} It is not retried (retries={self._config['retries']}).", error.java_class))

    def _lose(self, broker, error):
        """Handle a lost connection: everything in flight must be resent."""
        broker.hang_up()
        topics = set()
        requests, broker.requests = broker.requests, {}
        for batches, _ in requests.values():
            for batch in batches:
                if not batch.given_up:
                    topics.add(batch.queue.topic)
                    self._unanswered(batch, error)
        self._stale |= topics
        self._again(broker.pause, f"Sending to {_topics(sorted(topics))}" if topics else "Sending", error)

    def _expire(self):
        """Fail records not delivered within delivery.timeout.ms."""
        before = self._clock.monotonic() - self._delivery_s
        error = LogFatalError(
            f"Not delivered within {self._config['delivery.timeout.ms']} ms (delivery.timeout.ms).", java_class("TimeoutException")
        )
        oldest = self._intake.expire(before, error)
        if oldest is not None:
            self._due(oldest + self._delivery_s)
        for queue in self._queues.values():
            if not queue.empty:
                queue.expire(before, error)
            if not queue.empty:
                self._due(max(queue.born + self._delivery_s, self._clock.monotonic() + 0.1 if queue.in_flight else 0))

    # ---- backoff

    def _due(self, moment):
        self._wake_at = min(self._wake_at, moment)

    def _again(self, pause, what, reason, grace_s=0.0):
        """Schedule a retry with backoff; log each reason once if the failure lasts."""
        now = self._clock.monotonic()
        pause.since = pause.since or now
        kind = getattr(reason, "java_class", None) or str(reason).partition(":")[0]
        if kind not in pause.told and now - pause.since >= grace_s and not self._stopping:
            log.warning("%s failed and is retried: %s", what, reason)
            pause.told.add(kind)
        pause.until = now + pause.backoff.next()
        self._due(pause.until)

    def _over(self, pause, what):
        if pause.told:
            log.info("%s.", what)
            pause.told.clear()
        if pause.since:
            pause.backoff.reset()
            pause.until, pause.since = 0.0, None


class _Pause:
    """Backoff between attempts at one operation."""

    def __init__(self, config, name):
        self.backoff = Backoff(config, name)
        self.until = 0.0
        self.since = None  # start of the failure
        self.told = set()  # reasons already logged


class _Broker:
    """The data connection to a broker and its requests in flight."""

    def __init__(self, node, pause):
        self.node = node
        self.pause = pause
        self.connection = None
        self.opening = None  # Underway, while connecting
        self.requests = {}  # correlation id -> (batches, deadline), oldest first

    @property
    def deadline(self):
        return next(iter(self.requests.values()))[1] if self.requests else FOREVER

    def hang_up(self):
        if self.opening is not None:
            self.opening.close()
            self.opening = None
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def _topics(names):
    names = [f"'{name}'" for name in names]
    return f"topic {names[0]}" if len(names) == 1 else f"topics {', '.join(names)}"
