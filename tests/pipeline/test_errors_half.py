"""Three hundred records, a random half of them bad (and a random fiftieth), in every stage: by rows, by columns and by Spark the same are told of
with the same words, and all others come through as they were, in order."""

import functools
import json
import random

import numpy as np
import pytest

from standalone import ByteColumn, Header, Schema, SourceBatch, SourceRecord
from standalone.converters.json import JsonConverter
from standalone.converters.simple_header import SimpleHeaderConverter
from standalone.converters.string import StringConverter
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.plugins import Plugins
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.wire import Records
from tests.pipeline.stages import Louder, RefuseBad, TextConverter
from tests.pipeline.test_errors import put, told

COUNT = 300
SHARES = {"half": 2, "a fiftieth": 50}
# Spark takes a moment for each chain that it compiles: it does some.
RUNS = [
    pytest.param("auto", "half", id="half"),
    pytest.param("auto", "a fiftieth", id="a fiftieth"),
    pytest.param("spark", "half", id="half, by Spark", marks=pytest.mark.spark),
]
BY_COLUMNS = RUNS[:2]
STRUCT = '{"type":"struct","optional":false,"fields":[{"type":"string","optional":false,"field":"a"},{"type":"int64","optional":true,"field":"n"}]}'
# (properties, a bad value where the others are structs or maps {"a": "number", "n": number}); "other" is a value of another kind.
TRANSFORMS = {
    "Cast": ({"spec": "a:int32"}, "text"),
    "ExtractField": ({"field": "a"}, "other"),
    "Flatten": ({}, "other"),
    "HeaderFrom": ({"fields": "a", "headers": "h", "operation": "copy"}, "other"),
    "InsertField": ({"static.field": "b", "static.value": "c"}, "other"),
    "MaskField": ({"fields": "a"}, "other"),
    "ReplaceField": ({"exclude": "n"}, "other"),
    "TimestampConverter": ({"field": "a", "target.type": "Timestamp", "format": "yyyy"}, "text"),
}
WITHOUT_PART = {"ValueToKey": ({"fields": "a"}, "other"), "TimestampRouter": ({}, "time")}
CASES = [(f"{name}${part}", *case) for name, case in TRANSFORMS.items() for part in ("Key", "Value")]
CASES += [(name, *case) for name, case in WITHOUT_PART.items()]


@functools.cache
def some_of(share, seed):
    return frozenset(random.Random(f"{share} {seed}").sample(range(COUNT), COUNT // SHARES[share]))


def links(transform, props):
    config = {"name": "k", "connector.class": "FileStreamSink", "topics": "t", "file": "f", "transforms": "x", "transforms.x.type": transform}
    config |= {f"transforms.x.{key}": value for key, value in props.items()}
    return [Link(*link.build()) for link in ConnectorConfig.of(config, Plugins()).links()]


def part(row, schemas, bad):
    """A key or value as JSON; `bad` is None, or how it is wrong."""
    value = {"a": f"{2000 + row % 50}" if bad != "text" else f"x{row}", "n": row}
    schema = STRUCT
    if bad == "other":
        value, schema = (f"no fields {row}", '{"type":"string","optional":false}') if schemas else ([row], None)
    return f'{{"schema":{schema},"payload":{json.dumps(value)}}}'.encode() if schemas else json.dumps(value).encode()


def fetched(transform, schemas, how, bad):
    wrong = [how if row in bad else None for row in range(COUNT)]
    in_key = transform.endswith("$Key")
    keys = [part(row, schemas, wrong[row] if in_key else None) for row in range(COUNT)]
    values = [part(row, schemas, None if in_key else wrong[row]) for row in range(COUNT)]
    times = np.array([-1 if each == "time" else 1000 + row for row, each in enumerate(wrong)])
    headers = [[("h", b"%d" % row), ("h", None)] for row in range(COUNT)]
    return Records(COUNT, ByteColumn.of(keys), ByteColumn.of(values), times, headers, np.arange(COUNT) * 3)


def sink(engine, links, holder, schemas):
    enabled = {"schemas.enable": str(schemas).lower()}
    chain = Chain("sink", JsonConverter.of(enabled, **{"converter.type": "key"}), JsonConverter.of(enabled), SimpleHeaderConverter.of(), links)
    return Pipeline(chain, engine, holder, min_rows=1)


@pytest.fixture
def holder(request):
    return request.getfixturevalue("spark_holder") if request.node.callspec.params["engine"] == "spark" else None


BY_SPARK_TOO = ("Cast$Value", "TimestampConverter$Key")
FEW_IN_KEYS = [pytest.mark.night]  # few bad ones are found alike in values, and many in keys
CASES_AND_RUNS = [
    pytest.param(*case, *run.values, id=f"{case[0]} {run.id}", marks=FEW_IN_KEYS if run is RUNS[1] and case[0].endswith("$Key") else run.marks)
    for case in CASES
    for run in (RUNS if case[0] in BY_SPARK_TOO else BY_COLUMNS)
]


@pytest.mark.parametrize("schemas", [True, False], ids=["schemas", "none"])
@pytest.mark.parametrize("transform, props, how, engine, share", CASES_AND_RUNS)
def test_a_sinks_transform(engine, transform, props, how, share, schemas, holder):
    bad = some_of(share, transform)
    records = fetched(transform, schemas, how, bad)
    found = sink(engine, links(transform, props), holder, schemas).sink("t", 1, records)
    expected = sink("rows", links(transform, props), None, schemas).sink("t", 1, records)
    assert [failure.row for failure in found.failures] == sorted(bad) and {failure.stage for failure in found.failures} == {"TRANSFORMATION"}
    assert told(found) == told(expected) and put(found) == put(expected)
    assert [record.offset for record in put(found)] == [row * 3 for row in range(COUNT) if row not in bad]
    assert [record.headers[0].value for record in put(found)] == [row for row in range(COUNT) if row not in bad]


@pytest.mark.parametrize("transform, props, how, engine, share", CASES_AND_RUNS)
def test_a_sources_transform(engine, transform, props, how, share, holder):
    bad = some_of(share, transform)
    read = JsonConverter.of({})
    parts = fetched(transform, True, how, bad)
    polled = []
    for row in range(COUNT):
        key_schema, key = read.to_connect("t", parts.keys[row])
        value_schema, value = read.to_connect("t", parts.values[row])
        time = None if parts.timestamps[row] < 0 else int(parts.timestamps[row])
        schemas = {"key_schema": key_schema, "value_schema": value_schema}
        polled.append(SourceRecord("t", value, {"p": 1}, {"at": row}, key=key, timestamp=time, headers=(Header("h", row, Schema.INT32),), **schemas))

    def work(engine, holder):
        chain = Chain("source", JsonConverter.of({}, **{"converter.type": "key"}), JsonConverter.of({}), SimpleHeaderConverter.of(), links(transform, props))
        pipeline = Pipeline(chain, engine, holder, min_rows=1)
        failures, sent = [], []
        for batch in SourceBatch.runs(polled):
            result = pipeline.source(batch)
            records = batch.records()
            failures += [(each[1:], failure.record) for each, failure in zip(told(result), result.failures)]
            sent += [(row, *rest) for row, *rest in _sent(result, [record.source_offset["at"] for record in records])]
        return failures, sorted(sent, key=lambda each: each[0])

    failures, sent = work(engine, holder)
    assert (failures, sent) == work("rows", None)
    assert [record.source_offset["at"] for _, record in failures] == sorted(bad)
    assert [row for row, *_ in sent] == [row for row in range(COUNT) if row not in bad]


def _sent(result, numbers):
    for outgoing in result.out:
        rows = range(len(outgoing.records)) if outgoing.rows is None else outgoing.rows.tolist()
        records = outgoing.records
        for at, row in enumerate(rows):
            key = None if records.keys is None else records.keys[at]
            time = None if records.timestamps is None else int(records.timestamps[at])
            yield numbers[row], outgoing.topic, key, records.values[at], time, records.headers and tuple(records.headers[at])


# --- Converters ----------------------------------------------------------------------------------------------------

CHAINS_AND_RUNS = [
    pytest.param(links, *run.values, id=f"{len(links)} transforms {run.id}", marks=run.marks)
    for links, runs in (([], BY_COLUMNS), ([Louder()], RUNS))
    for run in runs
]
CONVERTERS = {"KEY_CONVERTER": 0, "VALUE_CONVERTER": 1, "HEADER_CONVERTER": 2}


def of_texts(kind, engine, holder, links=()):
    return Pipeline(Chain(kind, TextConverter(), TextConverter(), TextConverter(), list(links)), engine, holder, min_rows=1)


def texts(stage, word, bad):
    """Key, value and header of each row."""
    return [[f"{word if row in bad and at == CONVERTERS[stage] else 'good'} {at} {row}" for at in range(3)] for row in range(COUNT)]


@pytest.mark.parametrize("links, engine, share", CHAINS_AND_RUNS)
@pytest.mark.parametrize("stage", CONVERTERS)
def test_a_sinks_converter(engine, stage, share, links, holder):
    bad = some_of(share, stage)
    rows = texts(stage, "unreadable", bad)
    keys, values = (ByteColumn.of([row[at].encode() for row in rows]) for at in range(2))
    records = Records(COUNT, keys, values, np.arange(COUNT), [[("h", row[2].encode())] for row in rows], np.arange(COUNT) * 3)
    chain = [Link("x", link) for link in links]
    found, expected = (of_texts("sink", *each, chain).sink("t", 1, records) for each in ((engine, holder), ("rows", None)))
    assert [failure.row for failure in found.failures] == sorted(bad) and {failure.stage for failure in found.failures} == {stage}
    assert told(found) == told(expected) and put(found) == put(expected)
    mark = "!" if links else ""
    assert [(r.offset, r.key, r.value, r.headers[0].value) for r in put(found)] == [
        (at * 3, row[0], row[1] + mark, row[2]) for at, row in enumerate(rows) if at not in bad
    ]


@pytest.mark.parametrize("links, engine, share", CHAINS_AND_RUNS)
@pytest.mark.parametrize("stage", CONVERTERS)
def test_a_sources_converter(engine, stage, share, links, holder):
    bad = some_of(share, stage)
    rows = texts(stage, "unwritable", bad)
    schemas = {"key_schema": Schema.STRING, "value_schema": Schema.STRING}
    polled = [
        SourceRecord("t", value, {"p": 1}, {"at": row}, key=key, headers=(Header("h", header, Schema.STRING),), **schemas)
        for row, (key, value, header) in enumerate(rows)
    ]
    (batch,) = SourceBatch.runs(polled)
    chain = [Link("x", link) for link in links]
    found, expected = (of_texts("source", *each, chain).source(batch) for each in ((engine, holder), ("rows", None)))
    assert [failure.row for failure in found.failures] == sorted(bad) and {failure.stage for failure in found.failures} == {stage}
    assert told(found) == told(expected) and [failure.record for failure in found.failures] == [polled[row] for row in sorted(bad)]
    mark = "!" if links else ""
    assert [(key, value, headers) for _, _, key, value, _, headers in _sent(found, range(COUNT))] == [
        (row[0].encode(), (row[1] + mark).encode(), (("h", row[2].encode()),)) for at, row in enumerate(rows) if at not in bad
    ]


@pytest.mark.parametrize("engine, share", RUNS)
def test_each_of_several_stages_has_bad_records_of_its_own(engine, share, holder):
    """Keys, values, headers and a transform: the first stage that a record fails in counts."""
    bad = [some_of(share, seed) for seed in ("keys", "values", "headers", "transform")]

    def text(at, row):
        word = "bad" if at == 1 and row in bad[3] else "good"
        return f"unreadable {row}" if row in bad[at] else f"{word} {row}"

    keys, values = (ByteColumn.of([text(at, row).encode() for row in range(COUNT)]) for at in range(2))
    records = Records(COUNT, keys, values, None, [[("h", text(2, row).encode())] for row in range(COUNT)], np.arange(COUNT))
    chain = [Link("x", RefuseBad()), Link("y", Louder())]
    found, expected = (of_texts("sink", *each, chain).sink("t", 1, records) for each in ((engine, holder), ("rows", None)))
    assert told(found) == told(expected) and put(found) == put(expected)
    stages = ("KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER", "TRANSFORMATION")
    of_row = {row: next(stage for stage, rows in zip(stages, bad) if row in rows) for row in frozenset().union(*bad)}
    assert {failure.row: failure.stage for failure in found.failures} == of_row


def test_a_chain_of_strings_alone_has_no_bad_records():
    """Bytes of any kind are strings."""
    rng = random.Random(1)
    records = Records(COUNT, None, ByteColumn.of([rng.randbytes(rng.randrange(20)) for _ in range(COUNT)]), None, None, np.arange(COUNT))
    chain = Chain("sink", StringConverter.of(is_key=True), StringConverter.of(), StringConverter.of(), [])
    by_columns, by_rows = (Pipeline(chain, engine, None).sink("t", 0, records) for engine in ("auto", "rows"))
    assert by_columns.failures == by_rows.failures == [] and put(by_columns) == put(by_rows)
