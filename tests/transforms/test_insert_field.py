"""InsertField: what is known about a record as fields of it, by rows and by columns."""

import pytest
from pytest import param

from standalone import ConfigError, DataError, Instant, Schema, SchemaBuilder, SinkRecord, SourceRecord, Struct, timestamp_schema
from standalone.testing import check_transform
from standalone.transforms.insert_field import InsertField

LINE = SchemaBuilder.struct().name("Line").version(2).doc("a line").parameter("p", "q").field("line", Schema.STRING).build()
ANON = SchemaBuilder.struct().field("name", Schema.OPTIONAL_STRING.with_(default="anon")).field("n", Schema.INT32.with_(default=7)).build()
ALL = {
    "topic.field": "t",
    "partition.field": "p?",
    "offset.field": "o",
    "timestamp.field": "ts!",
    "static.field": "s",
    "static.value": "x",
}


def extended(schema, **fields):
    builder = SchemaBuilder.struct()
    for field in schema.fields:
        builder.field(field.name, field.schema)
    for name, each in fields.items():
        builder.field(name, each)
    return builder.build().with_(name=schema.name, version=schema.version, doc=schema.doc, parameters=schema.parameters)


def source(value, schema=None, **more):
    return SourceRecord("orders", value, value_schema=schema, timestamp=1_700_000_000_000, **more)


def sink(value, schema):
    return SinkRecord("orders", 3, 42, 0, value_schema=schema, value=value, timestamp=1_700_000_000_000)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, fields, values",
    [
        param(
            ALL,
            sink(Struct(LINE, {"line": "foo"}), LINE),
            {
                "t": Schema.OPTIONAL_STRING,
                "p": Schema.OPTIONAL_INT32,
                "o": Schema.OPTIONAL_INT64,
                "ts": timestamp_schema(),
                "s": Schema.OPTIONAL_STRING,
            },
            {"line": "foo", "t": "orders", "p": 3, "o": 42, "ts": Instant(1_700_000_000_000), "s": "x"},
            id="everything, of a sink's record",
        ),
        param(
            {"topic.field": "t!", "static.field": "a.b", "static.value": ""},
            source(Struct(LINE, {"line": "foo"}), LINE),
            {"t": Schema.STRING, "a.b": Schema.OPTIONAL_STRING},
            {"line": "foo", "t": "orders", "a.b": ""},
            id="names with dots, an empty text",
        ),
        param(
            {"partition.field": "p"},
            source(Struct(LINE, {"line": "foo"}), LINE),
            {"p": Schema.OPTIONAL_INT32},
            {"line": "foo"},
            id="no partition yet",
        ),
        param(
            {"static.field": "s", "static.value": "x"},
            source(Struct(ANON, {"n": 1}), ANON),
            {"s": Schema.OPTIONAL_STRING},
            {"name": "anon", "n": 1, "s": "x"},
            id="a null takes its default",
        ),
        param(
            {"static.field": "s", "static.value": "x", "replace.null.with.default": "false"},
            source(Struct(ANON, {"n": 1}), ANON),
            {"s": Schema.OPTIONAL_STRING},
            {"n": 1, "s": "x"},
            id="a null stays where defaults are not wanted",
        ),
    ],
)
def test_fields_are_inserted(props, before, fields, values, spark_holder):
    made = extended(before.value_schema, **fields)
    after = before.with_(value_schema=made, value=Struct(made, values))
    check_transform(InsertField.Value.of(props), before, after, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, record",
    [
        param({"offset.field": "o"}, source(Struct(LINE, {"line": "a"}), LINE), id="a source's record has no offset"),
        param({"topic.field": "line"}, source(Struct(LINE, {"line": "a"}), LINE), id="the field already exists"),
        param({"topic.field": "a", "static.field": "a", "static.value": "x"}, source(Struct(LINE, {"line": "a"}), LINE), id="one name twice"),
        param({"topic.field": "!"}, source(Struct(LINE, {"line": "a"}), LINE), id="a mark without a name"),
        param({"topic.field": "t"}, source("text", Schema.STRING), id="a string has no fields"),
        param({"topic.field": "t"}, source("text"), id="nor has one without a schema"),
        param({"topic.field": "t"}, source(Struct.trusted(LINE, [None]), LINE), id="a struct that breaks its schema"),
        param(
            {"topic.field": "t", "replace.null.with.default": "false"},
            source(Struct.trusted(ANON, [None, None]), ANON),
            id="a required field is null and its default is not wanted",
        ),
    ],
)
def test_what_cannot_be_done_is_an_error_in_both(props, record, spark_holder):
    check_transform(InsertField.Value.of(props), record, DataError, spark_holder)


@pytest.mark.parametrize(
    "before, props, after",
    [
        ({"a": 1}, {"topic.field": "a"}, {"a": "orders"}),
        ({}, {"timestamp.field": "ts", "partition.field": "p"}, {"ts": 1_700_000_000_000}),
        ({"a": None}, {"static.field": "s!", "static.value": "x"}, {"a": None, "s": "x"}),
    ],
)
def test_a_map_takes_what_is_known(before, props, after):
    record = source(before)
    check_transform(InsertField.Value.of(props), record, record.with_(value=after))


@pytest.mark.parametrize("schema", [None, LINE, LINE.with_(optional=True)])
def test_a_null_stays_as_it_is_with_its_schema(schema):
    record = source(None, schema)
    check_transform(InsertField.Value.of({"topic.field": "t"}), record, record)


@pytest.mark.spark
def test_a_null_beside_structs_is_left_to_the_rows_engine(spark_holder):
    from standalone.pipeline.chain import Link
    from standalone.testing import LeftToRows, transform_columns

    schema = LINE.with_(optional=True)
    records = [source(Struct(schema, {"line": "a"}), schema), source(None, schema)]
    with pytest.raises(LeftToRows, match="marked"):
        transform_columns([Link("x", InsertField.Value.of({"topic.field": "t"}))], records, spark_holder)


@pytest.mark.parametrize("props", [{}, {"static.field": "s"}, {"static.value": "s"}, {"topic.field": "t", "static.field": "s"}])
def test_options_that_say_too_little_are_refused(props):
    with pytest.raises(ConfigError):
        InsertField.Value.of(props)


# --- Nested paths --------------------------------------------------------------------------------------------------

V2 = {"field.syntax.version": "V2"}
META = SchemaBuilder.struct().optional().field("a", Schema.INT32).build()
NEST = SchemaBuilder.struct().field("meta", META).field("line", Schema.STRING).build()


def nested(meta, **more):
    """(before, after) with a string and the topic put into `meta`."""
    grown = SchemaBuilder.struct().field("a", Schema.INT32).field("t", Schema.OPTIONAL_STRING).field("x.y", Schema.STRING).build().with_(optional=True)
    after = SchemaBuilder.struct().field("meta", grown).field("line", Schema.STRING).build()
    before = Struct(NEST, {"meta": None if meta is None else Struct(META, {"a": meta}), "line": "l"})
    made = None if meta is None else Struct(grown, {"a": meta, "t": "orders", "x.y": "s"})
    return source(before, NEST), source(Struct(after, {"meta": made, "line": "l"}), after)


@pytest.mark.spark
@pytest.mark.parametrize("meta", [7, None], ids=["into a struct", "not into a null"])
def test_nested_paths_lead_into_structs(meta, spark_holder):
    before, after = nested(meta)
    props = {"topic.field": "meta.t", "static.field": "meta.`x.y`!", "static.value": "s", **V2}
    check_transform(InsertField.Value.of(props), before, after, spark_holder)


@pytest.mark.parametrize(
    "before, after",
    [
        ({"m": {"a": 1}}, {"m": {"a": 1, "x": "s"}}),
        ({"m": {"x": 1}}, {"m": {"x": "s"}}),
        ({"m": None}, {"m": None}),
        ({"b": 1}, {"b": 1}),
    ],
)
def test_nested_paths_lead_into_maps(before, after):
    props = {"static.field": "m.x", "static.value": "s", **V2}
    check_transform(InsertField.Value.of(props), source(before), source(after))


def test_a_path_that_leads_through_something_else_is_an_error():
    props = {"static.field": "line.x", "static.value": "s", **V2}
    check_transform(InsertField.Value.of(props), nested(7)[0], DataError)
    check_transform(InsertField.Value.of(props), source({"line": "x"}), DataError)


@pytest.mark.spark
def test_nested_paths_of_maps_of_one_shape(check_shape):
    inner = SchemaBuilder.struct().field("a", Schema.INT64).build()
    shape = SchemaBuilder.struct().field("m", inner).field("b", Schema.STRING).build()
    props = {"static.field": "m.x", "static.value": "s", **V2}
    check_shape(InsertField.Value.of(props), [{"m": {"a": 1}, "b": "x"}, {"m": {"a": 2}, "b": "y"}], shape)
