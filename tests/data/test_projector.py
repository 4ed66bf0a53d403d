"""A value seen through another version of its schema."""

import pytest
from pytest import param

from standalone import Int64, Schema, SchemaBuilder, Struct, date_schema
from standalone.data.projector import project
from standalone.errors import DataError, SchemaProjectorError

WITH_DEFAULT = Schema.INT32.with_(default=9)
OLD = SchemaBuilder.struct().field("id", Schema.INT32).field("note", Schema.OPTIONAL_STRING).build()
NEW = SchemaBuilder.struct().field("id", Schema.INT64).field("level", WITH_DEFAULT).field("tag", Schema.OPTIONAL_STRING).build()


@pytest.mark.parametrize(
    "source, value, target, projected",
    [
        param(Schema.INT8, 5, Schema.INT64, 5, id="a byte becomes a long"),
        param(Schema.INT64, 1 << 62, Schema.FLOAT64, float(1 << 62), id="a long becomes a double"),
        param(Schema.INT32, 16_777_217, Schema.FLOAT32, 16_777_216.0, id="an int becomes a float, rounded"),
        param(Schema.OPTIONAL_INT32, None, WITH_DEFAULT, 9, id="a null becomes the default"),
        param(Schema.OPTIONAL_INT32, 3, WITH_DEFAULT, 3, id="what is no null stays"),
        param(Schema.OPTIONAL_INT32, None, Schema.OPTIONAL_INT64, None, id="a null stays null"),
        param(SchemaBuilder.array(Schema.INT8).build(), [1, 2], SchemaBuilder.array(Schema.FLOAT64).build(), [1.0, 2.0], id="a list"),
        param(
            SchemaBuilder.map(Schema.STRING, Schema.INT8).build(),
            {"a": 1},
            SchemaBuilder.map(Schema.STRING, Schema.INT64).build(),
            {"a": 1},
            id="a map",
        ),
        param(OLD, Struct(OLD, {"id": 1, "note": "x"}), NEW, Struct(NEW, {"id": 1, "level": 9}), id="a struct loses and gains fields"),
    ],
)
def test_a_value_fits_the_newer_schema(source, value, target, projected):
    assert project(source, value, target) == projected


def test_what_becomes_wider_has_the_class_of_its_width():
    assert type(project(Schema.INT8, 5, Schema.INT64)) is Int64


@pytest.mark.parametrize(
    "source, value, target",
    [
        param(Schema.INT64, 5, Schema.INT32, id="a narrower number"),
        param(Schema.STRING, "5", Schema.INT32, id="a text for a number"),
        param(Schema.BOOLEAN, True, Schema.INT32, id="a boolean for a number"),
        param(Schema.OPTIONAL_INT32, 5, Schema.INT32, id="optional for required, without a default"),
        param(date_schema(), None, Schema.INT32, id="another name"),
        param(Schema.INT32.with_(parameters={"a": "1"}), 5, Schema.INT32, id="other parameters"),
        param(OLD, Struct(OLD, {"id": 1}), SchemaBuilder.struct().field("x", Schema.INT8).build(), id="a new required field"),
    ],
)
def test_what_does_not_fit(source, value, target):
    with pytest.raises(SchemaProjectorError):
        project(source, value, target)


def test_the_error_names_the_field():
    target = SchemaBuilder.struct().field("id", Schema.STRING).build()
    with pytest.raises(DataError, match="'id'"):
        project(OLD, Struct(OLD, {"id": 1}), target)
