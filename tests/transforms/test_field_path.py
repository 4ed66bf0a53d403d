"""Paths to fields: what Kafka's field.syntax.version makes of a string, and what is found there."""

import pytest
from pytest import param

from standalone import ConfigDef, ConfigError, DataError, Schema, SchemaBuilder, Struct
from standalone.transforms import field_path
from standalone.transforms.field_path import PathTree

OPTIONS = ConfigDef(field_path.SYNTAX)
V2 = OPTIONS.parse({"field.syntax.version": "v2"})
GEO = SchemaBuilder.struct().optional().field("lat", Schema.OPTIONAL_FLOAT64.with_(default=1.5)).build()
PLACE = SchemaBuilder.struct().field("geo", GEO).field("city", Schema.STRING).build()


@pytest.mark.parametrize(
    "text, steps",
    [
        param("a", ("a",), id="a name"),
        param("a.b.c", ("a", "b", "c"), id="names on the way"),
        param("`a.b`.c", ("a.b", "c"), id="a name with a dot in backticks"),
        param("a.`b.c`", ("a", "b.c"), id="such a name at the end"),
        param("a`b.c", ("a`b", "c"), id="a backtick within a name"),
        param("`a`b.c`.d", ("a`b.c", "d"), id="a backtick that no dot follows"),
        param("`a\\`.b`.c", ("a`.b", "c"), id="an escaped backtick before a dot"),
        param("`a\\`b`", ("a\\`b",), id="a backslash stays where nothing needed it"),
        param("``", ("",), id="an empty name in backticks"),
        param("a..b", ("a", "", "b"), id="an empty name between dots"),
        param(".a", ("", "a"), id="an empty name in front"),
        param("a.", ("a", ""), id="an empty name at the end"),
        param("", (), id="nothing"),
    ],
)
def test_the_steps_of_a_path(text, steps):
    assert field_path.field_path(text, V2) == steps


@pytest.mark.parametrize("text", ["`", "`a", "`a`.`b", "`a`b", "`a\\`"])
def test_a_backtick_that_is_not_closed_is_refused(text):
    with pytest.raises(ConfigError, match="backtick"):
        field_path.field_path(text, V2)


def test_without_nested_syntax_dots_are_letters():
    assert field_path.field_path("`a.b`.c", OPTIONS.parse({})) == ("`a.b`.c",)


def test_what_a_path_finds_in_structs():
    place = Struct(PLACE, {"geo": Struct(GEO), "city": "Bonn"})
    assert field_path.field_at(PLACE, ("geo", "lat")).name == "lat"
    assert field_path.field_at(PLACE, ("geo", "alt")) is None
    assert field_path.field_at(PLACE, ("nope", "lat")) is None
    assert field_path.in_struct(place, ("geo", "lat"), True) == 1.5
    assert field_path.in_struct(place, ("geo", "lat"), False) is None
    assert field_path.in_struct(Struct(PLACE, {"city": "Bonn"}), ("geo", "lat"), True) is None
    with pytest.raises(DataError, match="no fields"):
        field_path.field_at(PLACE, ("city", "lat"))


def test_what_a_path_finds_in_maps():
    place = {"geo": {"lat": 2.5}, "city": "Bonn", "none": None}
    assert field_path.in_map(place, ("geo", "lat")) == 2.5
    assert field_path.in_map(place, ("geo", "alt")) is None
    assert field_path.in_map(place, ("none", "lat")) is None
    assert field_path.in_map(place, ("missing", "lat")) is None
    with pytest.raises(DataError, match="should be a map; found a str"):
        field_path.in_map(place, ("city", "lat"))
    with pytest.raises(DataError, match="empty"):
        field_path.in_map(place, ())


def test_paths_make_a_tree():
    tree = PathTree.of({("a",): 1, ("b", "c"): 2, ("b", "d"): 3})
    assert tree.inside["a"].said == 1 and not tree.inside["a"].inside
    assert tree.inside["b"].said is None
    assert {name: below.said for name, below in tree.inside["b"].inside.items()} == {"c": 2, "d": 3}
