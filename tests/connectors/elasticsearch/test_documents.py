"""Documents, mappings, names and lines without a server: columns mean what rows mean."""

import decimal
import json

import numpy as np
import pytest
from pytest import param

from connectors.elasticsearch.bulk import Bulk, Piece, judged
from connectors.elasticsearch.documents import Documents
from connectors.elasticsearch.keys import KEYS
from connectors.elasticsearch.lines import Lines, Malformed
from connectors.elasticsearch.mapping import lacking, mapping_of
from connectors.elasticsearch.targets import index_name
from standalone import (
    ByteColumn,
    DataError,
    Header,
    Instant,
    Schema,
    SchemaBuilder,
    SinkBatch,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from standalone.data.column import columnar

DAY = Instant(1_620_259_200_000)


def struct(**fields):
    builder = SchemaBuilder.struct()
    for name, schema in fields.items():
        builder.field(name, schema)
    return builder.build()


def column_batch(schema, values, topic="t", **more):
    """A batch in columns, and the same in rows."""
    values = [Struct(schema, value) if isinstance(value, dict) and schema.type == "struct" else value for value in values]
    offsets = np.arange(10, 10 + len(values))
    rest = {"partition": 0, "origin": (topic, 0), "offsets": offsets, "value_schema": schema, **more}
    return SinkBatch(len(values), topic, columnar(values, schema, len(values)), **rest), SinkBatch(len(values), topic, values, **rest)


TEXTS = SchemaBuilder.map(Schema.STRING, Schema.INT32).build()
NUMBERED = SchemaBuilder.map(Schema.INT32, Schema.STRING).build()
INNER = struct(day=date_schema(optional=True))


@pytest.mark.parametrize(
    "schema, value, compact, document",
    [
        param(Schema.INT64, 7, True, 7, id="a number"),
        param(date_schema(), DAY, True, 1620259200000, id="a Date is milliseconds"),
        param(time_schema(), Instant(3_600_000), True, 3600000, id="a Time"),
        param(timestamp_schema(), DAY, True, 1620259200000, id="a Timestamp"),
        param(decimal_schema(2), decimal.Decimal("12.34"), True, 12.34, id="a Decimal is a number"),
        param(SchemaBuilder.array(date_schema()).build(), [DAY], True, [1620259200000], id="a list of Dates"),
        param(INNER, Struct(INNER, {"day": DAY}), True, {"day": 1620259200000}, id="a struct"),
        param(SchemaBuilder.array(INNER).build(), [Struct(INNER, {"day": None})], True, [{"day": None}], id="a list of structs"),
        param(TEXTS, {"a": 1}, True, {"a": 1}, id="a map with text keys is an object"),
        param(TEXTS, {"a": 1}, False, [{"key": "a", "value": 1}], id="a map in entries"),
        param(NUMBERED, {1: "a"}, True, [{"key": 1, "value": "a"}], id="a map with other keys"),
        param(SchemaBuilder.map(Schema.STRING, date_schema()).build(), {"a": DAY}, True, {"a": 1620259200000}, id="a map of Dates"),
    ],
)
def test_a_value_is_written_alike_by_rows_and_by_columns(schema, value, compact, document):
    schema = struct(field=schema, id=Schema.INT32)
    for batch in column_batch(schema, [{"field": value, "id": 1}] * 3):
        texts, errors = Documents(False, compact).texts(batch)
        assert not errors
        assert [json.loads(text) for text in texts] == [{"field": document, "id": 1}] * 3


def test_without_schemas_values_are_as_connect_writes_them():
    schema = struct(day=date_schema(), price=decimal_schema(2))
    for batch in column_batch(schema, [{"day": DAY, "price": decimal.Decimal("12.34")}]):
        (text,), _ = Documents(True, True).texts(batch)
        assert json.loads(text) == {"day": 18753, "price": "BNI="}


@pytest.mark.parametrize(
    "schema, mapping",
    [
        param(Schema.INT8, {"type": "byte"}, id="int8"),
        param(Schema.INT16, {"type": "short"}, id="int16"),
        param(Schema.INT32, {"type": "integer"}, id="int32"),
        param(Schema.INT64, {"type": "long"}, id="int64"),
        param(Schema.FLOAT32, {"type": "float"}, id="float32"),
        param(Schema.FLOAT64, {"type": "double"}, id="float64"),
        param(Schema.BOOLEAN, {"type": "boolean"}, id="boolean"),
        param(Schema.BYTES, {"type": "binary"}, id="bytes"),
        param(Schema.STRING, {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}, id="string"),
        param(date_schema(), {"type": "date"}, id="Date"),
        param(time_schema(), {"type": "date"}, id="Time"),
        param(timestamp_schema(), {"type": "date"}, id="Timestamp"),
        param(decimal_schema(2), {"type": "double"}, id="Decimal"),
        param(SchemaBuilder.array(Schema.INT32).build(), {"type": "integer"}, id="array"),
        param(TEXTS, {"type": "object", "dynamic": True}, id="map"),
        param(INNER, {"properties": {"day": {"type": "date"}}}, id="struct"),
        param(Schema("int32", default=7), {"type": "integer", "null_value": 7}, id="a default"),
    ],
)
def test_a_schema_becomes_a_mapping(schema, mapping):
    assert mapping_of(schema) == mapping


LONG, TEXT, OBJECT = {"type": "long"}, {"type": "text"}, {"properties": {"a": {"type": "long"}}}


@pytest.mark.parametrize(
    "wanted, found, more, conflicts",
    [
        param({"a": LONG}, {"a": LONG}, {}, 0, id="all is there"),
        param({"a": LONG, "b": TEXT}, {"a": LONG}, {"b": TEXT}, 0, id="a new field"),
        param({"s": OBJECT}, {"s": {"properties": {}}}, {"s": OBJECT}, 0, id="a new field within"),
        param({"s": OBJECT}, {"s": {"type": "nested", "properties": {}}}, {"s": {"type": "nested", **OBJECT}}, 0, id="within a nested one"),
        param({"a": TEXT}, {"a": LONG}, {}, 1, id="another type"),
        param({"a": LONG}, {"a": {"type": "double"}}, {}, 0, id="a wider number"),
        param({"s": OBJECT}, {"s": TEXT}, {}, 1, id="a struct where a text is"),
    ],
)
def test_what_a_mapping_lacks(wanted, found, more, conflicts):
    lacks, problems = lacking(wanted, found)
    assert (lacks, len(problems)) == (more, conflicts)


@pytest.mark.parametrize(
    "topic, name",
    [
        param("Orders", "orders", id="lower case"),
        param("-a", "a", id="a leading hyphen"),
        param("_a", "a", id="a leading underscore"),
        param(".", "dot", id="a dot"),
        param("a" * 300, "a" * 255, id="cut"),
        param("a,b", DataError, id="a comma"),
        param("a b", DataError, id="a space"),
        param("__a", DataError, id="two underscores"),
        param("", DataError, id="empty"),
    ],
)
def test_the_index_of_a_topic(topic, name):
    if name is DataError:
        with pytest.raises(DataError):
            index_name(topic)
    else:
        assert index_name(topic) == name


def lines_of(batch, **config):
    lines = Lines(KEYS.parse({"connection.url": "http://h:1", "schema.ignore": "true", **config}))
    texts, rows, ids, errors = lines.of(batch, "i")
    return [text.decode() for text in texts], rows.tolist(), ids, errors


DOC = struct(a=Schema.INT32)
KEYED = {"key": ByteColumn.of([b"x", b"y\"", None]), "key_schema": Schema.OPTIONAL_STRING}
ONE, INDEX = '{"a":1}\n', '{"index":{"_index":"i","_id":'


@pytest.mark.parametrize("by_rows", [False, True], ids=["by columns", "by rows"])
@pytest.mark.parametrize(
    "config, more, expected, bad",
    [
        param({}, KEYED, [f'{INDEX}"x","version":10,"version_type":"external"}}}}\n{ONE}', f'{INDEX}"y\\"","version":11,"version_type":"external"}}}}\n{ONE}'], [2], id="keys are ids, offsets versions"),
        param({"key.ignore": "true"}, KEYED, [f'{INDEX}"t+0+{at}"}}}}\n{ONE}' for at in (10, 11, 12)], [], id="topic+partition+offset"),
        param({"topic.key.ignore": "t"}, {}, [f'{INDEX}"t+0+{at}"}}}}\n{ONE}' for at in (10, 11, 12)], [], id="of this topic"),
        param({"use.autogenerated.ids": "true"}, KEYED, ['{"index":{"_index":"i"}}\n' + ONE] * 3, [], id="no ids"),
        param({}, {"key": ByteColumn.of([b"1", b"", b"z" * 513]), "key_schema": Schema.STRING}, [f'{INDEX}"1","version":10,"version_type":"external"}}}}\n{ONE}'], [1, 2], id="ids that are none"),
        param({"write.method": "upsert"}, {"key": [1, 2, 3], "key_schema": Schema.INT32}, [f'{{"update":{{"_index":"i","_id":"{n}","retry_on_conflict":5}}}}\n{{"doc":{{"a":1}},"doc_as_upsert":true}}\n' for n in (1, 2, 3)], [], id="upserts"),
        param({"data.stream.type": "logs", "data.stream.dataset": "d", "key.ignore": "true"}, {"timestamps": np.array([5, -1, 6])}, [f'{{"create":{{"_index":"i","_id":"t+0+{at}"}}}}\n{{"@timestamp":{time},"a":1}}\n' for at, time in ((10, 5), (11, "null"), (12, 6))], [], id="data streams"),
        param({"external.version.header": "v"}, {**KEYED, "headers": [(Header("v", "7"),), (Header("v", b"x"),), ()]}, [f'{INDEX}"x","version":7,"version_type":"external"}}}}\n{ONE}'], [1, 2], id="a version in a header"),
    ],
)  # fmt: skip
def test_lines(by_rows, config, more, expected, bad):
    columns, rows = column_batch(DOC, [{"a": 1}] * 3, **more)
    texts, numbers, _, errors = lines_of(rows if by_rows else columns, **config)
    assert texts == expected
    assert sorted(errors) == bad
    assert len(numbers) == len(expected)


@pytest.mark.parametrize(
    "config, expected, bad",
    [
        param({"behavior.on.null.values": "ignore"}, [INDEX + '"b","version":11,"version_type":"external"}}\n{"a":1}\n'], [], id="skipped"),
        param({"behavior.on.null.values": "delete"}, ['{"delete":{"_index":"i","_id":"a","version":10,"version_type":"external"}}\n', INDEX + '"b","version":11,"version_type":"external"}}\n{"a":1}\n'], [], id="deletions; of nothing without a key"),
        param({"behavior.on.null.values": "delete", "write.method": "upsert"}, ['{"delete":{"_index":"i","_id":"a"}}\n', '{"update":{"_index":"i","_id":"b","retry_on_conflict":5}}\n{"doc":{"a":1},"doc_as_upsert":true}\n'], [], id="deletions among upserts"),
        param({}, [INDEX + '"b","version":11,"version_type":"external"}}\n{"a":1}\n'], [0, 2], id="errors"),
    ],
)  # fmt: skip
def test_records_without_a_value(config, expected, bad):
    keys = {"key": ByteColumn.of([b"a", b"b", None]), "key_schema": Schema.OPTIONAL_STRING}
    batch = SinkBatch(3, "t", [None, {"a": 1}, None], partition=0, offsets=np.array([10, 11, 12]), origin=("t", 0), **keys)
    texts, _, _, errors = lines_of(batch, **config)
    assert texts == expected
    assert sorted(errors) == bad


def test_what_is_no_object_is_malformed():
    batch = SinkBatch(2, "t", ["text", {"a": 1}], partition=0, offsets=np.array([1, 2]), origin=("t", 0))
    texts, rows, _, errors = lines_of(batch, **{"key.ignore": "true"})
    assert rows == [1] and isinstance(errors[0], Malformed)


# --- Answers --------------------------------------------------------------------------------------------------------


def said(action, status, kind=None):
    return {action: {"status": status, **({"error": {"type": kind, "reason": "why"}} if kind else {})}}


@pytest.mark.parametrize(
    "item, verdict",
    [
        param(said("index", 201), None, id="created"),
        param(said("delete", 404), None, id="deleted what was not there"),
        param(said("index", 409, "version_conflict_engine_exception"), "conflict", id="an older version"),
        param(said("create", 409, "version_conflict_engine_exception"), "conflict", id="created before"),
        param(said("update", 409, "version_conflict_engine_exception"), "later", id="two updates at once"),
        param(said("index", 429, "es_rejected_execution_exception"), "later", id="a full queue"),
        param(said("index", 503, "unavailable_shards_exception"), "later", id="no shard"),
        param(said("index", 403, "cluster_block_exception"), "later", id="a read-only index"),
        param(said("index", 400, "mapper_parsing_exception"), "bad", id="a document that does not fit"),
        param(said("index", 400, "anything_else"), "bad", id="any other 4xx"),
        param(said("index", 403, "security_exception"), "fatal", id="no right"),
        param(said("index", 404, "index_not_found_exception"), "fatal", id="no index"),
    ],
)
def test_each_item_of_an_answer_is_judged(item, verdict):
    answer = json.dumps({"errors": True, "items": [said("index", 201), item]}).encode()
    assert [each[:2] for each in judged(answer, 2)] == ([(1, verdict)] if verdict else [])


def test_an_answer_without_errors_is_not_read():
    assert judged(b'{"errors":false,"items":[{"index":{"status":201}}]}', 1) == []


def test_an_answer_about_another_number_of_documents_is_an_error():
    with pytest.raises(ValueError):
        judged(b'{"errors":true,"items":[]}', 1)


def piece(*ids):
    lines = ByteColumn.of([b"%s\n" % id_ for id_ in ids])
    batch = SinkBatch(len(ids), "t", offsets=np.arange(len(ids)), partition=0, origin=("t", 0))
    return Piece(lines, batch, np.arange(len(ids)), list(ids))


def test_the_body_of_lines_in_any_order():
    bulk = Bulk([piece(b"a", b"b", b"c").take(np.array([2, 0])), piece(b"d", b"e").cut(1, 2)])
    assert bytes(bulk.body()) == b"c\na\ne\n"


def test_documents_that_are_sent_again_take_later_ones_of_the_same_id_along():
    bulk = Bulk([piece(b"a", b"b", b"a"), piece(b"a", b"c")])
    assert bulk.with_followers([0]) == [0, 2, 3]
    assert bytes(bulk.take([0, 2, 3]).body()) == b"a\na\na\n"
    assert [bytes(half.body()) for half in bulk.halves()] == [b"a\nb\n", b"a\na\nc\n"]
    assert bulk.find(3)[1] == 0
