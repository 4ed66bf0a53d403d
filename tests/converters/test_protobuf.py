"""ProtobufConverter: what is written and read, beside protoc's own classes and Confluent's serialiser."""

from decimal import Decimal

import numpy as np
import pytest
from confluent_kafka.schema_registry._sync.mock_schema_registry_client import MockSchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pytest import param

from standalone import (
    ByteColumn,
    DataError,
    Field,
    Instant,
    Schema,
    SchemaBuilder,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from standalone.converters.protobuf.converter import ProtobufConverter
from standalone.converters.protobuf.files import ProtoFile
from standalone.data.arrow import NotColumns
from standalone.data.column import columnar, take, values_of
from standalone.schema_registry.client import Reference, RegistrySchema
from tests.converters import generated
from tests.converters.fake_registry import FakeRegistry, with_registry
from tests.converters.generated import TEXTS

HEAD = b"\0\0\0\0\x01"
ORDER = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";

message Unused { string a = 1; }

message Order {
  int64 id = 1;
  string name = 2;
  optional string note = 3;
  repeated Line lines = 4;
  map<string, int32> counts = 5;
  Colour colour = 6;
  oneof payment { string card = 7; int32 voucher = 8; }
  uint32 small = 9;
  uint64 large = 10;
  sint32 signed = 11;
  bytes raw = 12;
  double price = 13;
  google.protobuf.Timestamp at = 14;
  float weight = 15;
  bool paid = 16;
  message Line { string sku = 1; fixed64 count = 2; }
}

enum Colour { RED = 0; GREEN = 1; }
"""


def of_schema(text, references=(), registry=None, **config):
    registry = registry or FakeRegistry()
    registry.register("t-value", RegistrySchema(text, "PROTOBUF", tuple(references)))
    return with_registry(ProtobufConverter, registry, **config)


def message_of(text, path, **fields):
    file = ProtoFile(text)
    return file.class_of(file.message(path))(**fields)


def order(**more):
    made = message_of(ORDER, [1], id=-7, name="n", note="", counts={"a": 1}, colour=1, voucher=5, small=4_000_000_000, large=(1 << 64) - 1, **more)
    made.signed, made.raw, made.price, made.weight, made.paid = -3, b"\xff", 1.5, 0.5, True
    made.lines.add(sku="x", count=9)
    made.at.seconds, made.at.nanos = 12, 345_000_000
    return made


def test_a_message_is_read_as_a_struct():
    schema, value = of_schema(ORDER).to_connect("t", HEAD + b"\x02\x02" + order().SerializeToString())
    assert schema.name == "Order" and schema.version == 1
    assert [field.name for field in schema.fields][:5] == ["payment_0", "id", "name", "note", "lines"]
    found = value.to_dict()
    assert found["payment_0"]["voucher"] == 5 and found["payment_0"]["card"] is None
    assert (found["id"], found["name"], found["note"], found["colour"], found["counts"]) == (-7, "n", "", "GREEN", {"a": 1})
    assert (found["small"], found["large"], found["signed"], found["raw"]) == (4_000_000_000, -1, -3, b"\xff")
    assert (found["price"], found["weight"], found["paid"], found["at"]) == (1.5, 0.5, True, Instant(12_345))
    assert found["lines"][0].to_dict() == {"sku": "x", "count": 9}
    assert schema["colour"].parameters == {
        **{"io.confluent.connect.protobuf.Enum": "Colour", "io.confluent.connect.protobuf.Enum.RED": "0"},
        **{"io.confluent.connect.protobuf.Enum.GREEN": "1", "io.confluent.connect.protobuf.Tag": "6"},
    }


def test_what_is_not_set_is_null_where_it_has_presence_and_else_its_zero():
    _, value = of_schema(ORDER).to_connect("t", HEAD + b"\x02\x02")
    found = value.to_dict()
    assert (found["id"], found["name"], found["note"], found["at"], found["payment_0"], found["lines"]) == (0, "", None, None, None, [])
    assert found["colour"] == "RED"


def test_the_bytes_are_those_of_confluents_serialiser():
    made, theirs, context = order(), MockSchemaRegistryClient({"url": "mock://"}), SerializationContext("t", MessageField.VALUE)
    message = ProtobufSerializer(type(made), theirs, {"use.deprecated.format": False, "skip.known.types": True})(made, context)
    converter = of_schema(ORDER, auto__register__schemas="false", use__schema__id="1", id__compatibility__strict="false")
    schema, value = converter.to_connect("t", message)
    again = converter.from_connect("t", schema, value)
    assert again[:7] == message[:7] == HEAD + b"\x02\x02"
    assert type(made).FromString(again[7:]) == made
    assert again == HEAD + b"\x02\x02" + made.SerializeToString(deterministic=True)
    registered = theirs.get_latest_version("t-value").schema.schema_str  # in base64, as Confluent's Python client has it
    assert of_schema(registered).to_connect("t", message)[1].to_dict()["small"] == 4_000_000_000
    assert ProtobufDeserializer(type(made), {"use.deprecated.format": False}, theirs)(again, context) == made


_LONG, _INT = st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 31), (1 << 31) - 1)
SCALARS = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), _INT),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), _LONG),
    **dict.fromkeys(("uint32", "fixed32"), st.integers(0, (1 << 32) - 1)),
    **dict.fromkeys(("uint64", "fixed64"), st.integers(0, (1 << 64) - 1)),
    **{"float": st.floats(width=32), "double": st.floats(), "bool": st.booleans(), "string": TEXTS, "bytes": st.binary(max_size=5)},
    "Colour": st.integers(0, 1),
}


@st.composite
def messages(draw, name="Top", depth=2):
    """(the text of a message, a function that fills one)."""
    lines, fills = [], []
    for at in range(1, draw(st.integers(1, 5)) + 1):
        kind = draw(st.sampled_from(["", "", "optional ", "repeated ", "map", "oneof", *(["message", "messages"] if depth else [])]))
        field = f"f{at}"
        if kind.startswith("message"):
            inner, fill = draw(messages(f"M{at}", depth - 1))
            lines += [inner, f"{'repeated ' if kind == 'messages' else ''}M{at} {field} = {at};"]
            fills.append((kind, field, [fill] * draw(st.integers(0, 2))))
            continue
        scalar = draw(st.sampled_from(sorted(SCALARS)))
        if kind == "map":
            lines.append(f"map<string, {scalar}> {field} = {at};")
            fills.append((kind, field, draw(st.dictionaries(TEXTS, SCALARS[scalar], max_size=2))))
        elif kind == "oneof":
            lines.append(f"oneof u{at} {{ {scalar} {field} = {at}; int32 other{at} = {at + 100}; }}")
            fills.append(("", draw(st.sampled_from([field])), draw(SCALARS[scalar])))
        else:
            lines.append(f"{kind}{scalar} {field} = {at};")
            fills.append((kind, field, draw(st.lists(SCALARS[scalar], max_size=3) if kind == "repeated " else SCALARS[scalar])))

    def fill(message):
        for kind, field, value in fills:
            if kind == "messages":
                for each in value:
                    each(getattr(message, field).add())
            elif kind == "message":
                for each in value[:1]:
                    getattr(message, field).SetInParent()
                    each(getattr(message, field))
            elif kind == "repeated ":
                getattr(message, field).extend(value)
            elif kind == "map":
                getattr(message, field).update(value)
            else:
                setattr(message, field, value)

    return f"message {name} {{ {' '.join(lines)} }}", fill


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))  # protoc takes its time; 200 by night
@given(messages(), st.binary(max_size=6))
def test_any_message_comes_back_to_the_byte(drawn, junk):
    body, fill = drawn
    text = f'syntax = "proto3"; package p; enum Colour {{ RED = 0; GREEN = 1; }} {body}'
    made = message_of(text, [0])
    fill(made)
    theirs = MockSchemaRegistryClient({"url": "mock://"})
    message = ProtobufSerializer(type(made), theirs, {"use.deprecated.format": False})(made, SerializationContext("t", MessageField.VALUE))
    converter = of_schema(text, auto__register__schemas="false", use__schema__id="1", id__compatibility__strict="false")
    schema, value = converter.to_connect("t", message)
    assert converter.from_connect("t", schema, value) == message[:6] + made.SerializeToString(deterministic=True)
    twice, half, strange = message + message[6:], message[: len(message) * 2 // 3], message + b"\xf8\x7f\x05"
    columns_are_rows(converter, [message, message[:6], twice, half, strange, message + junk, message], sure=[0, 1, 4, 6])


def plain(value):
    """What can be compared: the order of a map is not said, and a NaN is itself."""
    if isinstance(value, Struct):
        return [plain(each) for each in value.values]
    if isinstance(value, dict):
        return sorted((repr(key), plain(each)) for key, each in value.items())
    return [plain(each) for each in value] if isinstance(value, list) else repr(value)


def columns_are_rows(made, messages, sure=()):
    """Hold the columns of messages to the rows, there and back; those of the places in `sure` must be done by columns."""
    data, count = ByteColumn.of(messages), len(messages)
    decoded = made.decode("t", data)
    assert decoded is not None
    schema, column, bad = decoded
    bad = set() if bad is None else set(bad.tolist())
    assert not bad & set(sure)
    found = values_of(column, schema, count)
    done = [at for at in range(count) if at not in bad]
    for at in done:
        read = made.to_connect("t", messages[at])
        assert (read[0], plain(found[at])) == (schema, plain(read[1]))
    written = made.encode("t", schema, take(column, np.array(done)), len(done))
    if written is not None:
        texts, refused = list(written[0]), [] if written[1] is None else written[1].tolist()
        for at, row in enumerate(done):
            assert at in refused or texts[at] == made.from_connect("t", schema, found[row])
    return schema, found, sorted(bad), written


POINT = SchemaBuilder.struct().name("g.Point").field("x", Schema.OPTIONAL_INT32).build()
ALL = (
    SchemaBuilder.struct()
    .name("g.All")
    .field("tiny", Schema.INT8)
    .field("number", Schema.OPTIONAL_INT64)
    .field("text", Schema.STRING)
    .field("point", POINT)
    .field("points", SchemaBuilder.array(POINT).build())
    .field("by_name", SchemaBuilder.map(Schema.STRING, POINT).name("by_name").build())
    .field("price", decimal_schema(2, optional=True))
    .field("day", date_schema(optional=True))
    .field("time", time_schema(optional=True))
    .field("moment", timestamp_schema(optional=True))
    .build()
)


def test_a_struct_is_registered_and_comes_back():
    point = Struct(POINT, {"x": -1})
    value = Struct(ALL, {"tiny": -3, "number": 7, "text": "é", "point": point, "points": [point], "by_name": {"a": point}, "price": Decimal("-1.25")})
    value.put("day", Instant(86_400_000)).put("time", Instant(3_723_004)).put("moment", Instant(-1))
    converter = with_registry(ProtobufConverter)
    data = converter.from_connect("t", ALL, value)
    assert data.startswith(HEAD + b"\0")
    text = converter.client.schemas[1].text
    assert 'syntax = "proto3";\npackage g;\n' in text and "confluent.type.Decimal price = 7" in text and "repeated Point points = 5;" in text
    schema, found = converter.to_connect("t", data)
    assert schema["tiny"].type == "int8" and schema["price"].parameters["scale"] == "2"
    for name in ("tiny", "number", "text", "price", "day", "time", "moment"):
        assert found[name] == value[name], name
    assert found["points"][0]["x"] == found["by_name"]["a"]["x"] == found["point"]["x"] == -1
    assert converter.from_connect("t2", schema, found) is not None


@pytest.mark.parametrize(
    "schema, value, place", [(Schema.STRING, "foo", 7), (Schema.INT32, -5, 4), (Schema.FLOAT64, 1.5, 0), (Schema.BYTES, b"\xff", 8)]
)
def test_a_plain_value_is_wrapped(schema, value, place):
    converter = with_registry(ProtobufConverter)
    data = converter.from_connect("t", schema, value)
    assert data[5:7] == bytes((2, 2 * place)) if place else data[5] == 0
    assert converter.to_connect("t", data) == (schema.with_(version=1), value)


def test_an_optional_of_proto3_and_a_wrapper_tell_null_from_zero():
    schema = SchemaBuilder.struct().name("R").field("a", Schema.OPTIONAL_INT32).build()
    for key in ("optional__for__nullables", "wrapper__for__nullables"):
        converter = with_registry(ProtobufConverter, **{key: "true"})
        for value in (None, 0, 5):
            _, found = converter.to_connect("t", converter.from_connect("t", schema, Struct(schema, {"a": value})))
            assert found["a"] == value, key


def test_a_message_of_another_file_is_found_by_reference():
    registry = FakeRegistry()
    registry.register("other", RegistrySchema('syntax = "proto3"; package o; message P { int32 x = 1; }', "PROTOBUF"))
    text = 'syntax = "proto3"; import "other.proto"; message R { o.P p = 1; }'
    converter = of_schema(text, [Reference("other.proto", "other", 1)], registry)
    assert converter.to_connect("t", b"\0\0\0\0\x02\0\x0a\x02\x08\x07")[1]["p"]["x"] == 7


@pytest.mark.parametrize(
    "text, data, said",
    [
        ('syntax = "proto3"; message R { R r = 1; }', HEAD + b"\0", "'R' contains itself"),
        ('syntax = "proto3"; message R { int32 = 1; }', HEAD + b"\0", "The Protobuf schema is not valid"),
        (ORDER, HEAD + b"\x02\x08", r"message indexes \[4\] do not exist"),
        (ORDER, HEAD + b"\x02", "amid the message indexes"),
        (ORDER, HEAD + b"\x02\x02\x0a", "Failed to deserialize data for topic t to Protobuf"),
        (ORDER, b"{}", "Unknown magic byte"),
    ],
)
def test_what_cannot_be_read(text, data, said):
    with pytest.raises(DataError, match=said):
        of_schema(text).to_connect("t", data)


@pytest.mark.parametrize(
    "schema, value, said",
    [
        (SchemaBuilder.array(Schema.STRING).build(), ["a"], "a struct or a primitive"),
        (
            SchemaBuilder.struct().field("a", SchemaBuilder.array(SchemaBuilder.array(Schema.STRING).build()).build()).build(),
            {"a": []},
            "a list of lists",
        ),
        (SchemaBuilder.struct().field("a", SchemaBuilder.array(Schema.OPTIONAL_STRING).build()).build(), {"a": [None]}, "contains a null"),
        (SchemaBuilder.struct().field("a-b", Schema.STRING).build(), {"a-b": "x"}, "The Protobuf schema is not valid"),
    ],
)
def test_what_cannot_be_written(schema, value, said):
    with pytest.raises(DataError, match=said):
        with_registry(ProtobufConverter).from_connect("t", schema, Struct(schema, value) if schema.type == "struct" else value)


def test_a_null_is_no_bytes():
    converter = with_registry(ProtobufConverter)
    assert converter.from_connect("t", None, None) is None and converter.from_connect("t", Schema.OPTIONAL_STRING, None) is None
    assert converter.to_connect("t", None) == (None, None)


def point(name, *fields):
    found = SchemaBuilder.struct().name(name)
    for field in fields:
        found.field(field, Schema.INT32)
    return found.optional().build()


def colours(*names):
    return Schema("string", True, parameters={ENUM: "Colour", **{f"{ENUM}.{name}": str(at) for at, name in enumerate(names)}})


INNERMOST = SchemaBuilder.struct().name("z.Point").field("deep", point("y.Point", "u")).optional().build()
ENUM = "io.confluent.connect.protobuf.Enum"


@pytest.mark.parametrize(
    "fields, value, said",
    [
        param({"one": point("a.Point", "x"), "other": point("b.Point", "y")}, [[1], [2]], ["Point one", "Point2 other"], id="two messages"),
        param({"one": point("a.Point", "x"), "other": point("a.Point", "x")}, [[1], [2]], ["Point one", "Point other"], id="one message twice"),
        param({"one": point("Top", "x")}, [[1]], ["Top2 one"], id="as the message that it is in"),
        param({"one": INNERMOST, "other": point("Point", "x")}, [[[1]], [2]], ["Point one", "Point2 deep", "Point2 other"], id="within each other"),
        param({"one": colours("A", "B"), "other": colours("C", "D")}, ["B", "C"], ["Colour one", "Colour2 other"], id="two enums"),
        param(
            {
                "one": SchemaBuilder.map(Schema.STRING, Schema.INT32).name("m").optional().build(),
                "other": SchemaBuilder.map(Schema.STRING, Schema.STRING).name("m").optional().build(),
            },
            [{"a": 1}, {"a": "b"}],
            ["mEntry one", "m2Entry other"],
            id="two maps",
        ),
    ],
)
def test_types_of_the_same_name_are_told_apart(fields, value, said):
    schema = Schema("struct", name="Top", fields=[Field(name, at, each) for at, (name, each) in enumerate(fields.items())])
    made, struct = with_registry(ProtobufConverter), of_lists(schema, value)
    data = made.from_connect("t", schema, struct)
    assert all(f"{each} = " in made.client.schemas[1].text for each in said)
    assert plain(made.to_connect("t", data)[1]) == plain(struct)
    assert made.encode("t", schema, columnar([struct], schema, 1), 1)[0][0] == data


def of_lists(schema, value):
    if schema.type != "struct" or value is None:
        return value
    return Struct.trusted(schema, [of_lists(field.schema, each) for field, each in zip(schema.fields, value)])


# --- Columns are rows -----------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))  # 600 by night
@given(st.data())
def test_columns_write_and_read_what_rows_do(data):
    schema = data.draw(generated.schemas(3).filter(lambda each: each.type == "struct")).with_(optional=False)
    values = data.draw(st.lists(generated.values(schema), min_size=1, max_size=4))
    made = with_registry(ProtobufConverter, scrub__invalid__names="true", wrapper__for__nullables=data.draw(st.sampled_from(["true", "false"])))
    rows = []
    for value in values:
        try:
            rows.append(made.from_connect("t", schema, value))
        except DataError:
            rows.append(None)
    assume(any(rows))  # a list of lists has no message
    try:
        column = columnar(values, schema, len(values))
    except NotColumns:
        column = None
    written = None if column is None else made.encode("t", schema, column, len(values))
    if written is not None:
        texts, refused = list(written[0]), [] if written[1] is None else written[1].tolist()
        for at, row in enumerate(rows):
            assert at in refused or texts[at] == row
    messages = [row for row in rows if row is not None]
    if made.decode("t", ByteColumn.of(messages)) is not None:  # keys of maps may be wrapped
        columns_are_rows(made, messages)


OTHERS = """syntax = "proto2";
message Old {
  required int32 id = 1;
  optional int64 count = 2 [default = 7];
  repeated sint32 steps = 3 [packed = true];
  repeated sint32 loose = 4;
  optional Kind kind = 5 [default = B];
  optional Old.Inner inner = 6;
  oneof way { string road = 7; Inner ship = 8; }
  message Inner { optional string name = 1; map<int32, string> more = 2; }
  enum Kind { A = 0; B = 1; }
}
"""


@pytest.mark.parametrize(
    "said, is_bad",
    [
        param("08 01", False, id="the required field alone"),
        param("", True, id="without it"),
        param("08 01 1a 03 01 02 03 18 05", False, id="items in a run and alone"),
        param("08 01 20 01 22 02 03 05", False, id="the same of a field that is not packed"),
        param("10 05 08 01", False, id="out of order"),
        param("08 01 08 02 10 01 10 02", False, id="a number twice: the last one holds"),
        param("08 01 32 03 0a 01 61 32 03 0a 01 62", True, id="a message in two pieces"),
        param("08 01 3a 01 61 42 00", True, id="two members of a oneof"),
        param("08 01 42 00 42 00", True, id="one of them in two pieces"),
        param("08 01 42 06 12 04 08 05 12 00", False, id="a map within"),
        param("08 01 42 0a 12 03 08 05 12 12 03 08 05 12", True, id="a map that is none"),
        param("08 01 42 08 12 02 08 05 12 02 08 05", True, id="a key twice"),
        param("08 01 42 02 12 00", False, id="an entry of nothing"),
        param("08 01 28 05", True, id="no symbol of its enum"),
        param("08 01 3a 01 ff", False, id="a text that is not UTF-8, in proto2"),
        param("08 81 80 80 80 10", True, id="a number that the field cuts"),
        param("08 01 53 54", True, id="a group"),
        param("08 01 79 01 02 03 04 05 06 07 08 7d 01 02 03 04 f8 07 05", False, id="fields that nobody knows"),
        param("0a 01 61 08 01", False, id="another wire type, which is a field that nobody knows"),
        param("08 01 00", True, id="a field of number 0"),
        param("08", True, id="the end, too early"),
        param("08 ff ff ff ff ff ff ff ff ff 01", False, id="a number of ten bytes"),
        param("08 ff ff ff ff ff ff ff ff ff 02", True, id="one of more than 64 bits"),
    ],
)
def test_messages_of_other_forms_are_read_as_rows_do_or_left_to_them(said, is_bad):
    made = of_schema(OTHERS)
    good = bytes.fromhex("08 01 3a 01 61 28 01")
    _, _, bad, _ = columns_are_rows(made, [HEAD + b"\0" + each for each in (good, bytes.fromhex(said), good)])
    assert bad == ([1] if is_bad or "3a 01 ff" in said else [])


@pytest.mark.parametrize("path, count", [(b"\0", 300), (b"\2\0", 0)])
def test_the_way_to_the_message_stands_before_each(path, count):
    """The same way may be said at length, which few do: a batch of both is left to rows."""
    made = of_schema('syntax = "proto3"; message A { int32 a = 1; }')
    messages = [HEAD + path + b"\x08\x05"] * 300 + [HEAD + b"\0\x08\x05"] * 300
    found = made.decode("t", ByteColumn.of(messages))
    assert (found is None) == (not count)
    if count:
        assert [each["a"] for each in values_of(found[1], found[0], 600)] == [5] * 600


def test_nothing_is_written_by_columns_that_protobuf_has_no_words_for():
    schema = SchemaBuilder.struct().name("T").field("day", date_schema(optional=True)).field("time", time_schema(optional=True)).build()
    days = [Instant(0), Instant(5), None, Instant(-719163 * 86_400_000), Instant(-719162 * 86_400_000), Instant(2932896 * 86_400_000)]
    times = [Instant(0), None, Instant(86_400_000), Instant(-1), Instant(86_399_999), None]
    values = [Struct(schema, {"day": day, "time": time}) for day, time in zip(days, times)]
    made = with_registry(ProtobufConverter)
    written, refused = made.encode("t", schema, columnar(values, schema, 6), 6)
    assert refused.tolist() == [1, 2, 3]
    for at in (0, 4, 5):
        assert written[at] == made.from_connect("t", schema, values[at])
    for at in refused.tolist():
        with pytest.raises(DataError):
            made.from_connect("t", schema, values[at])


def test_enums_oneofs_and_lists_are_written_by_columns():
    made = of_schema(ORDER.replace("  map<string, int32> counts = 5;\n", ""), auto__register__schemas="false", use__schema__id="1", id__compatibility__strict="false")
    message = order().SerializeToString()
    messages = [HEAD + b"\2\2" + each for each in (message, b"", message[: -(len(b"at") + 1)], b"\x08\x05\x3a\0")]
    schema, found, bad, written = columns_are_rows(made, messages, sure=[0, 1, 3])
    assert written is not None and written[1] is None and found[3]["payment_0"]["card"] == ""
