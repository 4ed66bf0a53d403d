"""GUIDs of schemas in headers: what Confluent's serialisers write is read, and what is written they read; by rows and by columns."""

import json
import uuid

import numpy as np
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient as StockClient
from confluent_kafka.schema_registry import header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pytest import param

from standalone import ByteColumn, DataError, Schema, SchemaBuilder, SourceBatch, Struct
from standalone.converters.avro.converter import AvroConverter
from standalone.converters.byte_array import ByteArrayConverter
from standalone.converters.json_schema.converter import JsonSchemaConverter
from standalone.converters.protobuf.converter import ProtobufConverter
from standalone.converters.protobuf.files import ProtoFile
from standalone.converters.simple_header import SimpleHeaderConverter
from standalone.pipeline.chain import Chain
from standalone.pipeline.pipeline import Pipeline
from standalone.schema_registry.client import RegistrySchema
from standalone.schema_registry.framing import head
from standalone.schema_registry.values import Reader
from standalone.wire import Records
from tests.converters.fake_registry import with_registry

ID = "io.confluent.kafka.serializers.schema.id."
WRITES = {"value.schema.id.serializer": f"{ID}HeaderSchemaIdSerializer"}
AS_REGISTERED = {"auto.register.schemas": "false", "use.latest.version": "true", "latest.compatibility.strict": "false"}
NUMBERS = json.dumps({"type": "record", "name": "Number", "fields": [{"name": "number", "type": "int"}, {"name": "text", "type": "string"}]})
PERSON = json.dumps({"type": "object", "title": "Person", "properties": {"name": {"type": "string"}}, "required": ["name"]})
ITEM = ProtoFile('syntax = "proto3";\npackage shop;\nmessage Other { int32 a = 1; }\nmessage Item { string name = 7; }')
Item = ITEM.class_of(ITEM.message([1]))
OF_OLD = {"use.deprecated.format": False}


def avro(url, **more):
    """(Confluent's serialiser, its deserialiser, a value of theirs)"""
    return AvroSerializer(StockClient({"url": url}), NUMBERS, conf=more), AvroDeserializer(StockClient({"url": url})), {"number": 5, "text": "é, and more"}


def json_schema(url, **more):
    stock = StockClient({"url": url})
    return JSONSerializer(PERSON, stock, conf=more), JSONDeserializer(PERSON, schema_registry_client=stock), {"name": "é"}


def protobuf(url, **more):
    writes, reads = StockClient({"url": url}), StockClient({"url": url})  # what one of them has in its cache is text, where a reader wants bytes
    return ProtobufSerializer(Item, writes, conf={**more, **OF_OLD}), ProtobufDeserializer(Item, OF_OLD, reads), Item(name="é")


FORMATS = [param(AvroConverter, avro, id="Avro"), param(ProtobufConverter, protobuf, id="Protobuf"), param(JsonSchemaConverter, json_schema, id="JSON Schema")]


def converter(kind, url, **more):
    return kind.of({"schema.registry.url": url, "retries.wait.ms": "10", **more})


@pytest.mark.parametrize("kind, theirs", FORMATS)
def test_the_header_is_read_and_written_as_confluents_serialisers_do(registry_url, kind, theirs):
    topic = f"guids-{kind.kind}"
    serializer, deserializer, value = theirs(registry_url, **{"schema.id.serializer": header_schema_id_serializer})
    headers = []
    context = SerializationContext(topic, MessageField.VALUE, headers)
    data = serializer(value, context)
    ((name, named),) = headers
    assert name == "__value_schema_id" and named[0] == 1 and data[:1] != b"\0"

    ours = converter(kind, registry_url, **AS_REGISTERED, **WRITES)
    schema, read = ours.to_connect(topic, data, headers)
    written = [("other", b"x"), ("__value_schema_id", b"an older one")]
    again = ours.from_connect(topic, schema, read, written)
    assert (again, written) == (data, [("other", b"x"), *headers])
    assert deserializer(again, SerializationContext(topic, MessageField.VALUE, written)) == deserializer(data, context)
    shown = Reader(ours.client).value(data, None, headers)
    assert shown in ({"number": 5, "text": "é, and more"}, {"name": "é"})

    before = converter(kind, registry_url).to_connect(topic, named + data)  # the same bytes where an id would stand
    assert repr(before) == repr((schema, read))


@pytest.mark.parametrize("kind, theirs", FORMATS)
def test_an_id_before_the_value_is_read_where_no_header_names_the_schema(registry_url, kind, theirs):
    topic = f"ids-{kind.kind}"
    serializer, _, value = theirs(registry_url)
    data = serializer(value, SerializationContext(topic, MessageField.VALUE, []))
    ours = converter(kind, registry_url)
    assert data[0] == 0 and repr(ours.to_connect(topic, data, [("other", b"x")])) == repr(ours.to_connect(topic, data))


def test_a_header_is_left_alone_where_the_configuration_says_so(registry_url):
    data = avro(registry_url)[0]({"number": 5, "text": "a"}, SerializationContext("prefix", MessageField.VALUE, []))
    ours = converter(AvroConverter, registry_url, **{"value.schema.id.deserializer": f"{ID}PrefixSchemaIdDeserializer"})
    assert not ours.reads_headers and ours.to_connect("prefix", data, [("__value_schema_id", b"\1nothing")])[1].to_dict() == {"number": 5, "text": "a"}


@pytest.mark.parametrize(
    "headers, said",
    [([("__value_schema_id", b"\1short")], "Unknown magic byte"), ([("__value_schema_id", b"\1" + bytes(16))], "404|40403")],
)
def test_a_header_that_names_no_schema(client, registry_url, headers, said):
    with pytest.raises(DataError, match=said):
        converter(AvroConverter, registry_url).to_connect("t", b"\2", headers)


def test_a_registry_without_guids_cannot_be_written_by_header():
    ours = with_registry(AvroConverter, **{key.replace(".", "__"): value for key, value in WRITES.items()})
    ours.client.gives_guids = False
    with pytest.raises(DataError, match="The registry returned no GUID for schema id 1.*PrefixSchemaIdSerializer"):
        ours.from_connect("t", Schema.INT32, 7, [])


@pytest.mark.parametrize("header", [False, True], ids=["its id before the value", "its GUID in the header"])
def test_the_schema_of_a_guid_is_written_with(client, registry_url, header):
    subject = f"by-guid-{header}-value"
    given = client.registered(subject, RegistrySchema(NUMBERS))
    client.register(subject, RegistrySchema(NUMBERS.replace("}]", '}, {"name": "more", "type": "int", "default": 1}]')))
    names = {"auto.register.schemas": "false", "use.schema.guid": given["guid"].upper(), **(WRITES if header else {})}
    ours, headers = converter(AvroConverter, registry_url, **names), []
    data = ours.from_connect(f"by-guid-{header}", None, {"number": 5, "text": "a"}, headers)
    named = uuid.UUID(given["guid"]).bytes
    assert (data, headers) == ((b"\x0a\2a", [("__value_schema_id", b"\1" + named)]) if header else (head(given["id"]) + b"\x0a\2a", []))
    schema, value = ours.to_connect(f"by-guid-{header}", data, headers)
    assert ours.from_connect(f"by-guid-{header}", schema, value, []) == data
    with pytest.raises(DataError, match=f"not compatible with the schema of the GUID {given['guid'].upper()}.*id.compatibility.strict=false"):
        ours.from_connect(f"by-guid-{header}", Schema.STRING, "a", [])
    with pytest.raises(DataError, match="The schema with the GUID .* is Avro, but ProtobufConverter takes Protobuf"):
        converter(ProtobufConverter, registry_url, **names).from_connect(f"by-guid-{header}", LINE, lines()[0], [])


def test_a_guid_that_the_registry_does_not_have(registry_url):
    ours = converter(AvroConverter, registry_url, **{"auto.register.schemas": "false", "use.schema.guid": str(uuid.UUID(int=5))})
    with pytest.raises(DataError, match="get the schema of the guid 00000000"):
        ours.from_connect("t", None, 7)


def test_a_guid_whose_schema_has_no_id_in_the_context_of_the_subject(client, registry_url):
    text = NUMBERS.replace("Number", "Elsewhere")
    guid = client.registered(":.elsewhere:there-value", RegistrySchema(text))["guid"]
    assert client.id_of_guid(guid, ":.elsewhere:other") > 0
    ours = converter(AvroConverter, registry_url, **{"auto.register.schemas": "false", "use.schema.guid": guid})
    with pytest.raises(DataError, match="none in the context . of the subject 'here-value'. Contexts that have it: .elsewhere"):
        ours.from_connect("here", None, {"number": 5, "text": "a"})


# --- In a chain: rows and columns alike ------------------------------------------------------------------------------

LINE = SchemaBuilder.struct().name("Line").field("n", Schema.INT32).field("text", Schema.OPTIONAL_STRING).optional().build()
COUNT = 200


def chain(direction, value):
    return Chain(direction, ByteArrayConverter.of(is_key=True), value, SimpleHeaderConverter.of(), [])


def lines():
    return [Struct(LINE, {"n": at, "text": None if at % 3 else f"line {at}"}) for at in range(COUNT)]


@pytest.mark.parametrize("kind", [AvroConverter, ProtobufConverter, JsonSchemaConverter])
@pytest.mark.parametrize("engine", ["auto", "rows"])
def test_records_go_through_a_log_with_their_schemas_in_headers(registry_url, kind, engine):
    value = converter(kind, registry_url, **WRITES)
    values = [None if at == 7 else struct for at, struct in enumerate(lines())]
    polled = SourceBatch(COUNT, f"chain-{kind.kind}", values, LINE)
    worked = Pipeline(chain("source", value), engine, min_rows=10).source(polled)
    assert not worked.failures
    (sent,) = worked.out
    guid = [("__value_schema_id", next(each[0][1] for each in sent.records.headers if each))]
    nothing = guid if kind is JsonSchemaConverter else []  # its null has its own text
    assert [list(each or ()) for each in sent.records.headers] == [nothing if at == 7 else guid for at in range(COUNT)]
    assert all(data is None or data[:1] != b"\0" or kind is not AvroConverter for data in list(sent.records.values)[1:])

    fetched = Records(COUNT, None, sent.records.values, None, sent.records.headers, np.arange(COUNT))
    found = [record for batch in Pipeline(chain("sink", value), engine, min_rows=10).sink(sent.topic, 0, fetched).batches for record in batch.records()]
    shown = [record.value and {**record.value.to_dict(), "text": record.value["text"] or None} for record in found]
    assert shown == [value and value.to_dict() for value in values]
    assert [[header.name for header in record.headers] for record in found][:7] == [["__value_schema_id"]] * 7


def test_messages_of_one_guid_are_read_by_columns_and_of_several_by_rows(registry_url):
    value = converter(AvroConverter, registry_url, **WRITES)
    headers = [[], []]
    data = ByteColumn.of([value.from_connect("mixed", Schema.INT32, 7, headers[0]), value.from_connect("mixed", Schema.INT64, 8, headers[1])])
    schema, column, bad = value.decode("mixed", data.take(np.array([0, 0])), [headers[0], headers[0]])
    assert (schema.type, column.to_pylist(), bad) == ("int32", [7, 7], None)
    assert value.decode("mixed", data, headers) is None
