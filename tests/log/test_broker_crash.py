"""The embedded log is killed at random moments: what it acknowledged is there once, in order, and idempotent producers continue."""

import random
import threading

import pytest
from kafka.protocol import admin, producer

from tests.log.broker_clients import RawClient, ServerProcess, batch, values_of, wait_for
from tests.suite.patience import PATIENCE_SECONDS

ROUNDS = 4


class Writer(threading.Thread):
    """Sends numbered batches, one at a time, and again and again until each is acknowledged; as producers do."""

    def __init__(self, producer_id, partition):
        super().__init__(daemon=True)
        self.partition = partition
        self.acknowledged = []  # offset of the batch with this number
        self.bootstrap = None
        self.producer_id = producer_id
        self.failure = None
        self.may_stop = threading.Event()
        self.up = threading.Event()
        self._random = random.Random(producer_id)

    def run(self):
        try:
            while not self.may_stop.is_set():
                if self.up.wait(0.1):
                    self._write_while_it_lives()
        except BaseException as error:
            self.failure = error

    def _write_while_it_lives(self):
        try:
            with RawClient(self.bootstrap) as client:
                while not self.may_stop.is_set():
                    number = len(self.acknowledged)
                    filler = b"." * self._random.choice((10, 500, 40_000))
                    data = batch([b"%d" % number, filler], producer_id=self.producer_id, producer_epoch=0, base_sequence=number * 2 & 0x7FFFFFFF)
                    answer = client.produce("t", data, self.partition)
                    assert answer.error_code == 0, answer
                    self.acknowledged.append(answer.base_offset)
        except (ConnectionError, OSError):
            self.up.clear()


def wait_until_written(writers, batches):
    """Until there are so many more: the moment of the kill, wherever it finds the other batches."""
    before = sum(len(writer.acknowledged) for writer in writers)
    wait_for(lambda: sum(len(writer.acknowledged) for writer in writers) >= before + batches)


def read_all(client, partition):
    found, offset = [], 0
    while rows := values_of(client.fetch("t", offset, partition).records):
        found += rows
        offset = rows[-1][0] + 1
    return found


@pytest.mark.parametrize("flush_ms", [5, 60_000])
def test_kill_9_loses_nothing_that_was_acknowledged_and_repeats_nothing(tmp_path, flush_ms):
    chance = random.Random(flush_ms)
    config = {"segment_bytes": 300_000, "flush_interval_ms": flush_ms}
    writers = []
    for round_number in range(ROUNDS + 1):
        server = ServerProcess(tmp_path, **config)
        with RawClient(server.bootstrap) as client:
            if not writers:
                topic = admin.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=1, assignments=[], configs=[])
                client.call(admin.CreateTopicsRequest(version=5, topics=[topic], timeout_ms=1000), admin.CreateTopicsResponse)
                for partition in range(2):
                    answer = client.call(producer.InitProducerIdRequest(version=4, transactional_id=None), producer.InitProducerIdResponse)
                    writers.append(Writer(answer.producer_id, partition))
                    writers[-1].start()
            for writer in writers:
                check(client, writer)
        for writer in writers:
            writer.bootstrap = server.bootstrap
            writer.up.set()
        if round_number < ROUNDS:
            wait_until_written(writers, chance.randint(1, 40))
            errors = server.kill()
            assert "Traceback" not in errors, errors
    for writer in writers:
        writer.may_stop.set()
        writer.join(PATIENCE_SECONDS)
        assert writer.failure is None, writer.failure
        assert len(writer.acknowledged) > ROUNDS
    with RawClient(server.bootstrap) as client:
        for writer in writers:
            check(client, writer)
    assert "Traceback" not in server.stop()
    server = ServerProcess(tmp_path, **config)
    with RawClient(server.bootstrap) as client:
        for writer in writers:
            check(client, writer)
    server.stop()


def check(client, writer):
    """Every acknowledged batch is where it was said to be; nothing is twice, nothing out of order."""
    acknowledged = list(writer.acknowledged)
    rows = read_all(client, writer.partition)
    assert [offset for offset, _ in rows] == list(range(len(rows)))
    numbers = [int(value) for offset, value in rows if offset % 2 == 0]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= len(acknowledged)
    assert acknowledged == [number * 2 for number in range(len(acknowledged))]
