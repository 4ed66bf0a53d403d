"""Lists, maps and structs as keys of maps, and defaults that are equal as Java's are."""

import pickle
from decimal import Decimal

import pytest
from pytest import param

from standalone import DataError, Schema, SchemaBuilder, SourceRecord, Struct, decimal_schema
from standalone.converters.json import JsonConverter
from standalone.data.arrow import from_arrow
from standalone.data.column import to_arrow
from standalone.data.map_key import as_key
from standalone.data.projector import project
from standalone.data.values import parse, to_text
from standalone.transforms.flatten import Flatten

POINT = SchemaBuilder.struct().field("x", Schema.INT32).build()
LIST, MAP = SchemaBuilder.array(Schema.INT32).build(), SchemaBuilder.map(Schema.STRING, Schema.INT32).build()


@pytest.mark.parametrize("value", [[1, [2]], {"a": [1]}, [{"a": None}], [], {}])
def test_a_key_is_what_it_was(value):
    key = as_key(value)
    assert {key: 1}[as_key(value)] == 1
    assert key == value and isinstance(key, type(value)) and to_text(key) == to_text(value)
    assert pickle.loads(pickle.dumps(key)) == key and hash(pickle.loads(pickle.dumps(key))) == hash(key)


@pytest.mark.parametrize(
    "text, found",
    [
        param("{[1]:-1}", {as_key([1]): -1}, id="a list"),
        param("{{1:2}: {}}", {as_key({1: 2}): {}}, id="a map"),
        param("{[1,200]:1, [1,200]:2}", {as_key([1, 200]): 2}, id="the last one stands"),
        param("{[1]: 1, \"a\": 2}", {as_key([1]): 1, "a": 2}, id="beside others"),
    ],
)
def test_texts(text, found):
    schema, value = parse(text)
    assert (schema.type, value) == ("map", found)


@pytest.mark.parametrize(
    "text, shown",
    [
        param('{true:"a",1:"b"}', '{true:"a",1:"b"}', id="true, then 1"),
        param('{1:"a",true:"b"}', '{1:"a",true:"b"}', id="1, then true"),
        param('{false:"a",0:"b",true:"c",1:"d"}', '{false:"a",0:"b",true:"c",1:"d"}', id="all four"),
        param('{true:"a",1:"b",1:"c",true:"d"}', '{true:"d",1:"c"}', id="the last of each stands"),
        param('{1:"a",1:"b",true:"c"}', '{1:"b",true:"c"}', id="equal numbers are one key"),
        param('{1:"a",1.0:"b",true:"c"}', '{1:"b",true:"c"}', id="1.0 is read as 1, in Java as here"),
    ],
)
def test_a_boolean_and_a_number_are_two_keys(text, shown):
    schema, value = parse(text)
    assert (schema.type, schema.key_schema, to_text(value)) == ("map", None, shown)
    assert to_text(pickle.loads(pickle.dumps(value))) == shown and pickle.loads(pickle.dumps(value)) == value
    pairs = JsonConverter.of({"schemas.enable": "false"}).from_connect("t", None, value)
    assert pairs == b"[" + b",".join(b"[%b]" % pair.replace(b":", b",") for pair in shown[1:-1].encode().split(b",")) + b"]"
    assert len(to_text({**value})) == len(shown), "a copy has both, too"


@pytest.mark.parametrize(
    "keys, key",
    [param(LIST, [1, 2], id="lists"), param(MAP, {"a": 1}, id="maps"), param(POINT, Struct(POINT, {"x": 1}), id="structs")],
)
def test_through_json_arrow_and_a_projection(keys, key):
    schema = SchemaBuilder.map(keys, Schema.STRING).build()
    value = {as_key(key): "v"}
    converter = JsonConverter.of()
    assert converter.to_connect("t", converter.from_connect("t", schema, value)) == (schema, value)
    assert from_arrow(to_arrow([value, {}], schema), schema) == [value, {}]
    assert project(schema, value, schema) == value


@pytest.mark.parametrize("value", [{1: "a"}, {"a": {2: "b"}}, {as_key([1]): 1}, {True: 1}, {None: {"a": 1}}], ids=str)
def test_flatten_joins_texts_alone(value):
    with pytest.raises(DataError, match="Flatten"):
        Flatten.Value.of({}).apply(SourceRecord("t", value=value))


@pytest.mark.parametrize("value, flat", [({"a": {None: 1}}, {"a.null": 1}), ({None: 1}, {None: 1})])
def test_flatten_takes_null_for_a_name(value, flat):
    assert Flatten.Value.of({}).apply(SourceRecord("t", value=value)).value == flat


@pytest.mark.parametrize(
    "one, other, same",
    [
        param(Schema("float64", default=float("nan")), Schema("float64", default=float("nan")), True, id="NaN is itself"),
        param(Schema("float64", default=0.0), Schema("float64", default=-0.0), False, id="the zeros are two"),
        param(decimal_schema(1).with_(default=Decimal("1.0")), decimal_schema(1).with_(default=Decimal("1.00")), False, id="a scale"),
        param(LIST.with_(default=[1]), LIST.with_(default=[1]), True, id="lists"),
        param(Schema("int32", default=1), Schema("int32"), False, id="one without"),
    ],
)
def test_schemas_are_equal_where_their_defaults_are(one, other, same):
    assert (one == other) == same
    outer = SchemaBuilder.struct().field("f", SchemaBuilder.struct().field("x", one).build()).build()
    inner = Struct.trusted(SchemaBuilder.struct().field("x", other).build(), [None])
    if same:
        assert Struct(outer, {"f": inner}).get("f") is inner, "a struct fits the field of an equal schema"
    else:
        with pytest.raises(DataError):
            Struct(outer, {"f": inner})
