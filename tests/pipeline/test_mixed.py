"""Chains with links that have no columnar form, between others: by rows and in columns by turns, as by rows alone."""

import json
import random

import numpy as np
import pytest

from standalone import BOOLEAN, ByteColumn, ConfigDef, DataError, Option, Schema, SourceBatch, Transform
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.data.shaping import shaped
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.columns.segments import segments_of
from standalone.pipeline.pipeline import Pipeline
from standalone.stage import Predicate
from standalone.transforms.cast import Cast
from standalone.transforms.flatten import Flatten
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.insert_field import InsertField
from standalone.transforms.regex_router import RegexRouter
from standalone.transforms.replace_field import ReplaceField
from standalone.wire import Records

COUNT = 700
REMEMBER = "links of Python that remember records: by rows, in the task's thread"


class Numbered(Transform):
    """Numbers the records that it sees, so that it shows who saw which, and in what order; does as they say in "do"."""

    def __init__(self):
        self.seen = 0

    def apply(self, record):
        self.seen += 1
        value = {**record.value, "seen": self.seen}
        do = value.pop("do", "")
        if do == "drop":
            return None
        if do == "fail":
            raise DataError("as it was told")
        if do == "two":
            return [record.with_value(None, {**value, "copy": 1}), record.with_value(None, {**value, "copy": 2}).with_(topic="second")]
        if do == "spoil one":
            return [record.with_value(None, value), record.with_value(None, {**value, "n": "none"})]
        if do == "shape":
            value["more"] = [None, {}]
        if do == "other":
            return record.with_value(None, "no map")
        if do == "null":
            value["n"] = None
        if do == "move":
            return record.with_value(None, value).with_(topic="moved", partition=3, timestamp=5)
        return record.with_value(None, value)


class IsEven(Predicate):
    config_def = ConfigDef(Option("not", BOOLEAN, "LOW", "The others.", default=False))

    def test(self, record):
        return record.value["n"] % 2 == 0


def before():
    return [Link("ins", InsertField.Value.of({"static.field": "s", "static.value": "v"})), Link("rep", ReplaceField.Value.of({"exclude": "t"}))]


def after():
    return [Link("flat", Flatten.Value.of({"delimiter": "_"})), Link("route", RegexRouter.of({"regex": "(.*)", "replacement": "$1-x"}))]


def computing(links):
    """The same with casts before and behind."""
    return [Link("cast", Cast.Value.of({"spec": "id:float64"})), *links, Link("narrow", Cast.Value.of({"spec": "n:int8"}))]


def links_of(kind):
    return {
        "between": lambda: [*before(), Link("own", Numbered()), *after()],
        "first": lambda: [Link("own", Numbered()), *after()],
        "last": lambda: [*before(), Link("own", Numbered())],
        "alone": lambda: [Link("own", Numbered())],
        "twice": lambda: [*before(), Link("own", Numbered()), *after(), Link("again", Numbered())],
        "with a predicate": lambda: [*before(), Link("own", Numbered(), IsEven(), False), *after()],
        "under a predicate of one's own": lambda: [*before(), Link("hoist", InsertField.Value.of({"static.field": "e", "static.value": "f"}), IsEven(), True), *after()],
    }[kind]()  # fmt: skip


def pipeline(kind, links, engine, holder=None):
    chain = Chain(kind, StringConverter.of(is_key=True), JsonConverter.of({"schemas.enable": "false"}), StringConverter.of(), links)
    return Pipeline(chain, engine, holder)


DEEDS = ["", "drop", "fail", "two", "spoil one", "shape", "other", "null", "move"]
KINDS = ["between", "first", "last", "alone", "twice", "with a predicate", "under a predicate of one's own"]


def messages(deeds, share, odd=()):
    draw = random.Random(f"{deeds}{share}{odd}")
    for row in range(COUNT):
        if odd and draw.random() < 0.03:
            yield draw.choice(odd)
            continue
        value = {"id": row, "n": str(row) if "texts" in odd else row, "t": f"text {row}", "l": [row, 1], "m": {"a": "é", "b": 1.5}}
        if deeds:
            value["do"] = draw.choice(deeds) if draw.random() < share else ""
        yield json.dumps(value).encode()


def outcome_of_sink(result):
    records = [record for batch in result.batches for record in batch.records()]
    failures = [(failure.row, failure.stage, failure.name, str(failure.error), failure.record) for failure in result.failures]
    return records, failures, result.dropped.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deeds", [[], *([deed] for deed in DEEDS[1:]), DEEDS], ids=lambda deeds: " ".join(deeds) or "nothing" if len(deeds) < 2 else "all")
@pytest.mark.parametrize("odd", [(), (b"{", b"[1]", b"null", b'{"n":"x"}')], ids=["plain", "odd messages"])
def test_a_sink_sees_what_rows_alone_make(kind, deeds, odd):
    values = ByteColumn.of([None if text == b"null" else text for text in messages(deeds, 0.02 if kind != "alone" else 0.5, odd)])
    records = Records(COUNT, None, values, np.arange(COUNT) % 7, None, np.arange(COUNT) * 2)
    mixed, rows = (pipeline("sink", links_of(kind), engine) for engine in ("auto", "rows"))
    assert outcome_of_sink(mixed.sink("t", 1, records)) == outcome_of_sink(rows.sink("t", 1, records))
    told = mixed.counts.reasons == {REMEMBER: COUNT} and mixed.counts.records["rows"] == COUNT
    assert told or odd or "move" in deeds, "the route of many topics is computed, and there is no Spark here"


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("odd", [(), (b"{", b"[1]", b"null", b'{"n":"x"}')], ids=["plain", "odd messages"])
def test_a_sink_sees_what_rows_alone_make_where_spark_computes_around(kind, odd, spark_holder):
    values = ByteColumn.of([None if text == b"null" else text for text in messages(DEEDS, 0.02, odd)])
    records = Records(COUNT, None, values, np.arange(COUNT) % 7, None, np.arange(COUNT) * 2)
    mixed, rows = pipeline("sink", computing(links_of(kind)), "spark", spark_holder), pipeline("sink", computing(links_of(kind)), "rows")
    assert outcome_of_sink(mixed.sink("t", 1, records)) == outcome_of_sink(rows.sink("t", 1, records))
    assert mixed.counts.batches["spark"] or odd


@pytest.mark.parametrize("kind", ["between", "first", "last", "twice"])
@pytest.mark.parametrize("deeds", [[], ["drop"], ["fail"], ["move"], ["shape"], ["two"], ["spoil one"]], ids=lambda deeds: " ".join(deeds) or "nothing")
def test_a_source_sends_what_rows_alone_make(kind, deeds):
    def sent(pipeline):
        done = []
        result = pipeline.source(SourceBatch(COUNT, "t", ByteColumn.of(list(lines)), Schema.STRING, offset_of=lambda row: {"at": row}))
        for out in result.out:
            rows = range(COUNT) if out.rows is None else out.rows.tolist()
            done += [(row, out.topic, out.partition, value) for row, value in zip(rows, out.records.values)]
        failures = [(failure.row, failure.stage, failure.name, str(failure.error), failure.record) for failure in result.failures]
        return sorted(done, key=lambda each: each[0]), failures, result.dropped.tolist()

    draw = random.Random(str(deeds))
    lines = [(draw.choice(deeds) if deeds and draw.random() < 0.02 else f"line {row}").encode() for row in range(COUNT)]
    links = lambda: [Link("hoist", HoistField.Value.of({"field": "line"})), Link("told", Told()), *links_of(kind)]  # noqa: E731
    mixed, rows = (pipeline("source", links(), engine) for engine in ("auto", "rows"))
    assert sent(mixed) == sent(rows)
    assert mixed.counts.reasons == {REMEMBER: COUNT} and mixed.counts.records["rows"] == COUNT or "move" in deeds


class Told(Transform):
    """Makes of a hoisted line what Numbered takes."""

    def apply(self, record):
        line = record.value["line"]
        return record.with_value(None, {"line": line, "n": len(line), "do": line if line in DEEDS else ""})


def test_what_has_no_column_meaning_is_found():
    links = [*before(), Link("own", Numbered()), *after()]
    made = segments_of(links, lambda low, run: ("expressions", low, len(run)), None, lambda low, run: ("python", low, len(run)))
    assert made == [("expressions", 0, 2), ("python", 2, 1), ("expressions", 3, 2)]


@pytest.mark.parametrize(
    "values",
    [[1, 2], [1, None], ["a", "é"], [True], [1.5, None], [b"x"], [{"a": 1, "b": {"c": [1, 2]}}, {"a": 3, "b": {"c": []}}], [None, None], [[], []]],
)
def test_values_of_one_shape_come_back(values):
    column = shaped(values)
    assert batch_values(column, len(values)) == values


@pytest.mark.parametrize(
    "values",
    [[1, "a"], [1, True], [{"a": 1}, {"b": 1}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [{}], [{1: 2}], [[1, None]], [None, {"a": 1}], [1 << 63], ["\ud800"], [object()]],
)  # fmt: skip
def test_values_of_several_shapes_have_none(values):
    assert shaped(values) is None


def batch_values(column, count):
    from standalone.data.column import values_of

    return values_of(column, None, count)
