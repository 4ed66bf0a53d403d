"""AvroConverter: what is written and read, by rows and by columns, and beside Confluent's own serialisers."""

import io
import json
import sys
from decimal import Decimal

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry._sync.mock_schema_registry_client import MockSchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from standalone import (
    ByteColumn,
    DataError,
    Field,
    Float32,
    Instant,
    Int32,
    Schema,
    SchemaBuilder,
    Struct,
    date_schema,
    decimal_schema,
    timestamp_schema,
)
from standalone.converters.avro import tree
from standalone.converters.avro.converter import AvroConverter
from standalone.converters.avro.read_schema import connect_schema
from standalone.converters.avro.write_schema import avro_text
from standalone.data.arrow import NotColumns
from standalone.data.column import columnar, values_of
from standalone.schema_registry.client import Reference, RegistrySchema
from standalone.testing import TOPIC, check_converter
from tests.converters import generated
from tests.converters.avro_generated import records
from tests.converters.fake_registry import FakeRegistry, with_registry
from tests.suite.golden import GOLDEN, cases

many = settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))  # twenty times as many by night
CONTEXT = SerializationContext("t", MessageField.VALUE)
FIXED_ID = {
    "auto__register__schemas": "false",
    "use__schema__id": "1",
    "id__compatibility__strict": "false",
    "enhanced__avro__schema__support": "true",
}


def converter(**config):
    return with_registry(AvroConverter, **config)


def of_schema(text, **config):
    """A converter whose registry has one schema, with the id 1."""
    registry = FakeRegistry()
    registry.register("t-value", RegistrySchema(text if isinstance(text, str) else json.dumps(text)))
    return with_registry(AvroConverter, registry, **config)


def avro_of(schema, **config):
    return json.loads(avro_text(schema, converter(**config)._options))


# --- Schemas --------------------------------------------------------------------------------------------------------

POINT = SchemaBuilder.struct().name("g.Point").field("x", Schema.INT32).build()
NAMELESS = SchemaBuilder.struct().field("x", Schema.INT32).build()


@pytest.mark.parametrize(
    "schema, avro",
    [
        pytest.param(Schema.STRING, "string", id="a plain type is a name"),
        pytest.param(Schema.INT8, {"type": "int", "connect.type": "int8"}, id="a narrow number says so"),
        pytest.param(Schema.OPTIONAL_INT64, ["null", "long"], id="what is optional is a union with null"),
        pytest.param(
            SchemaBuilder("int32").optional().default(3).build(),
            [{"type": "int", "connect.default": 3}, "null"],
            id="with a default null stands last",
        ),
        pytest.param(
            decimal_schema(2),
            {
                **{"type": "bytes", "scale": 2, "precision": 64, "connect.version": 1, "connect.parameters": {"scale": "2"}},
                **{"connect.name": "org.apache.kafka.connect.data.Decimal", "logicalType": "decimal"},
            },
            id="a decimal has Connect's precision",
        ),
        pytest.param(
            date_schema(),
            {"type": "int", "connect.version": 1, "connect.name": "org.apache.kafka.connect.data.Date", "logicalType": "date"},
            id="a date",
        ),
        pytest.param(
            SchemaBuilder.map(Schema.OPTIONAL_STRING, Schema.INT32).build(),
            {
                "type": "array",
                "items": {
                    **{"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro"},
                    "fields": [{"name": "key", "type": ["null", "string"], "default": None}, {"name": "value", "type": "int"}],
                },
            },
            id="a map of other keys is a list of entries",
        ),
        pytest.param(
            SchemaBuilder.struct().name("g.Line").field("a", POINT).field("b", POINT.with_(optional=True)).build(),
            {
                **{"type": "record", "name": "Line", "namespace": "g"},
                "fields": [
                    {
                        "name": "a",
                        "type": {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}], "connect.name": "g.Point"},
                    },
                    {"name": "b", "type": ["null", "Point"], "default": None},
                ],
                "connect.name": "g.Line",
            },
            id="a record is defined once",
        ),
    ],
)
def test_a_connect_schema_as_avro(schema, avro):
    assert avro_of(schema) == avro


def test_structs_without_a_name_are_numbered():
    other = SchemaBuilder.struct().field("y", NAMELESS).field("z", SchemaBuilder.struct().field("q", Schema.INT32).build()).build()
    said = avro_of(other)
    assert [said["name"], *(field["type"]["name"] for field in said["fields"])] == ["ConnectDefault", "ConnectDefault2", "ConnectDefault3"]


def test_entries_of_different_maps_are_numbered():
    first, second = (SchemaBuilder.map(Schema.INT32, each).build() for each in (Schema.STRING, Schema.INT64))
    schema = SchemaBuilder.struct().field("a", first).field("b", second).field("c", second).build()
    a, b, c = (field["type"]["items"] for field in avro_of(schema)["fields"])
    assert (a["name"], b["name"], b["connect.internal.type"], c) == ("MapEntry", "MapEntry2", "MapEntry", "MapEntry2")
    made = converter()
    value = Struct(schema, {"a": {1: "x"}, "b": {2: 3}, "c": {}})
    assert made.to_connect("t", made.from_connect("t", schema, value))[1].to_dict() == value.to_dict()


def test_two_structs_of_one_name_are_refused():
    other = SchemaBuilder.struct().name("g.Point").field("y", Schema.INT32).build()
    with pytest.raises(DataError, match=r"Two different schemas have the name 'g\.Point'"):
        avro_of(SchemaBuilder.struct().field("a", POINT).field("b", other).build())


def test_an_invalid_name_is_refused_or_scrubbed():
    schema = SchemaBuilder.struct().name("my-ns.my record").field("a-b", Schema.INT32).build()
    value = Struct(schema, {"a-b": 7})
    with pytest.raises(DataError, match=r"scrub\.invalid\.names=true"):
        converter().from_connect("t", schema, value)
    scrubbing = converter(scrub__invalid__names="true")
    data = scrubbing.from_connect("t", schema, value)
    read, _ = scrubbing.to_connect("t", data)
    assert [field.name for field in read.fields] == ["a_b"] and data[5:] == b"\x0e"
    assert avro_of(schema, scrub__invalid__names="true")["name"] == "my_record"


def test_without_meta_data_only_avros_own_words_are_said():
    assert avro_of(timestamp_schema(), connect__meta__data="false") == {"type": "long", "logicalType": "timestamp-millis"}


def test_a_schema_that_refers_to_itself_is_refused_clearly():
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    with pytest.raises(DataError, match="The Avro record 'Node' refers to itself"):
        of_schema(node).to_connect("t", b"\0\0\0\0\1\0")


def test_a_reference_is_filled_in():
    registry = FakeRegistry()
    registry.register("point", RegistrySchema(json.dumps(avro_of(POINT))))
    text = '{"type":"record","name":"L","fields":[{"name":"p","type":"g.Point"}]}'
    registry.register("t-value", RegistrySchema(text, "AVRO", (Reference("g.Point", "point", 1),)))
    schema, value = with_registry(AvroConverter, registry).to_connect("t", b"\0\0\0\0\2\x0e")
    assert schema["p"].name == "g.Point" and value["p"]["x"] == 7


def test_the_version_of_a_struct_is_that_of_its_subject():
    made = converter()
    assert made.to_connect("t", made.from_connect("t", POINT, Struct(POINT, {"x": 1})))[0].version == 1


sys.path.insert(0, str(GOLDEN.parent.parent / "scripts"))
try:
    from goldenlib.encoding import read_schema
finally:
    sys.path.pop(0)

GOLDEN_SCHEMAS = sorted(
    {
        json.dumps(case["input"]["schema"], sort_keys=True)
        for case in cases("converters")
        if isinstance(case["input"], dict) and case["input"].get("schema")
    }
    | {
        json.dumps(each, sort_keys=True)
        for case in cases("transforms")
        for each in (case["record"]["keySchema"], case["record"]["valueSchema"])
        if each
    }
)


def test_every_golden_schema_comes_back_as_it_was():
    options, left = converter(scrub__invalid__names="false")._options, []
    for text in GOLDEN_SCHEMAS:
        schema = read_schema(json.loads(text))
        try:
            node = tree.parse(avro_text(schema, options))
        except DataError as error:
            left.append(str(error))
            continue
        assert connect_schema(node, options) == schema, text
    assert len(left) < len(GOLDEN_SCHEMAS) / 5 and all("is not an Avro name" in each or "Two different" in each for each in left), left


# --- Values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema, value, data",
    [
        pytest.param(Schema.STRING, "foo", b"\x06foo", id="a text"),
        pytest.param(Schema.OPTIONAL_STRING, "foo", b"\x02\x06foo", id="an optional text"),
        pytest.param(Schema.INT64, -65, b"\x81\x01", id="a number below zero"),
        pytest.param(Schema.FLOAT64, 1.5, b"\0\0\0\0\0\0\xf8?", id="a double"),
        pytest.param(Schema.BOOLEAN, True, b"\x01", id="a boolean"),
        pytest.param(decimal_schema(2), Decimal("1.25"), b"\x02}", id="a decimal"),
        pytest.param(date_schema(), Instant(86_400_000), b"\x02", id="a date"),
        pytest.param(POINT, Struct(POINT, {"x": 3}), b"\x06", id="a struct"),
        pytest.param(SchemaBuilder.array(Schema.INT32).build(), [1, 2], b"\x04\x02\x04\0", id="a list"),
        pytest.param(SchemaBuilder.map(Schema.STRING, Schema.INT32).build(), {"a": 1}, b"\x02\x02a\x02\0", id="a map"),
    ],
)
def test_a_value(schema, value, data):
    made = converter()
    made.from_connect(TOPIC, schema, value)
    version = {"version": 1} if schema.version is None else {}
    if schema.optional:
        version = {}
    check_converter(made, schema, value, b"\0\0\0\0\x01" + data, (schema.with_(**version), _with_version(value, version)))


def _with_version(value, version):
    return Struct.trusted(value.schema.with_(**version), value.values) if isinstance(value, Struct) else value


def test_a_null_is_no_bytes():
    made = converter()
    assert made.from_connect("t", None, None) is None
    assert made.from_connect("t", Schema.OPTIONAL_STRING, None) is None
    assert made.to_connect("t", None) == (None, None)
    with pytest.raises(DataError, match="null for a required string"):
        made.from_connect("t", Schema.STRING, None)


@pytest.mark.parametrize("value", [1, Int32(2), True, 1.5, Float32(1.5), "a", [1, None, "x"], {"a": {"b": [2.5]}}, {1: "x"}])
def test_a_value_without_a_schema_comes_back(value):
    made = converter()
    schema, found = made.to_connect("t", made.from_connect("t", None, value))
    assert schema is None and found == value and type(found) is type(value)


def test_a_null_of_a_field_with_a_default_is_written_as_the_default_or_as_null():
    schema = SchemaBuilder.struct().field("a", SchemaBuilder("int32").optional().default(3).build()).build()
    value = Struct(schema)
    assert converter().from_connect("t", schema, value)[5:] == b"\0\x06"
    assert converter(ignore__default__for__nullables="true").from_connect("t", schema, value)[5:] == b"\x02"


@pytest.mark.parametrize("config", [{}, {"enhanced__avro__schema__support": "true"}, {"generalized__sum__type__support": "true"}], ids=repr)
def test_a_union_is_a_struct_of_which_one_field_is_set(config):
    said = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["null", "int", "long", "string", {"type": "array", "items": "int"}]}]}
    made = of_schema(said, **config)
    for data, expected in ((b"\0", None), (b"\x02\x0e", 7), (b"\x04\x0e", 7), (b"\x06\x02x", "x"), (b"\x08\x02\x02\0", [1])):
        _, value = made.to_connect("t", b"\0\0\0\0\1" + data)
        found = value["u"] and [item for item in value["u"].values if item is not None]
        assert found == (None if expected is None else [expected])
        assert decoded(made, [b"\0\0\0\0\1" + data]) == ([value], [])


@pytest.mark.parametrize(
    "said, value, error",
    [
        ("int", {"f1": "value1"}, r'Expected int\. Got START_OBJECT: \$ is an object \{"f1": "value1"\}, and the Avro schema has the type int'),
        ("int", "x", r"Expected int\. Got VALUE_STRING"),
        ("int", 1 << 40, r"int has 32 bits"),
        ("string", 1, r"Expected string\. Got VALUE_NUMBER_INT"),
        (["null", "int"], "x", r"Expected union\. Got VALUE_STRING.*a union of null, int"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", r"Expected enum E\. Got VALUE_STRING.*Send one of its symbols"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {"b": 1}, r"\$ has a field 'b', which the Avro record R lacks"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}, r"\$ lacks the field 'a'"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}]},
            {"a": [1, {}]},
            r"START_OBJECT: \$\.a\[\] is",
        ),
    ],
)
def test_a_value_that_does_not_fit_the_schema_it_is_written_with(said, value, error):
    made = of_schema(said, **FIXED_ID)
    with pytest.raises(DataError, match=error):
        made.from_connect("t", None, value)


def test_a_struct_that_does_not_fit_the_newest_schema():
    made = of_schema('"int"', auto__register__schemas="false", use__latest__version="true")
    with pytest.raises(DataError, match=r"Expected int\. Got START_OBJECT"):
        made.from_connect("t", POINT, Struct(POINT, {"x": 1}))


def test_the_newest_schema_is_written_by_the_names_of_fields():
    said = {"type": "record", "name": "Point", "namespace": "g", "fields": [{"name": "y", "type": "int", "default": 4}, {"name": "x", "type": "int"}]}
    made = of_schema(said, auto__register__schemas="false", use__latest__version="true")
    assert made.from_connect("t", POINT, Struct(POINT, {"x": 1})) == b"\0\0\0\0\x01\x08\x02"
    made.client.incompatible = ["reader missing field x"]
    with pytest.raises(Exception, match=r"reader missing field x Set latest\.compatibility\.strict=false"):
        of_same = with_registry(AvroConverter, made.client, auto__register__schemas="false", use__latest__version="true")
        of_same.from_connect("t", POINT, Struct(POINT, {"x": 1}))


@pytest.mark.parametrize(
    "data, said",
    [
        (b"", "there are no bytes"),
        (b"{}", "Unknown magic byte"),
        (b"\x01" + b"\0" * 20, "Schema 00000000-0000-0000-0000-000000000000 not found"),
        (b"\x01" + b"\0" * 15, "Unknown magic byte"),
        (b"\0\0\0\0\x01\x08ab", "end too early"),
        (b"\0\0\0\0\x63a", "Schema 99 not found"),
    ],
)
def test_bytes_that_cannot_be_read(data, said):
    with pytest.raises(DataError, match=said):
        of_schema('"string"').to_connect("t", data)


def test_bytes_behind_the_value_are_refused_where_the_configuration_says_so():
    assert of_schema('"int"').to_connect("t", b"\0\0\0\0\1\2rest")[1] == 1
    with pytest.raises(DataError, match="4 bytes follow the value"):
        of_schema('"int"', avro__fail__on__trailing__data="true").to_connect("t", b"\0\0\0\0\1\2rest")


@pytest.mark.parametrize(
    "strategy, subject",
    [("Topic", "t-value"), ("Associated", "t-value"), ("Record", "g.Point"), ("TopicRecord", "t-g.Point")],
)
def test_the_subject(strategy, subject):
    made = converter(value__subject__name__strategy=f"io.confluent.kafka.serializers.subject.{strategy}NameStrategy")
    data = made.from_connect("t", POINT, Struct(POINT, {"x": 1}))
    assert list(made.client.subjects) == [subject]
    assert made.to_connect("t", data)[1]["x"] == 1


def test_the_registry_is_asked_once():
    made = converter()
    for _ in range(3):
        made.to_connect("t", made.from_connect("t", Schema.STRING, "a"))
    assert made.client.asked == [("register", "t-value"), ("schema_by_id", 1), ("lookup", "t-value")]


def test_the_newest_schema_is_asked_for_again_when_its_time_is_over(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("standalone.converters.registry_converter.time.monotonic", lambda: now[0])
    made = of_schema('"int"', auto__register__schemas="false", use__latest__version="true", latest__cache__ttl__sec="60")
    assert made.from_connect("t", None, 1)[4] == 1
    made.client.register("t-value", RegistrySchema('"long"'))
    assert made.from_connect("t", None, 1)[4] == 1
    now[0] += 61
    assert made.from_connect("t", None, 1)[4] == 2


# --- Columns are rows -----------------------------------------------------------------------------------------------


def decoded(made, messages):
    """(values, rows that could not be done) by columns."""
    schema, column, bad = made.decode("t", ByteColumn.of(messages))
    return values_of(column, schema, len(messages)), [] if bad is None else bad.tolist()


_NAMES = {"é": "e", "x.y": "xy", 'q"': "q"}


def avro_like(schema):
    """A generated schema with names that Avro takes."""
    changes = {key: avro_like(each) for key in ("key_schema", "value_schema") if (each := getattr(schema, key)) is not None}
    if schema.type == "struct":
        changes["fields"] = [Field(_NAMES.get(field.name, field.name), at, avro_like(field.schema)) for at, field in enumerate(schema.fields)]
    return schema.with_(**changes) if changes else schema


@many
@given(st.data())
def test_columns_write_and_read_what_rows_do(data):
    schema = avro_like(data.draw(generated.schemas(3).filter(lambda each: each.type == "struct"))).with_(optional=False)
    values = data.draw(st.lists(generated.values(schema), min_size=1, max_size=4))
    made = converter()
    rows = [made.from_connect("t", schema, value) for value in values]
    try:
        column = columnar(values, schema, len(values))
    except NotColumns:
        column = None
    written = None if column is None else made.encode("t", schema, column, len(values))
    if written is not None:
        texts, bad = list(written[0]), [] if written[1] is None else written[1].tolist()
        assert [text for at, text in enumerate(texts) if at not in bad] == [row for at, row in enumerate(rows) if at not in bad]
    read = [made.to_connect("t", row)[1] for row in rows]
    if made.decode("t", ByteColumn.of(rows)) is not None:
        found, bad = decoded(made, rows)
        assert not bad and repr(found) == repr(read)


@many
@given(st.data())
def test_broken_messages_are_left_to_rows(data):
    schema, each = data.draw(records())
    good = [_written(schema, data.draw(each)) for _ in range(3)]
    spoiled = data.draw(st.binary(max_size=12)) if data.draw(st.booleans()) else good[0][: data.draw(st.integers(0, len(good[0])))]
    messages = [good[0], spoiled, *good[1:]]
    made = of_schema(schema, enhanced__avro__schema__support="true")
    if made.decode("t", ByteColumn.of(messages)) is None:
        return
    found, bad = decoded(made, messages)
    for at, message in enumerate(messages):
        if at not in bad:
            assert repr(found[at]) == repr(made.to_connect("t", message)[1])


# --- Beside others' serialisers -------------------------------------------------------------------------------------


def _written(schema, datum):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, datum)
    return b"\0\0\0\0\x01" + out.getvalue()


@many
@given(st.data())
def test_the_bytes_are_those_of_confluents_serialiser(data):
    schema, each = data.draw(records())
    datum, text = data.draw(each), json.dumps(schema)
    theirs = MockSchemaRegistryClient({"url": "mock://"})
    message = AvroSerializer(theirs, text)(datum, CONTEXT)
    made = of_schema(text, **FIXED_ID)
    connect, value = made.to_connect("t", message)
    again = made.from_connect("t", connect, value)
    assert again == message
    read = AvroDeserializer(theirs, text)
    assert repr(read(again, CONTEXT)) == repr(read(message, CONTEXT))
    if made.decode("t", ByteColumn.of([message])) is not None:
        assert repr(decoded(made, [message, message])) == repr(([value, value], []))


@many
@given(st.data())
def test_confluents_deserialiser_reads_what_is_written_of_connect_schemas(data):
    schema = avro_like(data.draw(generated.schemas(2).filter(lambda each: each.type == "struct"))).with_(optional=False)
    value = data.draw(generated.values(schema))
    made = converter()
    message = made.from_connect("t", schema, value)
    assume(len(message) > 5)  # theirs takes a record without fields for too little
    theirs = MockSchemaRegistryClient({"url": "mock://"})
    text = made.client.schemas[1].text
    theirs.register_schema("t-value", TheirSchema(text, "AVRO"))
    try:
        datum = AvroDeserializer(theirs)(message, CONTEXT)
    except (OverflowError, ValueError):
        reject()  # Python's dates end with the year 9999
    assert _written(json.loads(text), datum)[5:] == message[5:] or "NaN" in repr(datum) or "decimal" in text
