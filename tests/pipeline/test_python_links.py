"""Links of Python that keep no state run in Spark's Python workers, and nobody sees it but by the clock. Those that remember stay here."""

import logging
import os
import pickle
import signal
import threading

import numpy as np
import pyarrow as pa
import pytest

from standalone import ByteColumn, DataError, Schema, SourceBatch, Transform
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.data.column import values_of
from standalone.data.shaping import shaped
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.columns.batch import ColumnBatch
from standalone.pipeline.columns.segments import PythonHere
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.spark import python
from standalone.pipeline.spark.pieces import InFiles, InJob, are_here
from standalone.pipeline.spark.python import PythonLinks, copied, may_be_copied
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.insert_field import InsertField
from standalone.wire import Records
from tests.pipeline.stages import Louder, TextConverter

COUNT = 1200


class Where(Transform):
    """Says in which process it is; fails, drops and doubles some records, and gives some another shape where it is told to."""

    stateless = True

    def apply(self, record):
        number = record.value["n"]
        if number % 101 == 7:
            raise DataError(f"{number} is bad")
        if number % 103 == 5:
            return None
        here = record.with_value(None, {**record.value, "process": os.getpid()})
        if record.value.get("uneven") and number % 97 == 2:
            here = record.with_value(None, {"process": os.getpid(), "n": [number, {"of": "another shape"}]})
        return [here, here] if number % 107 == 3 else here


class Numbers(Transform):
    stateless = True

    def apply(self, record):
        return record.with_value(None, {"n": int(record.value["n"])})


class Seen(Transform):
    """Remembers what it has seen: it must see each record once, in order, and here."""

    def __init__(self):
        self.numbers = []

    def apply(self, record):
        number = record.value["n"]
        self.numbers.append(number)
        return record.with_value(None, {**record.value, "seen": len(self.numbers), "here": os.getpid()})


def pipeline(kind, holder=None, *more):
    links = [Link("ins", InsertField.Value.of({"static.field": "s", "static.value": "v"})), Link("where", Where())]
    if kind == "source":
        links = [Link("hoist", HoistField.Value.of({"field": "n"})), Link("number", Numbers()), *links]
    links += [Link(f"more {at}", link) for at, link in enumerate(more)]
    chain = Chain(kind, StringConverter.of(is_key=True), JsonConverter.of({"schemas.enable": "false"}), StringConverter.of(), links)
    return Pipeline(chain, "auto", holder, min_rows=100) if holder else Pipeline(chain, "rows")


def fetched(more=""):
    values = ByteColumn.of([f'{{"n":{row}{more}}}'.encode() for row in range(COUNT)])
    return Records(COUNT, None, values, None, None, np.arange(COUNT) * 3)


def lines():
    return SourceBatch(COUNT, "t", ByteColumn.of([str(row).encode() for row in range(COUNT)]), Schema.STRING, offset_of=lambda row: {"at": row})


def put(result):
    """(offsets and values but for the process, failures, rows dropped, processes)"""
    records = [record for batch in result.batches for record in batch.records()]
    failures = [(failure.row, failure.stage, failure.name, str(failure.error), failure.record) for failure in result.failures]
    here = {"process": 0, "here": 0}
    values = [(each.original_offset, {name: here.get(name, value) for name, value in each.value.items()}) for each in records]
    return values, failures, result.dropped.tolist(), {each.value["process"] for each in records}


def test_only_links_that_keep_no_state_are_copied():
    assert may_be_copied([Link("where", Where())]) and not may_be_copied([Link("where", Where()), Link("seen", Seen())])
    assert isinstance(pipeline("sink").segments[-1], PythonHere), "without Spark there is nowhere to go"


def test_pieces_go_in_files_to_workers_that_can_read_them():
    assert are_here("local") and are_here("local[2]") and are_here("local[*]")
    assert not are_here("local-cluster[2,1,1024]") and not are_here("spark://127.0.0.1:7077")


@pytest.mark.parametrize("way", [InFiles, InJob])
def test_a_piece_comes_back_as_what_was_made_of_it_and_leaves_nothing_open(way):
    before = os.listdir("/proc/self/fd")
    with way([b"a" * 100_000, b""]) as pieces:
        cells = [cell.as_py() for cell in pieces.table.column(0)]
        made = pa.table({"piece": pa.array([way.work(cell, lambda piece: piece.upper() + b"!") for cell in cells], pa.binary())})
        assert list(pieces.results([made])) == [b"A" * 100_000 + b"!", b"!"]
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("kind, carried", [("sink", ("t", 0)), ("source", ({"file": "f"}, list(range(COUNT))))])
@pytest.mark.parametrize("more", [{}, {"uneven": 1}], ids=["of one shape", "of uneven shapes"])
def test_a_piece_is_worked_part_by_part_as_it_is_at_once(kind, carried, more, monkeypatch):
    stages = copied(Chain(kind, None, None, None, [Link("where", Where())]))
    values = shaped([{"n": row, **more} for row in range(COUNT)])
    piece = pickle.dumps((ColumnBatch(COUNT, "t", partition=0, offsets=np.arange(COUNT) if kind == "sink" else None, value=values), carried))

    def worked(rows_at_once):
        monkeypatch.setattr(python, "ROWS_AT_ONCE", rows_at_once)
        made, numbers, redo = pickle.loads(python.work_piece(kind, stages, piece))
        if isinstance(made, list):
            return made, numbers.tolist(), redo.tolist()
        return values_of(made.value, None, made.count), numbers.tolist(), redo.tolist()

    made, numbers, redo = worked(COUNT)
    assert worked(7) == (made, numbers, redo)
    assert len(made) == len(numbers) > COUNT * 0.9 and redo == list(range(7, COUNT, 101)), "some are dropped and some doubled"


@pytest.mark.spark
@pytest.mark.parametrize("more, way", [("", InFiles), (',"uneven":1', InFiles), ("", InJob)], ids=["of one shape", "of uneven shapes", "in the job"])
def test_a_sink_gets_what_spark_s_workers_made_as_rows_make_it(spark_holder, more, way, monkeypatch):
    monkeypatch.setattr("standalone.pipeline.spark.python.are_here", lambda master: way is InFiles)
    spread, rows = pipeline("sink", spark_holder), pipeline("sink")
    assert any(isinstance(segment, PythonLinks) for segment in spread.segments)
    *found, processes = put(spread.sink("t", 0, fetched(more)))
    *wanted, own = put(rows.sink("t", 0, fetched(more)))
    assert found[0] == wanted[0] and found == wanted and found[1] and found[2]
    left_to_rows = {os.getpid()} & processes  # those that failed in a worker are done again here
    assert own == {os.getpid()} and processes - left_to_rows
    assert spread.counts.records["spark"] > COUNT * 0.9 and spread.counts.failed_batches == 0


@pytest.mark.spark
def test_a_batch_is_prepared_in_the_background_where_all_of_it_is_in_columns(spark_holder):
    numbers = [row for row in range(COUNT) if row % 101 != 7 and row % 103 != 5 and row % 107 != 3]
    good = Records(len(numbers), None, ByteColumn.of([f'{{"n":{row}}}'.encode() for row in numbers]), None, None, np.array(numbers))
    threads = []

    def prepare(batch):
        threads.append(threading.current_thread())
        return [record.value["n"] for record in batch.records()]

    def refuse(batch):
        raise ValueError("not now")

    spread = pipeline("sink", spark_holder)
    (batch,) = spread.begin_sink("t", 0, good, prepare).result().batches
    assert batch.prepared == numbers and threading.current_thread() not in threads
    (batch,) = spread.begin_sink("t", 0, good, refuse).result().batches
    assert batch.prepared is None and len(batch) == len(numbers), "put will say what is wrong"
    mixed = spread.begin_sink("t", 0, fetched(), prepare).result()
    assert mixed.failures and all(batch.prepared is None for batch in mixed.batches) and len(threads) == 1


@pytest.mark.spark
def test_a_source_sends_what_spark_s_workers_made_as_rows_make_it(spark_holder):
    def sent(result):
        out = sorted((row, value.split(b',"process"')[0]) for each in result.out for row, value in zip(each.rows.tolist(), each.records.values))
        return out, [(f.row, str(f.error), f.record) for f in result.failures], result.dropped.tolist()

    spread, rows = pipeline("source", spark_holder), pipeline("source")
    assert sent(spread.source(lines())) == sent(rows.source(lines()))
    assert spread.counts.records["spark"] > COUNT * 0.9 and spread.counts.failed_batches == 0


@pytest.mark.spark
def test_links_that_remember_see_each_record_once_and_in_order(spark_holder):
    spread, rows = pipeline("sink", spark_holder, Seen()), pipeline("sink", None, Seen())
    for _ in range(2):
        *found, processes = put(spread.sink("t", 0, fetched()))
        *wanted, _ = put(rows.sink("t", 0, fetched()))
        assert found == wanted
        assert processes != {os.getpid()}, "the links before it ran elsewhere"
    seen, expected = (each.chain.links[-1].transform.numbers for each in (spread, rows))
    assert seen == expected and len(seen) > COUNT


@pytest.mark.spark
@pytest.mark.last
def test_a_session_whose_java_is_killed_comes_back_and_no_record_is_lost(spark_holder, caplog):
    """One death for all that must outlive it: links of Python under way, what comes while there is no session, and what comes behind."""
    text = TextConverter.of()
    compiled = Pipeline(Chain("source", text, text, text, [Link("louder", Louder())]), "auto", spark_holder, min_rows=1)

    def send():
        (out,) = compiled.source(SourceBatch(2, "t", ByteColumn.of([b"a", b"b"]), Schema.STRING)).out
        assert list(out.records.values) == [b"a!", b"b!"]

    spread, rows = pipeline("sink", spark_holder), pipeline("sink")
    assert spark_holder.wait(120) is not None
    send()
    assert compiled.counts.batches["spark"] == 1
    with caplog.at_level(logging.WARNING):
        work = spread.begin_sink("t", 0, fetched())
        os.kill(spark_holder._process.pid, signal.SIGKILL)
        send()
        assert put(work.result())[:3] == put(rows.sink("t", 0, fetched()))[:3]
        assert spread.counts.failed_batches == 0, "that Spark is gone is nobody's fault"
        assert spark_holder.wait(120) is not None
    assert ["exit code -9" in record.getMessage() for record in caplog.records] == [True]
    assert compiled.counts.batches["rows"] == 1
    send()
    assert compiled.counts.batches["rows"] == 1
