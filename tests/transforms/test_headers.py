"""DropHeaders, InsertHeader, HeaderFrom: what they make of headers, and of the fields that headers are made of."""

import pytest
from pytest import param

from standalone import ConfigError, DataError, Float32, Header, Int8, Schema, SchemaBuilder, SourceRecord, Struct
from standalone.pipeline.chain import Link
from standalone.predicates.has_header_key import HasHeaderKey
from standalone.testing import check_transform, transform_columns
from standalone.transforms.drop_headers import DropHeaders
from standalone.transforms.header_from import HeaderFrom
from standalone.transforms.insert_header import InsertHeader

TRACE, HOST = Header("trace", "1", Schema.STRING), Header("host", "web1", Schema.STRING)
V2 = {"field.syntax.version": "V2"}
GEO = SchemaBuilder.struct().optional().field("lat", Schema.FLOAT64).field("lon", Schema.OPTIONAL_FLOAT64).build()
LON = SchemaBuilder.struct().optional().field("lon", Schema.OPTIONAL_FLOAT64).build()
ANON = Schema.OPTIONAL_STRING.with_(default="anon")
PLACE = SchemaBuilder.struct().optional().name("Place").field("id", Schema.INT64).field("a.b", ANON).build()
DEEP = SchemaBuilder.struct().field("id", Schema.INT64).field("geo", GEO).build()
HERE = Struct(PLACE, {"id": 7})


def record(value, schema=None, headers=()):
    return SourceRecord("t", value, value_schema=schema, headers=headers)


# --- DropHeaders ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names, before, after",
    [
        param("trace", [TRACE, HOST, TRACE], [HOST], id="all of a name"),
        param("trace, host", [TRACE, HOST], [], id="two names"),
        param("Trace,nope", [TRACE], [TRACE], id="names that are not there"),
    ],
)
def test_headers_are_dropped(names, before, after):
    check_transform(DropHeaders.of(headers=names), record("v", headers=before), record("v", headers=after))


@pytest.mark.parametrize("props", [{}, {"headers": ""}, {"headers": "a,,b"}])
def test_headers_to_drop_must_be_named(props):
    with pytest.raises(ConfigError, match="headers"):
        DropHeaders.of(props)


# --- InsertHeader --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, schema, value",
    [
        param("text", Schema.STRING, "text", id="a string"),
        param("12", Schema.INT8, Int8(12), id="a number"),
        param("true", Schema.BOOLEAN, True, id="a boolean"),
        param("null", None, None, id="null"),
        param("", Schema.STRING, "", id="an empty string"),
    ],
)
def test_a_header_says_what_its_text_says(text, schema, value):
    transform = InsertHeader.of({"header": "trace", "value.literal": text})
    check_transform(transform, record("v", headers=[TRACE]), record("v", headers=[TRACE, Header("trace", value, schema)]))


@pytest.mark.parametrize("props", [{"header": "h"}, {"value.literal": "v"}, {"header": None, "value.literal": "v"}])
def test_a_header_needs_name_and_value(props):
    with pytest.raises(ConfigError):
        InsertHeader.of(props)


# --- HeaderFrom ----------------------------------------------------------------------------------------------------


def header_from(fields, headers, operation="copy", **more):
    return HeaderFrom.Value.of({"fields": fields, "headers": headers, "operation": operation, **more})


ID, NAME = Header("h", 7, Schema.INT64), Header("n", "anon", PLACE["a.b"])


@pytest.mark.parametrize(
    "transform, headers",
    [
        param(header_from("id", "h"), [ID], id="a field"),
        param(header_from("a.b,id", "n,h"), [NAME, ID], id="two, one of them null with a default"),
        param(header_from("a.b", "n", **{"replace.null.with.default": "false"}), [Header("n", None, ANON)], id="a null that stays one"),
        param(header_from("id,id", "h,h"), [ID, ID], id="a field twice, and a name"),
    ],
)
def test_fields_are_copied_into_headers(transform, headers):
    check_transform(transform, record(HERE, PLACE, [TRACE]), record(HERE, PLACE, [TRACE, *headers]))


def test_a_field_that_moves_leaves_the_struct_and_the_whole_becomes_required():
    rest = SchemaBuilder.struct().name("Place").field("a.b", PLACE["a.b"]).build()
    after = record(Struct(rest, {"a.b": "anon"}), rest, [TRACE, ID])
    check_transform(header_from("id", "h", "move"), record(HERE, PLACE, [TRACE]), after)


def test_a_nested_field_moves():
    rest = SchemaBuilder.struct().field("id", Schema.INT64).field("geo", LON).build()
    before = record(Struct(DEEP, {"id": 7, "geo": Struct(GEO, {"lat": 1.5, "lon": 2.5})}), DEEP)
    after = record(Struct(rest, {"id": 7, "geo": Struct(LON, {"lon": 2.5})}), rest, [Header("h", 1.5, Schema.FLOAT64)])
    check_transform(header_from("geo.lat", "h", "move", **V2), before, after)


@pytest.mark.parametrize(
    "transform, before, after, headers",
    [
        param(header_from("id,nope", "h,n"), {"id": 7}, {"id": 7}, [("h", 7), ("n", None)], id="copied"),
        param(header_from("id,nope", "h,n", "move"), {"id": 7, "x": 1}, {"x": 1}, [("h", 7), ("n", None)], id="moved"),
        param(header_from("m.a", "h", "move", **V2), {"m": {"a": 1, "b": 2}}, {"m": {"b": 2}}, [("h", 1)], id="a nested one moved"),
        param(header_from("m.a", "h", "move", **V2), {"m": None, "x": 1}, {"m": None, "x": 1}, [("h", None)], id="a nested one of a null"),
    ],
)
def test_headers_of_a_maps_fields(transform, before, after, headers):
    check_transform(transform, record(before), record(after, headers=[Header(*each) for each in headers]))


@pytest.mark.parametrize(
    "transform, value, schema",
    [
        param(header_from("nope", "h"), HERE, PLACE, id="a field that is missing"),
        param(header_from("id", "h"), None, PLACE, id="a null"),
        param(header_from("id", "h"), None, None, id="a null without a schema"),
        param(header_from("id", "h"), "text", Schema.STRING, id="a string"),
        param(header_from("id", "h"), [1], None, id="a list"),
        param(header_from("a.b", "h", "move"), Struct.trusted(PLACE, [None, "x"]), PLACE, id="a null that is required"),
    ],
)
def test_what_has_no_such_fields_is_an_error(transform, value, schema):
    check_transform(transform, record(value, schema), DataError)


@pytest.mark.parametrize(
    "fields, headers, operation",
    [("id", "a,b", "copy"), ("", "", "copy"), ("id", "h", "COPY"), ("id", "h", "drop"), ("`id", "h", "copy")],
)
def test_what_is_refused_at_configure(fields, headers, operation):
    with pytest.raises(ConfigError):
        header_from(fields, headers, operation, **V2)


# --- By columns ----------------------------------------------------------------------------------------------------

PIT = SchemaBuilder.struct().field("pit", Schema.FLOAT32).field("list", SchemaBuilder.array(Schema.INT8).optional().build()).build()


@pytest.mark.spark
@pytest.mark.parametrize(
    "transform, before, after",
    [
        param(header_from("id", "h"), record(HERE, PLACE), record(HERE, PLACE, [ID]), id="a field becomes the first header"),
        param(header_from("a.b,id", "n,h"), record(HERE, PLACE, [TRACE]), record(HERE, PLACE, [TRACE, NAME, ID]), id="two more"),
        param(
            header_from("pit,list", "p,l"),
            record(Struct(PIT, {"pit": Float32(0.5), "list": [1, 3]}), PIT),
            record(Struct(PIT, {"pit": Float32(0.5), "list": [1, 3]}), PIT, [Header("p", Float32(0.5), Schema.FLOAT32), Header("l", [1, 3], PIT["list"])]),
            id="of other types",
        ),
        param(
            header_from("geo.lat", "h", "move", **V2),
            record(Struct(DEEP, {"id": 7, "geo": Struct(GEO, {"lat": 1.5})}), DEEP),
            None,
            id="a nested one that moves",
        ),
        param(InsertHeader.of({"header": "n", "value.literal": "12"}), record("v"), record("v", headers=[Header("n", Int8(12), Schema.INT8)]), id="a text"),
        param(DropHeaders.of(headers="trace"), record("v", headers=[TRACE, HOST, TRACE]), record("v", headers=[HOST]), id="two dropped"),
        param(DropHeaders.of(headers="trace"), record("v"), record("v"), id="none to drop"),
    ],
)
def test_headers_by_columns(transform, before, after, spark_holder):
    check_transform(transform, before, transform.apply(before) if after is None else after, spark_holder)


@pytest.mark.spark
def test_each_row_has_headers_of_its_own(spark_holder):
    values = [Struct(PLACE, {"id": number}) for number in range(5)]
    records = [record(value, PLACE, [TRACE] * (number % 3)) for number, value in enumerate(values)]
    links = [
        Link("move", header_from("id", "id", "move")),
        Link("drop", DropHeaders.of(headers="trace"), HasHeaderKey.of(name="trace")),
        Link("mark", InsertHeader.of({"header": "trace", "value.literal": "new"}), HasHeaderKey.of(name="trace"), negate=True),
        Link("more", InsertHeader.of({"header": "end", "value.literal": "x"}), HasHeaderKey.of(name="trace")),
    ]
    expected = []
    for each in records:
        for link in links:
            if link.predicate is None or link.predicate.test(each) is not link.negate:
                each = link.transform.apply(each)
        expected.append(each)
    assert transform_columns(links, records, spark_holder) == expected


@pytest.mark.spark
def test_a_predicate_picks_the_rows_whose_headers_change(spark_holder):
    records = [record(f"v{number}", headers=[TRACE] if number % 2 else []) for number in range(4)]
    links = [Link("mark", InsertHeader.of({"header": "end", "value.literal": "x"}), HasHeaderKey.of(name="trace"))]
    found = transform_columns(links, records, spark_holder)
    assert [[header.name for header in each.headers] for each in found] == [[], ["trace", "end"]] * 2
