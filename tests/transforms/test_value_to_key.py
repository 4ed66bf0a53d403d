"""ValueToKey: a key of fields of the value, by rows and by columns."""

import pytest
from pytest import param

from standalone import ConfigError, DataError, Schema, SchemaBuilder, SourceRecord, Struct
from standalone.errors import SchemaBuilderError
from standalone.testing import check_transform
from standalone.transforms.value_to_key import ValueToKey

V2 = {"field.syntax.version": "V2"}
GEO = SchemaBuilder.struct().optional().field("lat", Schema.OPTIONAL_FLOAT64.with_(default=1.5)).field("id", Schema.OPTIONAL_INT8).build()
PLACE = (
    SchemaBuilder.struct()
    .name("Place")
    .field("id", Schema.INT64)
    .field("a.b", Schema.OPTIONAL_STRING.with_(default="anon"))
    .field("geo", GEO)
    .build()
)
HERE = Struct(PLACE, {"id": 7, "geo": Struct(GEO)})
NOWHERE = Struct(PLACE, {"id": 7})


def key(values, **schemas):
    builder = SchemaBuilder.struct()
    for name, schema in schemas.items():
        builder.field(name, schema)
    return Struct(builder.build(), values)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, value, made",
    [
        param({"fields": "id"}, HERE, key({"id": 7}, id=Schema.INT64), id="one field"),
        param(
            {"fields": "a.b,id,a.b"},
            HERE,
            key({"a.b": "anon", "id": 7}, **{"a.b": PLACE["a.b"], "id": Schema.INT64}),
            id="each once, in order",
        ),
        param({"fields": "a.b", "replace.null.with.default": "false"}, HERE, key({}, **{"a.b": PLACE["a.b"]}), id="a null that stays one"),
        param({"fields": "geo"}, HERE, key({"geo": HERE["geo"]}, geo=GEO), id="a struct"),
        param(
            {"fields": "geo.lat,id", **V2},
            HERE,
            key({"lat": 1.5, "id": 7}, lat=GEO["lat"], id=Schema.INT64),
            id="a nested one by its last name",
        ),
        param({"fields": "geo.lat", **V2}, NOWHERE, key({}, lat=GEO["lat"]), id="no default below a null struct"),
    ],
)
def test_a_key_of_fields(props, value, made, spark_holder):
    before = SourceRecord("t", value, value_schema=PLACE, key="old", key_schema=Schema.STRING)
    check_transform(ValueToKey.of(props), before, before.with_(key=made, key_schema=made.schema), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, value, schema, error",
    [
        param({"fields": "nope"}, HERE, PLACE, DataError, id="a field that is missing"),
        param({"fields": "id"}, Struct.trusted(PLACE, [None, None, None]), PLACE, DataError, id="a null that is required"),
        param({"fields": "id"}, "text", Schema.STRING, DataError, id="a string"),
        param({"fields": "id,geo.id", **V2}, HERE, PLACE, SchemaBuilderError, id="two of one last name"),
    ],
)
def test_what_makes_no_key_is_an_error(props, value, schema, error, spark_holder):
    check_transform(ValueToKey.of(props), SourceRecord("t", value, value_schema=schema), error, spark_holder)


@pytest.mark.parametrize("schema", [None, PLACE])
def test_a_null_is_an_error(schema):
    check_transform(ValueToKey.of(fields="id"), SourceRecord("t", None, value_schema=schema), DataError)


@pytest.mark.parametrize(
    "props, made",
    [
        param({"fields": "id,nope"}, {"id": 7, "nope": None}, id="a null for a field that is missing"),
        param({"fields": "geo.lat", **V2}, {"lat": 1.5}, id="a nested one by its last name"),
    ],
)
def test_a_key_of_a_maps_fields(props, made):
    before = SourceRecord("t", {"id": 7, "geo": {"lat": 1.5}}, key="old", key_schema=Schema.STRING)
    check_transform(ValueToKey.of(props), before, before.with_(key=made, key_schema=None))


@pytest.mark.spark
@pytest.mark.parametrize("props, by_columns", [({"fields": "id,s"}, True), ({"fields": "m.x", **V2}, True), ({"fields": "nope"}, False)])
def test_maps_of_one_shape(props, by_columns, check_shape):
    inner = SchemaBuilder.struct().field("x", Schema.FLOAT64).build()
    shape = SchemaBuilder.struct().field("s", Schema.STRING).field("id", Schema.INT64).field("m", inner).build()
    check_shape(ValueToKey.of(props), [{"s": "a", "id": each, "m": {"x": 1.5}} for each in (1, 2)], shape, by_columns)


@pytest.mark.parametrize("props", [{}, {"fields": ""}, {"fields": "a,,b"}])
def test_what_is_refused_at_configure(props):
    with pytest.raises(ConfigError):
        ValueToKey.of(props)
