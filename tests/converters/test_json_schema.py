"""JsonSchemaConverter: schemas and values, beside Confluent's serialiser."""

import json
from decimal import Decimal

import pytest
from confluent_kafka.schema_registry._sync.mock_schema_registry_client import MockSchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standalone import ByteColumn, DataError, Schema, SchemaBuilder, Struct, decimal_schema
from standalone.converters.json_schema.converter import JsonSchemaConverter
from standalone.data.arrow import NotColumns
from standalone.data.column import columnar, values_of
from standalone.schema_registry.client import Reference, RegistrySchema
from tests.converters import generated
from tests.converters.fake_registry import FakeRegistry, with_registry

HEAD = b"\0\0\0\0\x01"
CONTEXT = SerializationContext("t", MessageField.VALUE)
many = settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))  # twenty times as many by night


def of_schema(said, references=(), registry=None, **config):
    registry = registry or FakeRegistry()
    registry.register("t-value", RegistrySchema(json.dumps(said), "JSON", tuple(references)))
    return with_registry(JsonSchemaConverter, registry, **config)


@pytest.mark.parametrize(
    "schema, said",
    [
        (Schema.STRING, {"type": "string"}),
        (Schema.INT8, {"type": "integer", "connect.type": "int8"}),
        (Schema.OPTIONAL_BOOLEAN, {"oneOf": [{"type": "null"}, {"type": "boolean"}]}),
        (Schema.BYTES, {"type": "string", "connect.type": "bytes"}),
        (
            decimal_schema(2),
            {
                **{"type": "number", "connect.type": "bytes", "title": "org.apache.kafka.connect.data.Decimal", "connect.version": 1},
                "connect.parameters": {"scale": "2"},
            },
        ),
        (SchemaBuilder.array(Schema.INT64).build(), {"type": "array", "items": {"type": "integer", "connect.type": "int64"}}),
        (
            SchemaBuilder.map(Schema.STRING, Schema.STRING).build(),
            {"type": "object", "connect.type": "map", "additionalProperties": {"type": "string"}},
        ),
        (
            SchemaBuilder.struct().name("N").doc("d").field("a", Schema.STRING).field("b", Schema.OPTIONAL_STRING).build(),
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "connect.index": 0},
                    "b": {"connect.index": 1, "oneOf": [{"type": "null"}, {"type": "string"}]},
                },
                **{"title": "N", "description": "d"},
            },
        ),
    ],
    ids=str,
)
def test_a_connect_schema_as_json_schema(schema, said):
    assert json.loads(with_registry(JsonSchemaConverter)._writer.text(schema)) == said


@many
@given(st.data())
def test_values_come_back_with_their_schema(data):
    schema = data.draw(generated.schemas(2).filter(lambda each: each.type == "struct")).with_(optional=False)
    value = data.draw(generated.values(schema))
    converter = with_registry(JsonSchemaConverter)
    message = converter.from_connect("t", schema, value)
    found_schema, found = converter.to_connect("t", message)
    again = converter.from_connect("u", found_schema, found)
    assert again[5:] == message[5:]
    assert found_schema.with_(version=None) == schema


@many
@given(st.data())
def test_columns_write_and_read_what_rows_do(data):
    schema = data.draw(generated.schemas(2).filter(lambda each: each.type == "struct")).with_(optional=False)
    values = data.draw(st.lists(generated.values(schema), min_size=1, max_size=4))
    made = with_registry(JsonSchemaConverter)
    rows = [made.from_connect("t", schema, value) for value in values]
    try:
        written = made.encode("t", schema, columnar(values, schema, len(values)), len(values))
    except NotColumns:
        written = None
    if written is not None:
        bad = [] if written[1] is None else written[1].tolist()
        assert [text for at, text in enumerate(written[0]) if at not in bad] == [row for at, row in enumerate(rows) if at not in bad]
    found = made.decode("t", ByteColumn.of(rows))
    if found is not None:
        connect, column, bad = found
        bad, read = [] if bad is None else bad.tolist(), values_of(column, connect, len(rows))
        expected = [made.to_connect("t", row) for row in rows]
        assert all(each == connect for each, _ in expected)
        assert [repr(each) for at, each in enumerate(read) if at not in bad] == [repr(each) for at, (_, each) in enumerate(expected) if at not in bad]


def test_messages_are_read_by_columns_and_what_is_not_like_them_by_rows():
    schema = SchemaBuilder.struct().name("N").field("a", Schema.INT32).field("b", Schema.OPTIONAL_STRING).build()
    made = with_registry(JsonSchemaConverter)
    values = [Struct(schema, {"a": at, "b": None if at % 2 else f"t{at}"}) for at in range(50)]
    column, bad = made.encode("t", schema, columnar(values, schema, 50), 50)
    assert bad is None and list(column) == [made.from_connect("t", schema, value) for value in values]
    strange = [HEAD + b'{"b":"x","a":1}', HEAD + b'{"a":"x","b":null}', HEAD + b'{"a":2}', b"\0\0\0\0\x09{}"]
    found, read, bad = made.decode("t", ByteColumn.of([*column, *strange]))
    assert bad.tolist() == [50, 51, 52, 53] and repr(values_of(read, found, 54)[:50]) == repr([made.to_connect("t", each)[1] for each in column])


@pytest.mark.parametrize(
    "schema",
    [
        SchemaBuilder.struct().field("m", SchemaBuilder.map(Schema.STRING, Schema.INT32).build()).build(),
        SchemaBuilder.struct().field("u", SchemaBuilder.struct().name("io.confluent.connect.json.OneOf").field("i", Schema.OPTIONAL_INT32).field("t", Schema.OPTIONAL_STRING).build()).build(),
    ],
)
def test_maps_and_unions_are_left_to_rows(schema):
    made = with_registry(JsonSchemaConverter)
    value = {"m": {"a": 1}} if schema.field("m") else {"u": Struct(schema.fields[0].schema, {"i": 1})}
    message = made.from_connect("t", schema, Struct(schema, value))
    assert made.encode("t", schema, columnar([Struct(schema, value)], schema, 1), 1) is None and made.decode("t", ByteColumn.of([message])) is None


PERSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": ["null", "integer"]},
        "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}},
    },
    "definitions": {"tag": {"type": "string"}},
    "required": ["name"],
}


def test_the_bytes_are_read_by_confluents_and_theirs_by_ours():
    theirs = MockSchemaRegistryClient({"url": "mock://"})
    message = JSONSerializer(json.dumps(PERSON), theirs)({"name": "é", "age": None, "tags": ["a"]}, CONTEXT)
    converter = of_schema(PERSON, auto__register__schemas="false", use__schema__id="1", id__compatibility__strict="false")
    schema, value = converter.to_connect("t", message)
    assert schema.name == "Person" and value.to_dict() == {"name": "é", "age": None, "tags": ["a"]}
    again = converter.from_connect("t", schema, value)
    assert again[:5] == message[:5] and json.loads(again[5:]) == json.loads(message[5:])
    assert JSONDeserializer(json.dumps(PERSON), schema_registry_client=theirs)(again, CONTEXT) == {"name": "é", "age": None, "tags": ["a"]}


def test_a_union_takes_the_member_that_fits():
    said = {
        "type": "object",
        "properties": {
            "u": {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}, {"type": "object", "properties": {"x": {"type": "integer"}}}]}
        },
    }
    converter = of_schema(said)
    for text, at in ((b'{"u":5}', 0), (b'{"u":"s"}', 1), (b'{"u":{"x":1}}', 2)):
        _, value = converter.to_connect("t", HEAD + text)
        assert [item is not None for item in value["u"].values] == [number == at for number in range(3)]
        assert converter.from_connect("v", value.schema, value)[5:] == text
    assert converter.to_connect("t", HEAD + b'{"u":null}')[1]["u"] is None


def test_a_reference_is_filled_in():
    registry = FakeRegistry()
    registry.register(
        "other", RegistrySchema('{"definitions":{"p":{"type":"integer"}},"type":"object","properties":{"x":{"$ref":"#/definitions/p"}}}', "JSON")
    )
    converter = of_schema({"type": "object", "properties": {"o": {"$ref": "other.json"}}}, [Reference("other.json", "other", 1)], registry)
    assert converter.to_connect("t", b'\0\0\0\0\x02{"o":{"x":3}}')[1]["o"]["x"] == 3


@pytest.mark.parametrize(
    "config, data, said",
    [
        ({}, HEAD + b"{", "the message is not JSON"),
        ({}, b"{}", "Unknown magic byte"),
        ({}, HEAD + b"[]", "expected an object"),
        ({"json__fail__invalid__schema": "true"}, HEAD + b'{"age":1}', r"does not match its JSON Schema: at \$, 'name' is a required property"),
    ],
)
def test_what_cannot_be_read(config, data, said):
    with pytest.raises(DataError, match=said):
        of_schema(PERSON, **config).to_connect("t", data)


def test_a_schema_that_refers_to_itself_is_refused_clearly():
    said = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    with pytest.raises(DataError, match="refers to itself by '#'"):
        of_schema(said).to_connect("t", HEAD + b"{}")


def test_a_value_without_a_schema_needs_one_that_is_named():
    with pytest.raises(DataError, match=r"use\.latest\.version=true"):
        with_registry(JsonSchemaConverter).from_connect("t", None, {"a": 1})
    converter = of_schema(PERSON, auto__register__schemas="false", use__latest__version="true")
    assert converter.from_connect("t", None, {"name": "x"}) == HEAD + b'{"name":"x"}'
    with pytest.raises(DataError, match=r"at \$, 'name' is a required property"):
        converter.from_connect("t", None, {"age": 1})


def test_nulls():
    converter = with_registry(JsonSchemaConverter)
    assert converter.from_connect("t", None, None) is None and converter.to_connect("t", None) == (None, None)
    assert converter.from_connect("t", Schema.OPTIONAL_STRING, None)[5:] == b"null"
    with pytest.raises(DataError, match="required string"):
        converter.from_connect("t", Schema.STRING, None)


def test_decimals_as_numbers():
    schema = SchemaBuilder.struct().field("p", decimal_schema(2)).build()
    value = Struct(schema, {"p": Decimal("1.50")})
    converter = with_registry(JsonSchemaConverter, decimal__format="NUMERIC")
    data = converter.from_connect("t", schema, value)
    assert data[5:] == b'{"p":1.50}' and converter.to_connect("t", data)[1]["p"] == Decimal("1.50")
