"""ReplaceField: fields left out, kept or renamed, by rows and by columns."""

import pytest
from pytest import param

from standalone import ConfigError, DataError, Schema, SchemaBuilder, SourceRecord, Struct
from standalone.errors import SchemaBuilderError
from standalone.testing import check_transform
from standalone.transforms.replace_field import ReplaceField

V2 = {"field.syntax.version": "V2"}
GEO = SchemaBuilder.struct().optional().name("Geo").field("lat", Schema.FLOAT64).field("lon", Schema.OPTIONAL_FLOAT64).build()
PLACE = (
    SchemaBuilder.struct()
    .optional()
    .name("Place")
    .version(3)
    .doc("where")
    .parameter("p", "q")
    .field("id", Schema.INT64)
    .field("a.b", Schema.OPTIONAL_STRING.with_(default="anon"))
    .field("geo", GEO)
    .build()
)
HERE = Struct(PLACE, {"id": 7, "geo": Struct(GEO, {"lat": 1.5})})
NOWHERE = Struct(PLACE, {"id": 7, "a.b": "x"})


def record(value, schema=None):
    return SourceRecord("t", value, value_schema=schema)


def struct(values, **schemas):
    """A struct of the schema that PLACE becomes: the fields of `schemas`, required as a whole."""
    builder = SchemaBuilder.struct().name("Place").version(3).doc("where").parameter("p", "q")
    for name, schema in schemas.items():
        builder.field(name, schema)
    return Struct(builder.build(), values)


LON = SchemaBuilder.struct().optional().name("Geo").field("lon", Schema.OPTIONAL_FLOAT64).build()
NORTH = SchemaBuilder.struct().optional().name("Geo").field("north", Schema.FLOAT64).field("lon", Schema.OPTIONAL_FLOAT64).build()
ANON = PLACE["a.b"]


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, after",
    [
        param({"exclude": "geo"}, HERE, struct({"id": 7, "a.b": "anon"}, id=Schema.INT64, **{"a.b": ANON}), id="one left out"),
        param(
            {"exclude": "geo", "replace.null.with.default": "false"},
            HERE,
            struct({"id": 7}, id=Schema.INT64, **{"a.b": ANON}),
            id="a null keeps from its default",
        ),
        param({"include": "geo,nope"}, HERE, struct({"geo": HERE["geo"]}, geo=GEO), id="one kept"),
        param({"include": "id,geo", "exclude": "geo"}, HERE, struct({"id": 7}, id=Schema.INT64), id="left out though kept"),
        param(
            {"renames": "id:a.b c,a.b:id"},
            NOWHERE,
            struct({"a.b c": 7, "id": "x"}, **{"a.b c": Schema.INT64, "id": ANON, "geo": GEO}),
            id="names that change places",
        ),
        param(
            {"exclude": "geo.lat,id", **V2},
            HERE,
            struct({"a.b": "anon", "geo": Struct(LON)}, **{"a.b": ANON, "geo": LON}),
            id="a nested one left out",
        ),
        param({"include": "geo.lon", **V2}, HERE, struct({"geo": Struct(LON)}, geo=LON), id="a nested one kept"),
        param({"include": "geo.lon", **V2}, NOWHERE, struct({"geo": None}, geo=LON), id="a nested one kept of a null"),
        param(
            {"renames": "geo.lat:north", "exclude": "a.b,`a.b`", **V2},
            HERE,
            struct({"id": 7, "geo": Struct(NORTH, {"north": 1.5})}, id=Schema.INT64, geo=NORTH),
            id="a nested one renamed",
        ),
    ],
)
def test_fields_of_structs(props, before, after, spark_holder):
    check_transform(ReplaceField.Value.of(props), record(before, PLACE), record(after, after.schema), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, schema, error",
    [
        param({"renames": "id:geo"}, HERE, PLACE, SchemaBuilderError, id="two fields of one name"),
        param({"exclude": "id", "renames": "id:geo"}, HERE, PLACE, DataError, id="a new name fetches the field that is left out"),
        param({"renames": "nope:geo"}, HERE, PLACE, DataError, id="a name renamed to stands for a field that is missing"),
        param({"exclude": "id.x", **V2}, HERE, PLACE, DataError, id="a path through a number"),
        param({"exclude": "geo"}, Struct.trusted(PLACE, [None, "x", None]), PLACE, DataError, id="a null that is required"),
        param({"exclude": "geo"}, "text", Schema.STRING, DataError, id="a string"),
    ],
)
def test_what_cannot_be_made_is_an_error(props, before, schema, error, spark_holder):
    check_transform(ReplaceField.Value.of(props), record(before, schema), error, spark_holder)


@pytest.mark.spark
def test_nothing_kept_is_an_empty_struct(spark_holder):
    empty = struct({})
    check_transform(ReplaceField.Value.of(include="nope"), record(HERE, PLACE), record(empty, empty.schema), spark_holder)


@pytest.mark.parametrize("schema", [None, PLACE])
def test_a_null_stays_as_it_is(schema):
    check_transform(ReplaceField.Value.of(exclude="id"), record(None, schema), record(None, schema))


@pytest.mark.parametrize(
    "props, before, after",
    [
        param({"exclude": "a,x.y"}, {"a": 1, "x.y": 2, "b": 3}, {"b": 3}, id="left out"),
        param({"include": "a"}, {"a": 1, "b": None}, {"a": 1}, id="kept"),
        param({"renames": "a:z"}, {"a": None, "b": 2}, {"z": None, "b": 2}, id="renamed"),
        param({"renames": "a:b"}, {"a": 1, "b": 2}, {"b": 2}, id="the later of two wins"),
        param({"exclude": "m.a", **V2}, {"m": {"a": 1, "b": 2}, "n": 3}, {"m": {"b": 2}, "n": 3}, id="nested left out"),
        param({"include": "m.a", **V2}, {"m": {"a": 1, "b": 2}, "n": 3}, {"m": {"a": 1}}, id="nested kept"),
        param({"renames": "m.a:z", **V2}, {"m": None, "n": 3}, {"m": None, "n": 3}, id="nested in a null"),
        param({"renames": "m:k,m.a:z", **V2}, {"m": {"a": 1}}, {"k": {"z": 1}}, id="a map and what is in it"),
    ],
)
def test_fields_of_maps(props, before, after):
    check_transform(ReplaceField.Value.of(props), record(before), record(after))


@pytest.mark.parametrize("props, value", [({"exclude": "a"}, "text"), ({"exclude": "m.a", **V2}, {"m": 5})])
def test_maps_are_needed(props, value):
    check_transform(ReplaceField.Value.of(props), record(value), DataError)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, by_columns",
    [
        param({"exclude": "n", "renames": "s:a.b"}, True, id="left out and renamed"),
        param({"include": "m.x", **V2}, True, id="a nested field kept"),
        param({"renames": "s:n"}, False, id="two that become one"),
        param({"exclude": "s", "renames": "s:n"}, True, id="renamed and left out"),
    ],
)
def test_maps_of_one_shape(props, by_columns, check_shape):
    inner = SchemaBuilder.struct().field("x", Schema.FLOAT64).field("y", Schema.BOOLEAN).build()
    shape = SchemaBuilder.struct().field("s", Schema.STRING).field("n", Schema.INT64).field("m", inner).build()
    values = [{"s": "a", "n": 1, "m": {"x": 1.5, "y": True}}, {"s": "b", "n": 2, "m": {"x": 2.5, "y": False}}]
    check_shape(ReplaceField.Value.of(props), values, shape, by_columns)


@pytest.mark.parametrize("text", ["a", "a:", "a::", "a:b:c", "a:b,,c:d"])
def test_a_rename_needs_two_names(text):
    with pytest.raises(ConfigError, match="renames"):
        ReplaceField.Value.of(renames=text)


@pytest.mark.parametrize("props", [{"exclude": "a,,b"}, {"include": ","}])
def test_an_empty_name_is_refused(props):
    with pytest.raises(ConfigError, match="comma"):
        ReplaceField.Value.of(props)
