"""ExtractField: one field in the place of the whole, by rows and by columns."""

import pytest
from pytest import param

from standalone import ConfigError, DataError, Schema, SchemaBuilder, SourceRecord, Struct
from standalone.testing import check_transform
from standalone.transforms.extract_field import ExtractField

GEO = SchemaBuilder.struct().optional().field("lat", Schema.FLOAT64.with_(default=9.5)).field("a.b", Schema.OPTIONAL_STRING).build()
PLACE = (
    SchemaBuilder.struct()
    .field("id", Schema.INT64)
    .field("name", Schema.OPTIONAL_STRING.with_(default="anon"))
    .field("geo", GEO)
    .field("geo.lat", Schema.OPTIONAL_INT32)
    .build()
)
HERE = Struct(PLACE, {"id": 7, "geo": Struct(GEO, {"lat": 1.5, "a.b": "x"}), "geo.lat": 3})
NOWHERE = Struct(PLACE, {"id": 7})
V2 = {"field.syntax.version": "V2"}
MAP = {"id": 7, "geo": {"lat": 1.5}, "geo.lat": 3}


def record(value, schema=None):
    return SourceRecord("t", value, value_schema=schema, key="k", key_schema=Schema.STRING)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, schema, value",
    [
        param({"field": "id"}, HERE, Schema.INT64, 7, id="a number"),
        param({"field": "geo"}, HERE, GEO, HERE["geo"], id="a struct"),
        param({"field": "geo.lat"}, HERE, Schema.OPTIONAL_INT32, 3, id="a name with a dot"),
        param({"field": "name"}, HERE, PLACE["name"], "anon", id="a default for a null"),
        param({"field": "name", "replace.null.with.default": "false"}, HERE, PLACE["name"], None, id="a null that stays one"),
        param({"field": "geo.lat", **V2}, HERE, GEO["lat"], 1.5, id="a nested field"),
        param({"field": "geo.`a.b`", **V2}, HERE, Schema.OPTIONAL_STRING, "x", id="a nested field with a dot in its name"),
        param({"field": "geo.lat", **V2}, NOWHERE, GEO["lat"], None, id="no default below a null struct"),
    ],
)
def test_a_field_takes_the_place_of_the_struct(props, before, schema, value, spark_holder):
    check_transform(ExtractField.Value.of(props), record(before, PLACE), record(value, schema), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, schema",
    [
        param({"field": "nope"}, HERE, PLACE, id="a field that is missing"),
        param({"field": "nope"}, None, PLACE, id="a field that is missing, of a null"),
        param({"field": "id.x", **V2}, HERE, PLACE, id="a path through a number"),
        param({"field": "id"}, "text", Schema.STRING, id="a string"),
        param({"field": "", **V2}, HERE, PLACE, id="an empty path"),
    ],
)
def test_what_has_no_such_field_is_an_error(props, before, schema, spark_holder):
    check_transform(ExtractField.Value.of(props), record(before, schema), DataError, spark_holder)


def test_a_null_stays_null_under_the_schema_of_the_field():
    check_transform(ExtractField.Value.of(field="id"), record(None, PLACE), record(None, Schema.INT64))
    check_transform(ExtractField.Value.of(field="id"), record(None), record(None))


@pytest.mark.parametrize(
    "props, value",
    [
        param({"field": "id"}, 7, id="a number"),
        param({"field": "geo.lat"}, 3, id="a name with a dot"),
        param({"field": "geo.lat", **V2}, 1.5, id="a nested field"),
        param({"field": "nope"}, None, id="a field that is missing"),
        param({"field": "geo.nope.x", **V2}, None, id="a path that ends early"),
    ],
)
def test_a_field_takes_the_place_of_the_map(props, value):
    check_transform(ExtractField.Value.of(props), record(MAP), record(value))


@pytest.mark.parametrize("value", ["text", 5, [1]])
def test_without_a_schema_it_needs_a_map(value):
    check_transform(ExtractField.Value.of(field="id"), record(value), DataError)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, by_columns",
    [
        param({"field": "id"}, True, id="a number"),
        param({"field": "geo.lat", **V2}, True, id="a nested field"),
        param({"field": "nope"}, False, id="a field that is missing"),
    ],
)
def test_maps_of_one_shape(props, by_columns, check_shape):
    geo = SchemaBuilder.struct().field("lat", Schema.FLOAT64).build()
    shape = SchemaBuilder.struct().field("id", Schema.INT64).field("geo", geo).build()
    check_shape(ExtractField.Value.of(props), [{"id": 1, "geo": {"lat": 1.5}}, {"id": 2, "geo": {"lat": 2.5}}], shape, by_columns)


@pytest.mark.spark
def test_of_the_key(spark_holder):
    before = SourceRecord("t", "v", value_schema=Schema.STRING, key=HERE, key_schema=PLACE)
    check_transform(ExtractField.Key.of(field="id"), before, before.with_(key=7, key_schema=Schema.INT64), spark_holder)


@pytest.mark.parametrize("props", [{}, {"field": "a", "field.syntax.version": "V3"}, {"field": "`a", **V2}])
def test_what_is_refused_at_configure(props):
    with pytest.raises(ConfigError):
        ExtractField.Value.of(props)
