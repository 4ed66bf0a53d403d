"""HoistField: the whole key or value in one field, by rows and by columns."""

import decimal

import pytest
from pytest import param

from standalone import ConfigError, DataError, Schema, SchemaBuilder, SinkRecord, SourceRecord, Struct, decimal_schema
from standalone.testing import check_transform
from standalone.transforms.hoist_field import HoistField

POINT = SchemaBuilder.struct().field("x", Schema.INT32).field("y", Schema.OPTIONAL_INT32).build()
BROKEN = Struct.trusted(POINT, [None, 1])


def hoisted(schema, name="line"):
    return SchemaBuilder.struct().field(name, schema).build()


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema, value",
    [
        param(Schema.STRING, "foo", id="a string"),
        param(Schema.OPTIONAL_STRING, "", id="an empty string"),
        param(Schema.INT64, 1 << 40, id="a number"),
        param(Schema.BYTES, b"\xff", id="bytes"),
        param(POINT, Struct(POINT, {"x": 1}), id="a struct with a null in it"),
        param(SchemaBuilder.array(POINT).build(), [Struct(POINT, {"x": 1})], id="a list of structs"),
        param(SchemaBuilder.map(Schema.STRING, Schema.OPTIONAL_INT32).build(), {"a": None}, id="a map with a null in it"),
        param(decimal_schema(2), decimal.Decimal("12.34"), id="a decimal"),
    ],
)
@pytest.mark.parametrize("name", ["line", "a.b `c`"], ids=["", "odd name"])
def test_a_value_becomes_a_field(schema, value, name, spark_holder):
    made = hoisted(schema, name)
    before = SourceRecord("t", value, value_schema=schema, key="k", key_schema=Schema.STRING)
    after = before.with_(value_schema=made, value=Struct(made, {name: value}))
    check_transform(HoistField.Value.of(field=name), before, after, spark_holder)


@pytest.mark.spark
def test_a_key_becomes_a_field_of_a_sinks_record(spark_holder):
    made = hoisted(Schema.STRING)
    before = SinkRecord("t", 0, 7, key_schema=Schema.STRING, key="k", value_schema=Schema.STRING, value="v")
    check_transform(HoistField.Key.of(field="line"), before, before.with_(key_schema=made, key=Struct(made, {"line": "k"})), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema, value",
    [
        param(POINT, BROKEN, id="a struct without a required field"),
        param(SchemaBuilder.array(POINT).build(), [BROKEN], id="such a struct in a list"),
        param(SchemaBuilder.map(Schema.STRING, POINT).build(), {"a": BROKEN}, id="such a struct in a map"),
        param(SchemaBuilder.map(Schema.STRING, Schema.INT32).build(), {"a": None}, id="a null in a map of required numbers"),
        param(SchemaBuilder.map(Schema.STRING, Schema.STRING).build(), {"a": None}, id="a null in a map of required texts"),
        param(SchemaBuilder.array(Schema.STRING).build(), ["a", None], id="a null in a list of required texts"),
    ],
)
def test_a_value_that_breaks_its_schema_is_an_error_in_both(schema, value, spark_holder):
    record = SourceRecord("t", value, value_schema=schema)
    check_transform(HoistField.Value.of(field="line"), record, DataError, spark_holder)


@pytest.mark.parametrize("value", ["foo", None, {"a": 1}, [1]])
def test_a_value_without_a_schema_becomes_a_map(value):
    record = SourceRecord("t", value)
    check_transform(HoistField.Value.of(field="line"), record, record.with_(value={"line": value}))


def test_a_null_is_refused_where_it_is_required_and_hoisted_where_it_is_not():
    required = SourceRecord("t", None, value_schema=Schema.STRING)
    check_transform(HoistField.Value.of(field="line"), required, DataError)
    made = hoisted(Schema.OPTIONAL_STRING)
    optional = required.with_(value_schema=Schema.OPTIONAL_STRING)
    check_transform(HoistField.Value.of(field="line"), optional, optional.with_(value_schema=made, value=Struct(made)))


def test_the_field_must_be_named():
    with pytest.raises(ConfigError, match="field"):
        HoistField.Value.of()


def test_the_java_names_of_both_parts():
    assert HoistField.Key.java_name == "org.apache.kafka.connect.transforms.HoistField$Key"
    assert HoistField.Value.java_name == "org.apache.kafka.connect.transforms.HoistField$Value"
