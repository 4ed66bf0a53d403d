"""Repetition in order, against a model of what a broker checks: whatever goes wrong, each record is in the log once, in order."""

import collections
import random

import numpy as np
import pytest

from standalone import wire
from standalone.clock import SYSTEM
from standalone.log import record_batch
from standalone.log.client_config import ProducerConfig
from standalone.log.intake import fail_all
from standalone.log.partition_queue import LAST_EPOCH, Piece
from standalone.log.producer import Counters
from standalone.log.sender import Sender
from tests.suite.night import night

OK, NOT_LEADER, TOO_LARGE, NOT_ENOUGH_REPLICAS, AFTER_APPEND, OUT_OF_ORDER, DUPLICATE, INVALID_RECORD = 0, 6, 10, 19, 20, 45, 46, 87
param = pytest.param


class ModelBroker:
    """One partition's log with the producer state that a broker keeps: the epoch, and the last five batches."""

    def __init__(self, largest=1 << 30):
        self.log = []
        self.largest = largest
        self.poison = ()  # values that are refused for good
        self.names = False  # whether it says which in a batch they are
        self._epoch = -1
        self._batches = collections.deque(maxlen=5)  # (first sequence, last sequence, offset)

    def append(self, data):
        """(error code, offset)"""
        if len(data) > self.largest:
            return TOO_LARGE, -1
        header = record_batch.parse_header(data)
        (records,) = record_batch.unpack(bytes(data)).records
        found = list(records.values)
        if not set(found).isdisjoint(self.poison):
            return INVALID_RECORD, -1
        if header.base_sequence < 0:  # of a producer without sequences
            self.log += found
            return OK, len(self.log) - len(found)
        first, last = header.base_sequence, header.base_sequence + header.count - 1
        if header.producer_epoch == self._epoch:
            for known_first, known_last, offset in self._batches:
                if (first, last) == (known_first, known_last):
                    return OK, offset
            if self._batches and first != self._batches[-1][1] + 1:
                return OUT_OF_ORDER, -1
        elif self._epoch >= 0 and first != 0:
            return OUT_OF_ORDER, -1
        else:
            self._batches.clear()
        assert header.producer_epoch >= self._epoch
        self._epoch = header.producer_epoch
        offset = len(self.log)
        self._batches.append((first, last, offset))
        self.log += found
        return OK, offset


Named = collections.namedtuple("Named", ["batch_index", "batch_index_error_message"])


class Delivery:
    """Stands for a send; knows which of its values were acknowledged where, and which failed."""

    born = 0.0
    partition = 0

    def __init__(self, values):
        self.values = values
        self.offsets, self.failed = {}, {}

    def acknowledge(self, piece, partition, offset, log_append_time):
        for at, value in enumerate(self._values(piece)):
            assert value not in self.offsets and value not in self.failed
            self.offsets[value] = offset + at

    def fail(self, piece, error):
        for value in self._values(piece):
            assert value not in self.offsets and value not in self.failed
            self.failed[value] = error

    def _values(self, piece):
        return [self.values[row] for row in np.arange(len(self.values))[piece.rows]]

    def piece(self):
        return Piece(wire.Records(len(self.values), values=wire.ByteColumn.of(self.values)), slice(0, len(self.values)), self, 0)


class Simulation:
    def __init__(self, broker, **config):
        self.broker = broker
        self.sender = Sender(ProducerConfig.of(config), None, SYSTEM, Counters())
        self.sender._identity = 7, 0
        self.queue = self.sender._queue("t", 0)
        self.under_way = collections.deque()
        self.deliveries = []

    def hand_over(self, values):
        self.deliveries.append(Delivery(values))
        self.queue.add(self.deliveries[-1].piece())

    def send(self):
        while self.queue.sendable:
            batch = self.queue.next_batch()
            if batch is None:
                return
            self.queue.take(batch)
            self.under_way.append((batch, bytes(batch.data)))

    def answer(self, instead=None):
        """The broker takes the oldest request and answers it, or does something else about it."""
        batch, data = self.under_way.popleft()
        if instead in (NOT_LEADER, NOT_ENOUGH_REPLICAS):
            self.sender._failed(batch, instead, None)
            return
        code, offset = self.broker.append(data)
        if code == INVALID_RECORD and self.broker.names:
            (records,) = record_batch.unpack(data).records
            named = [Named(row, "it is bad") for row, value in enumerate(records.values) if value in self.broker.poison]
            self.sender._failed(batch, code, None, named)
        elif code == OK and instead == AFTER_APPEND:
            self.sender._failed(batch, AFTER_APPEND, None)
        elif code == OK:
            self.sender._landed(batch, offset, -1)
        else:
            self.sender._failed(batch, code, None)

    def disconnect(self, taken):
        """The broker takes so many more requests; no answer arrives."""
        for at, (batch, data) in enumerate(self.under_way):
            if at < taken:
                self.broker.append(data)
            self.queue.lost(batch, uncertain=True)
        self.under_way.clear()

    def finish(self):
        for _ in range(10_000):
            self.send()
            if not self.under_way:
                assert self.queue.empty
                return
            self.answer()
        raise AssertionError("it does not come to an end")

    @property
    def failed(self):
        return {value: error for delivery in self.deliveries for value, error in delivery.failed.items()}

    def check_log(self):
        """What is acknowledged is in the log where it was said to be; nothing twice; all in the order of the sends."""
        sent = [value for delivery in self.deliveries for value in delivery.values]
        expected = [value for value in sent if value not in self.failed]
        assert [value for value in self.broker.log if value not in self.failed] == expected
        for delivery in self.deliveries:
            for value, offset in delivery.offsets.items():
                assert self.broker.log[offset] == value


def numbered(low, high):
    return [b"%d" % number for number in range(low, high)]


def test_what_is_under_way_does_not_expire_and_what_was_not_sent_does():
    """Of a request that may be in the log nobody can say that it failed: its answer is waited for."""
    simulation, error = Simulation(ModelBroker()), TimeoutError("too late")
    simulation.hand_over(numbered(0, 3))
    simulation.send()
    simulation.queue.expire(1.0, error)
    assert simulation.under_way and simulation.failed == {}
    simulation.answer()
    simulation.hand_over(numbered(3, 5))
    simulation.queue.expire(1.0, error)
    assert simulation.failed == dict.fromkeys(numbered(3, 5), error)
    simulation.check_log()


@pytest.mark.parametrize("seed", [*range(15), *night(*range(15, 60))])
def test_each_record_is_in_the_log_once_and_in_order_whatever_happens(seed):
    rng = random.Random(seed)
    simulation = Simulation(ModelBroker(largest=rng.choice([400, 1 << 30])), **{"max.request.size": rng.choice([120, 600, 5000])})
    sent = 0
    for _ in range(120):
        what = rng.random()
        if what < 0.4:
            count = rng.choice([1, 3, 40])
            simulation.hand_over(numbered(sent, sent + count))
            sent += count
        simulation.send()
        if simulation.under_way and what > 0.3:
            simulation.answer(rng.choice([None, None, None, NOT_LEADER, NOT_ENOUGH_REPLICAS, AFTER_APPEND]))
        if what > 0.93:
            simulation.disconnect(rng.randint(0, 5))
    simulation.finish()
    simulation.check_log()
    assert not simulation.failed and len(simulation.broker.log) == sent


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("seed", [*range(3), *night(*range(3, 10))])
def test_records_refused_for_good_take_no_other_along(seed, names, idempotent):
    rng = random.Random(seed)
    simulation = Simulation(ModelBroker(), **{"max.request.size": 200, "enable.idempotence": idempotent})
    simulation.broker.poison = {b"%d" % number for number in [*rng.sample(range(300), 7), 299]}
    simulation.broker.names = names
    for low in range(0, 300, 10):
        simulation.hand_over(numbered(low, low + 10))
        simulation.send()
        if simulation.under_way and rng.random() < 0.6:
            simulation.answer(rng.choice([None, None, NOT_ENOUGH_REPLICAS]))
    simulation.finish()
    simulation.check_log()
    assert set(simulation.failed) == simulation.broker.poison
    assert {error.java_class for error in simulation.failed.values()} == {"org.apache.kafka.common.errors.InvalidRecordException"}
    assert all(("it is bad" in str(error)) == names for error in simulation.failed.values())


def test_of_a_batch_that_may_be_in_the_log_none_is_sent_again_without_the_bad_ones():
    simulation = Simulation(ModelBroker())
    simulation.hand_over(numbered(0, 5))
    simulation.send()
    simulation.disconnect(taken=1)
    simulation.broker.poison, simulation.broker.names = {b"3"}, True  # what the topic takes has changed meanwhile
    simulation.finish()
    assert set(simulation.failed) == set(numbered(0, 5)) and simulation.broker.log == numbered(0, 5)
    assert "may or may not be in the log" in str(simulation.failed[b"0"])


def test_a_batch_is_repeated_as_the_same_bytes():
    simulation = Simulation(ModelBroker())
    simulation.hand_over(numbered(0, 5))
    simulation.send()
    ((_, first),) = simulation.under_way
    simulation.disconnect(taken=1)
    simulation.send()
    ((_, again),) = simulation.under_way
    assert again == first
    simulation.finish()
    assert simulation.broker.log == numbered(0, 5)


def test_what_may_be_in_the_log_behind_a_failure_is_neither_sent_again_nor_called_delivered():
    simulation = Simulation(ModelBroker(), **{"max.request.size": 100})
    simulation.hand_over([b"first"])
    simulation.finish()
    simulation.hand_over([b"x" * 60])
    simulation.send()
    simulation.hand_over([b"y" * 60])
    simulation.send()
    simulation.disconnect(taken=2)
    simulation.broker.poison = {b"x" * 60}  # such as a topic that is forbidden from now on
    simulation.send()
    simulation.finish()
    assert set(simulation.failed) == {b"x" * 60, b"y" * 60}
    assert "may or may not be in the log" in str(simulation.failed[b"y" * 60])
    simulation.hand_over([b"z"])
    simulation.finish()
    assert simulation.broker.log[-1] == b"z"


def test_a_broker_that_refuses_every_sequence_is_believed_in_the_end():
    simulation = Simulation(ModelBroker())
    simulation.broker.append = lambda data: (OUT_OF_ORDER, -1)
    simulation.hand_over([b"a"])
    simulation.finish()
    (error,) = simulation.failed.values()
    assert error.java_class == "org.apache.kafka.common.errors.OutOfOrderSequenceException"


def test_behind_the_last_epoch_comes_another_producer_id():
    simulation = Simulation(ModelBroker())
    queue = simulation.queue
    queue._identity = 7, LAST_EPOCH
    queue._new_identity = lambda fresh=False: (8, 0) if fresh else (7, LAST_EPOCH)
    simulation.hand_over([b"a"])
    simulation.send()
    ((batch, _),) = simulation.under_way
    simulation.under_way.clear()
    queue.restart(batch)
    simulation.send()
    header = record_batch.parse_header(simulation.under_way[0][1])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 0, 0)


def test_what_is_given_up_while_under_way_is_answered_once():
    simulation = Simulation(ModelBroker())
    simulation.hand_over([b"a"])
    simulation.send()
    simulation.hand_over([b"b"])
    error = RuntimeError("forbidden")
    simulation.queue.give_up(error)
    assert simulation.failed == {b"a": error, b"b": error} and simulation.under_way[0][0].given_up
    simulation.under_way.clear()
    simulation.hand_over([b"c"])
    simulation.finish()
    assert simulation.broker.log == [b"c"]


def test_the_small_end_of_a_send_goes_with_the_next_one():
    simulation = Simulation(ModelBroker(), **{"max.request.size": 1000})
    values = [b"%03d" % number + b"v" * 50 for number in range(36)]
    for low in range(0, 36, 18):  # a little more than one batch each
        simulation.hand_over(values[low : low + 18])
    simulation.finish()
    assert simulation.broker.log == values
    assert simulation.sender._counters.batches == 3


def test_pieces_fail_by_their_own_rows():
    delivery = Delivery(numbered(0, 10))
    piece = delivery.piece()
    fail_all([piece.slice(2, 5).take(np.array([0, 2])), piece.take(np.array([9]))], "bad")
    assert list(delivery.failed) == [b"2", b"4", b"9"]
