"""MaskField: empty or fixed values in the place of what fields hold, by rows and by columns."""

import decimal

import pytest
from pytest import param

from standalone import (
    BigInt,
    ConfigError,
    DataError,
    Float32,
    Instant,
    Int8,
    Int16,
    Int32,
    Schema,
    SchemaBuilder,
    SourceRecord,
    Struct,
    decimal_schema,
    timestamp_schema,
)
from standalone.pipeline.chain import Link
from standalone.testing import check_transform, transform_columns
from standalone.transforms.mask_field import MaskField

V2 = {"field.syntax.version": "V2"}
OWNER = SchemaBuilder.struct().optional().field("pin", Schema.INT32).field("born", timestamp_schema(optional=True)).build()
CARD = (
    SchemaBuilder.struct()
    .name("Card")
    .field("number", Schema.STRING)
    .field("a.b", Schema.OPTIONAL_STRING.with_(default="anon"))
    .field("code", Schema.INT8)
    .field("owner", OWNER)
    .build()
)
ANN = Struct(CARD, {"number": "4111", "a.b": "x", "code": 7, "owner": Struct(OWNER, {"pin": 9, "born": Instant(5)})})


def record(value, schema=None):
    return SourceRecord("t", value, value_schema=schema)


def card(**changes):
    return Struct(CARD, {**ANN.to_dict(), **changes})


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema, value, masked",
    [
        param(Schema.STRING, "foo", "", id="a string"),
        param(Schema.BOOLEAN, True, False, id="a boolean"),
        param(Schema.INT8, 7, 0, id="a byte"),
        param(Schema.INT64, 1 << 40, 0, id="a long"),
        param(Schema.FLOAT32, Float32(1.5), 0.0, id="a float"),
        param(Schema.FLOAT64, 1.5, 0.0, id="a double"),
        param(decimal_schema(2), decimal.Decimal("1.25"), decimal.Decimal(0), id="a decimal, of scale 0 then"),
        param(timestamp_schema(), Instant(77), Instant(0), id="a timestamp"),
        param(SchemaBuilder.array(Schema.STRING).build(), ["a"], [], id="a list"),
        param(SchemaBuilder.map(Schema.STRING, Schema.INT32).build(), {"a": 1}, {}, id="a map"),
        param(Schema.OPTIONAL_STRING, None, None, id="a null"),
    ],
)
def test_each_type_has_an_empty_value(schema, value, masked, spark_holder):
    whole = SchemaBuilder.struct().field("f", schema).field("id", Schema.INT64).build()
    before, after = (record(Struct(whole, {"f": each, "id": 1}), whole) for each in (value, masked))
    check_transform(MaskField.Value.of(fields="f"), before, after, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema, value, replacement, masked",
    [
        param(Schema.STRING, "foo", "xxx", "xxx", id="a string"),
        param(Schema.INT8, 1, "-7", -7, id="a byte"),
        param(Schema.INT32, 1, "1.9", 1, id="an int loses the fraction"),
        param(Schema.INT16, 1, "65537", 1, id="a short loses the upper bits"),
        param(Schema.FLOAT32, Float32(1.0), "0.1", 0.10000000149011612, id="a float is rounded"),
        param(decimal_schema(2), decimal.Decimal(1), "1.250", decimal.Decimal("1.250"), id="a decimal of the replacement's scale"),
    ],
)
def test_a_replacement_is_read_as_the_type(schema, value, replacement, masked, spark_holder):
    whole = SchemaBuilder.struct().field("f", schema).field("id", Schema.INT64).build()
    before, after = (record(Struct(whole, {"f": each, "id": 1}), whole) for each in (value, masked))
    check_transform(MaskField.Value.of(fields="f", replacement=replacement), before, after, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, after",
    [
        param({"fields": "number,code"}, ANN, card(number="", code=0), id="two fields"),
        param({"fields": "a.b"}, ANN, card(**{"a.b": ""}), id="a name with a dot"),
        param({"fields": "a.b"}, card(**{"a.b": None}), card(**{"a.b": ""}), id="the default of a null is masked"),
        param({"fields": "a.b", "replace.null.with.default": "false"}, card(**{"a.b": None}), card(**{"a.b": None}), id="a null"),
        param({"fields": "nope"}, ANN, ANN, id="a field that is missing"),
        param({"fields": "owner.pin,code", **V2}, ANN, card(code=0, owner=Struct(OWNER, {"pin": 0, "born": Instant(5)})), id="a nested one"),
        param({"fields": "owner.pin", **V2}, card(owner=None), card(owner=None), id="below a null struct"),
    ],
)
def test_the_other_fields_stay(props, before, after, spark_holder):
    check_transform(MaskField.Value.of(props), record(before, CARD), record(after, CARD), spark_holder)


BLOB = SchemaBuilder.struct().field("b", Schema.OPTIONAL_BYTES).build()


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, schema",
    [
        param({"fields": "owner"}, ANN, CARD, id="a struct"),
        param({"fields": "owner", "replacement": "x"}, ANN, CARD, id="a struct by a text"),
        param({"fields": "b"}, Struct(BLOB, {"b": b"x"}), BLOB, id="bytes"),
        param({"fields": "code", "replacement": "x"}, ANN, CARD, id="a text for a number"),
        param({"fields": "number.x", **V2}, ANN, CARD, id="a path through a string"),
        param({"fields": "code"}, Struct.trusted(CARD, [None, "x", 7, None]), CARD, id="a null elsewhere that is required"),
        param({"fields": "code"}, "text", Schema.STRING, id="a string for a struct"),
    ],
)
def test_what_cannot_be_masked_is_an_error(props, before, schema, spark_holder):
    check_transform(MaskField.Value.of(props), record(before, schema), DataError, spark_holder)


def test_a_null_is_an_error():
    check_transform(MaskField.Value.of(fields="code"), record(None, CARD), DataError)
    check_transform(MaskField.Value.of(fields="code"), record(None), DataError)


def test_a_null_of_a_type_that_cannot_be_masked_stays():
    check_transform(MaskField.Value.of(fields="b"), record(Struct(BLOB), BLOB), record(Struct(BLOB), BLOB))


@pytest.mark.parametrize(
    "value, masked",
    [
        param(True, False, id="a boolean"),
        param(Int8(7), Int8(0), id="a byte"),
        param(Int16(7), Int16(0), id="a short"),
        param(Int32(7), Int32(0), id="an int"),
        param(7, 0, id="a long"),
        param(BigInt(7), BigInt(0), id="a big integer"),
        param(Float32(1.5), Float32(0.0), id="a float"),
        param(1.5, 0.0, id="a double"),
        param(decimal.Decimal("1.5"), decimal.Decimal(0), id="a decimal"),
        param(Instant(5), Instant(0), id="a date"),
        param("foo", "", id="a string"),
        param([1], [], id="a list"),
        param({"a": 1}, {}, id="a map"),
        param(None, None, id="a null"),
    ],
)
def test_values_without_a_schema_keep_their_class(value, masked):
    transform = MaskField.Value.of(fields="f")
    made = transform.apply(record({"f": value, "g": 1})).value
    assert made == {"f": masked, "g": 1}
    assert type(made["f"]) is type(masked)


def test_a_field_that_a_map_lacks_is_there_as_a_null():
    check_transform(MaskField.Value.of(fields="nope"), record({"g": 1}), record({"g": 1, "nope": None}))


def test_nested_maps():
    transform = MaskField.Value.of({"fields": "a.b,c.d", **V2})
    check_transform(transform, record({"a": {"b": "x", "e": 1}, "c": None}), record({"a": {"b": "", "e": 1}, "c": None}))
    check_transform(transform, record({"a": "text"}), DataError)


@pytest.mark.parametrize("value", [b"x", Struct(BLOB)], ids=["bytes", "a struct"])
def test_without_a_schema_too_some_cannot_be_masked(value):
    check_transform(MaskField.Value.of(fields="f"), record({"f": value}), DataError)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, by_columns",
    [
        param({"fields": "s,n"}, True, id="two fields"),
        param({"fields": "m.x", **V2}, True, id="a nested field"),
        param({"fields": "n", "replacement": "12"}, True, id="a replacement"),
        param({"fields": "nope"}, False, id="a field that would be added as a null"),
        param({"fields": "m"}, False, id="a map that would become an empty one"),
    ],
)
def test_maps_of_one_shape(props, by_columns, check_shape):
    inner = SchemaBuilder.struct().field("x", Schema.FLOAT64).build()
    shape = SchemaBuilder.struct().field("s", Schema.STRING).field("n", Schema.INT64).field("m", inner).build()
    values = [{"s": "a", "n": 1, "m": {"x": 1.5}}, {"s": "b", "n": 2, "m": {"x": 2.5}}]
    check_shape(MaskField.Value.of(props), values, shape, by_columns)


@pytest.mark.parametrize("props", [{}, {"fields": ""}, {"fields": "a,,b"}, {"fields": "a", "replacement": ""}])
def test_what_is_refused_at_configure(props):
    with pytest.raises(ConfigError):
        MaskField.Value.of(props)


@pytest.mark.spark
def test_a_decimal_that_is_masked_may_be_beside_nulls(spark_holder):
    schema = SchemaBuilder.struct().field("d", decimal_schema(2, optional=True)).build()
    records = [SourceRecord("t", Struct(schema, {"d": each}), value_schema=schema) for each in (decimal.Decimal("1.50"), None)]
    transform = MaskField.Value.of(fields="d")
    assert transform_columns([Link("mask", transform)], records, spark_holder) == [transform.apply(each) for each in records]
