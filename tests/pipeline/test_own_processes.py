"""Transforms of Python that keep no state are spread over processes of our own, and nobody sees it but by the clock."""

import os
import time

import numpy as np
import pytest

from standalone import ByteColumn, DataError, Schema, SourceBatch, Transform
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.local_worker import wait_for
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.processes import pool
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.insert_field import InsertField
from standalone.wire import Records

COUNT = 900


class Where(Transform):
    """Says in which process it is; fails, drops, doubles and dies at some records."""

    stateless = True

    def apply(self, record):
        number = record.value["n"]
        if number % 101 == 7:
            raise DataError(f"{number} is bad")
        if number % 103 == 5:
            return None
        here = record.with_value(None, {**record.value, "process": os.getpid()})
        if record.value.get("die") and os.getpid() != record.value["die"]:
            os._exit(3)
        return [here, here] if number % 107 == 3 else here


@pytest.fixture
def pipeline(spread_pipeline):
    def make(kind, engine="auto"):
        links = [Link("ins", InsertField.Value.of({"static.field": "s", "static.value": "v"})), Link("where", Where())]
        if kind == "source":
            links = [Link("hoist", HoistField.Value.of({"field": "n"})), Link("number", Numbers()), *links]
        chain = Chain(kind, StringConverter.of(is_key=True), JsonConverter.of({"schemas.enable": "false"}), StringConverter.of(), links)
        return spread_pipeline(chain, engine)

    return make


class Numbers(Transform):
    stateless = True

    def apply(self, record):
        return record.with_value(None, {"n": int(record.value["n"])})


def fetched(more=""):
    values = ByteColumn.of([f'{{"n":{row}{more}}}'.encode() for row in range(COUNT)])
    return Records(COUNT, None, values, None, None, np.arange(COUNT) * 3)


def brought_up(pipeline):
    """A pipeline whose processes are up."""
    pipeline.sink("t", 0, fetched()) if pipeline.chain.kind == "sink" else pipeline.source(lines())
    wait_for(pool.is_up, 60, "the processes")
    return pipeline


def lines():
    values = ByteColumn.of([str(row).encode() for row in range(COUNT)])
    return SourceBatch(COUNT, "t", values, Schema.STRING, offset_of=lambda row: {"at": row})


def put(result):
    records = [record for batch in result.batches for record in batch.records()]
    failures = [(failure.row, failure.stage, failure.name, str(failure.error), failure.record) for failure in result.failures]
    return [(r.original_offset, {**r.value, "process": 0}) for r in records], failures, result.dropped.tolist(), {r.value["process"] for r in records}


def test_a_sink_gets_its_records_from_two_processes_in_order(pipeline):
    spread, rows = brought_up(pipeline("sink")), pipeline("sink", "rows")
    *found, processes = put(spread.sink("t", 0, fetched()))
    *wanted, own = put(rows.sink("t", 0, fetched()))
    assert found == wanted and found[1] and found[2]
    assert own == {os.getpid()} and len(processes) == 2 and os.getpid() not in processes
    assert spread.stats.workers_records == COUNT


def test_a_source_sends_what_two_processes_made_in_order(pipeline):
    def sent(result):
        (out,) = result.out
        texts = [text.split(b',"process"')[0] for text in out.records.values]
        return out.rows.tolist(), texts, [(f.row, str(f.error), f.record) for f in result.failures], result.dropped.tolist()

    spread, rows = brought_up(pipeline("source")), pipeline("source", "rows")
    assert sent(spread.source(lines())) == sent(rows.source(lines()))
    assert spread.stats.workers_records == COUNT


def test_a_process_that_dies_costs_no_record(pipeline, caplog):
    spread, rows = brought_up(pipeline("sink")), pipeline("sink", "rows")
    deadly = fetched(f',"die":{os.getpid()}')
    assert put(spread.sink("t", 0, deadly)) == put(rows.sink("t", 0, deadly))
    assert "Python processes failed" in caplog.text and spread.stats.workers_records == 0
    assert put(spread.sink("t", 0, deadly)) == put(rows.sink("t", 0, deadly))
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_processes_that_ended_since_they_were_asked_for_cost_no_record(pipeline, monkeypatch):
    spread, rows = brought_up(pipeline("sink")), pipeline("sink", "rows")
    monkeypatch.setattr(type(spread._own), "are_up", True)
    assert pool._busy.acquire(blocking=False)
    pool.broken()
    for _ in range(2):
        assert put(spread.sink("t", 0, fetched())) == put(rows.sink("t", 0, fetched()))
    assert spread.stats.workers_records == 0


def test_processes_end_with_the_last_pipeline_that_uses_them(pipeline):
    one, other = brought_up(pipeline("sink")), brought_up(pipeline("sink"))
    pids = [process.pid for process in pool._processes]
    one.close()
    assert pool.is_up()
    other.close()
    deadline = time.monotonic() + 10
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            while time.monotonic() < deadline:
                os.kill(pid, 0)
