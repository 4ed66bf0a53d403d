"""Sequences of idempotent producers: what is new, what is a repeat, what is refused; and that it outlives a restart."""

import pytest
from pytest import param

from standalone.log import batch_header
from standalone.log.broker.producers import EXPIRATION_MS, Producers
from standalone.log.broker.refusal import Refusal, codes
from tests.log.broker_clients import batch

MAX = 2**31 - 1
NEW = "new"


def header(sequence, count=1, producer_id=7, epoch=0):
    return batch_header.parse_header(batch([b"v"] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))


def take(producers, header, offset, now_ms=0):
    """'new', the offset of the first time, or the error's code; what is new is kept at `offset`."""
    try:
        known = producers.check(header)
    except Refusal as refusal:
        return refusal.code
    if known:
        return known.base_offset
    producers.record(header, offset, now_ms)
    return NEW


OUT_OF_ORDER = codes.OutOfOrderSequenceNumberError.errno


@pytest.mark.parametrize(
    "batches, outcomes",
    [
        param([(0, 3), (3, 2), (5, 1)], [NEW, NEW, NEW], id="one after the other"),
        param([(0, 3), (0, 3)], [NEW, 0], id="a repeat has the offset of the first time"),
        param([(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (0, 1)], [NEW] * 5 + [0], id="the fifth last is remembered"),
        param([(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (0, 1)], [NEW] * 6 + [OUT_OF_ORDER], id="the sixth last is not"),
        param([(0, 3), (4, 1)], [NEW, OUT_OF_ORDER], id="a gap"),
        param([(0, 3), (0, 2)], [NEW, OUT_OF_ORDER], id="a part of a batch is not a repeat"),
        param([(9, 3), (12, 1)], [NEW, NEW], id="an unknown producer may begin anywhere"),
        param([(MAX - 1, 2), (0, 1)], [NEW, NEW], id="sequences begin again after the largest"),
        param([(MAX, 3), (2, 1), (MAX, 3)], [NEW, NEW, 0], id="a batch across the largest sequence"),
        param([(0, 1, 1), (0, 1, 2)], [NEW, NEW], id="a new epoch begins at 0"),
        param([(0, 1, 1), (1, 1, 2)], [NEW, OUT_OF_ORDER], id="a new epoch that does not begin at 0"),
        param([(0, 1, 1), (0, 1, 0)], [NEW, codes.InvalidProducerEpochError.errno], id="an old epoch"),
        param([(-1, 1)], [codes.InvalidRecordError.errno], id="an id without a sequence"),
    ],
)
def test_sequences(batches, outcomes):
    producers = Producers()
    found = []
    for number, (sequence, count, *epoch) in enumerate(batches):
        found.append(take(producers, header(sequence, count, epoch=epoch[0] if epoch else 0), offset=number * 100))
    assert found == outcomes


def test_producers_do_not_know_of_each_other():
    producers = Producers()
    assert take(producers, header(0, producer_id=1), 0) == NEW
    assert take(producers, header(0, producer_id=2), 1) == NEW
    assert take(producers, header(0, producer_id=1), 2) == 0


def test_a_batch_without_producer_is_always_new():
    producers = Producers()
    plain = header(-1, producer_id=-1, epoch=-1)
    assert [take(producers, plain, n) for n in range(3)] == [NEW] * 3
    assert len(producers) == 0


def test_what_is_saved_is_known_again(tmp_path):
    producers = Producers()
    for sequence in range(7):
        take(producers, header(sequence), offset=sequence)
    (tmp_path / "p").write_bytes(producers.save(7))
    again, offset = Producers.load(tmp_path / "p", 7)
    assert offset == 7
    assert take(again, header(6), 99) == 6
    assert take(again, header(1), 99) == OUT_OF_ORDER
    assert take(again, header(7), 7) == NEW


def test_what_lies_beyond_the_end_of_the_log_is_forgotten(tmp_path):
    producers = Producers()
    for sequence in range(3):
        take(producers, header(sequence), offset=sequence)
    (tmp_path / "p").write_bytes(producers.save(3))
    again, offset = Producers.load(tmp_path / "p", end_offset=2)
    assert (len(again), offset) == (0, 0)  # all is taken from the log again: an ended transaction may be open again
    assert take(again, header(2), 2) == NEW


def test_a_batch_that_the_log_lost_is_no_repeat_when_it_comes_again(tmp_path):
    """The snapshot was taken where the log ends now, and knows of a batch that stood there: taken for a repeat it would be lost."""
    producers = Producers()
    for sequence in range(3):
        take(producers, header(sequence), offset=sequence)
    (tmp_path / "p").write_bytes(producers.save(2))
    again, offset = Producers.load(tmp_path / "p", end_offset=2)
    assert offset == 2 and take(again, header(1), 99) == 1
    assert take(again, header(2), 2) == NEW


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"offset": 1}', b'{"offset": 1, "producers": [[1]]}', b'{"offset": "x", "producers": []}'])
def test_a_damaged_file_sends_back_to_the_log(tmp_path, content):
    (tmp_path / "p").write_bytes(content)
    producers, offset = Producers.load(tmp_path / "p", 9)
    assert (len(producers), offset) == (0, 0)


def test_silent_producers_expire():
    producers = Producers()
    take(producers, header(0, producer_id=1), 0, now_ms=1)
    take(producers, header(0, producer_id=2), 1, now_ms=EXPIRATION_MS)
    producers.expire(EXPIRATION_MS + 2)
    assert len(producers) == 1
    assert take(producers, header(5, producer_id=1), 2) == NEW
