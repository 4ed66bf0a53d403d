"""A sink's batches worked one ahead of its task, in processes of our own: the same results, in the same order, whatever comes between."""

import os

import numpy as np
import pytest

from standalone import Transform
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.local_worker import wait_for
from standalone.pipeline.ahead import Ahead
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.processes import pool
from standalone.wire import ByteColumn, Records

SMALL, LARGE = 50, 900


class Where(Transform):
    """Says in which process it is, and dies elsewhere if it is told to."""

    stateless = True

    def apply(self, record):
        if record.value.get("die") and os.getpid() != record.value["die"]:
            os._exit(3)
        if record.value["n"] % 101 == 7:
            raise ValueError("bad")
        return record.with_value(None, {**record.value, "process": os.getpid()})


@pytest.fixture
def new_pipeline(spread_pipeline):
    def make():
        chain = Chain("sink", StringConverter.of(is_key=True), JsonConverter.of({"schemas.enable": "false"}), StringConverter.of(), [Link("w", Where())])
        pipeline = spread_pipeline(chain)
        pipeline.sink("t", 0, fetched(0, LARGE))
        wait_for(pool.is_up, 60, "the processes")
        return pipeline

    return make


def fetched(first, count, more=""):
    values = ByteColumn.of([f'{{"n":{row}{more}}}'.encode() for row in range(first, first + count)])
    return Records(count, None, values, None, None, np.arange(first, first + count))


def told(done):
    """[(topic, partition, offsets that came through, offsets that failed, whether it was done elsewhere)]"""
    found = []
    for topic, partition, records, result in done:
        made = [record for batch in result.batches for record in batch.records()]
        failed = [int(records.offsets[failure.row]) for failure in result.failures]
        found.append((topic, partition, [r.original_offset for r in made], failed, os.getpid() not in {r.value["process"] for r in made}))
    return found


def wanted(topic, partition, first, count, elsewhere=True):
    offsets = range(first, first + count)
    return topic, partition, [at for at in offsets if at % 101 != 7], [at for at in offsets if at % 101 == 7], elsewhere


def test_each_batch_is_done_when_the_next_is_begun(new_pipeline):
    ahead = Ahead(new_pipeline())
    assert told(ahead.work("t", 0, fetched(0, LARGE))) == [] and ahead.is_busy
    assert told(ahead.work("t", 1, fetched(5000, LARGE))) == [wanted("t", 0, 0, LARGE)] and ahead.is_busy
    assert told(ahead.finish()) == [wanted("t", 1, 5000, LARGE)] and not ahead.is_busy
    assert ahead.finish() == []


def test_a_small_batch_waits_for_nothing_but_what_is_before_it(new_pipeline):
    ahead = Ahead(new_pipeline())
    assert told(ahead.work("t", 0, fetched(0, SMALL))) == [wanted("t", 0, 0, SMALL, False)] and not ahead.is_busy
    ahead.work("t", 0, fetched(100, LARGE))
    assert told(ahead.work("t", 0, fetched(1000, SMALL))) == [wanted("t", 0, 100, LARGE), wanted("t", 0, 1000, SMALL, False)]
    assert not ahead.is_busy


def test_what_is_forgotten_is_told_by_where_it_began(new_pipeline):
    ahead = Ahead(new_pipeline())
    ahead.work("t", 3, fetched(70, LARGE))
    assert ahead.forget({("t", 4), ("u", 3)}) is None and ahead.is_busy
    assert ahead.forget({("t", 3)}) == (("t", 3), 70) and not ahead.is_busy
    ahead.work("t", 3, fetched(70, LARGE))
    assert told(ahead.finish()) == [wanted("t", 3, 70, LARGE)]


def test_others_do_their_batches_themselves_meanwhile(new_pipeline):
    one, other = Ahead(new_pipeline()), Ahead(new_pipeline())
    one.work("t", 0, fetched(0, LARGE))
    assert told(other.work("u", 0, fetched(0, LARGE))) == [wanted("u", 0, 0, LARGE, False)]
    assert told(one.finish()) == [wanted("t", 0, 0, LARGE)]
    other.work("u", 0, fetched(0, LARGE))
    assert told(other.finish()) == [wanted("u", 0, 0, LARGE)]


@pytest.mark.parametrize("is_first", [True, False], ids=["the first", "the one behind it"])
def test_processes_that_die_cost_neither_batch(new_pipeline, caplog, is_first):
    ahead, deadly = Ahead(new_pipeline()), f',"die":{os.getpid()}'
    assert ahead.work("t", 0, fetched(0, LARGE, deadly if is_first else "")) == []
    done = told(ahead.work("t", 0, fetched(1000, LARGE, "" if is_first else deadly)))
    done += told(ahead.work("t", 0, fetched(2000, LARGE)))
    done += told(ahead.finish())
    assert [each[:4] for each in done] == [wanted("t", 0, first, LARGE)[:4] for first in (0, 1000, 2000)]
    assert "Python processes failed" in caplog.text and not ahead.is_busy


def test_a_pipeline_is_closed_with_a_batch_under_way(new_pipeline):
    pipeline = new_pipeline()
    Ahead(pipeline).work("t", 0, fetched(0, LARGE))
    other = new_pipeline()
    pipeline._leave_own()
    done = other.sink("t", 0, fetched(0, LARGE))
    assert len(done.failures) == 9 and other.stats.workers_records == LARGE
