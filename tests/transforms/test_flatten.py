"""Flatten: nested fields at the top, by rows and by columns."""

import decimal

import pytest
from pytest import param

from standalone import BigInt, DataError, Instant, Int8, Schema, SchemaBuilder, SourceRecord, Struct, timestamp_schema
from standalone.errors import SchemaBuilderError
from standalone.testing import check_transform
from standalone.transforms.flatten import Flatten


def struct(**fields):
    builder = SchemaBuilder.struct()
    for name, schema in fields.items():
        builder.field(name, schema)
    return builder.build()


INNER = struct(
    x=Schema.INT32,
    y=Schema.INT32.with_(default=4),
    z=Schema.OPTIONAL_STRING.with_(default="zz"),
    t=timestamp_schema(optional=True),
)
MAYBE = INNER.with_(optional=True)
TAGS = SchemaBuilder.array(Schema.STRING).build()
OUTER = SchemaBuilder.struct().name("Top").version(1).doc("d").parameter("p", "q").field("in", INNER).field("tags", TAGS).build()
LOOSE = struct(**{"in": MAYBE, "a.b": Schema.STRING})
DEEP = struct(a=struct(b=struct(c=Schema.INT8)))


def record(value, schema=None):
    return SourceRecord("t", value, value_schema=schema)


def flat(like, **fields):
    return struct(**fields).with_(name=like.name, version=like.version, doc=like.doc, parameters=like.parameters)


def optional(schema):
    return schema.with_(optional=True)


FLAT_OUTER = flat(OUTER, **{f"in.{field.name}": field.schema for field in INNER.fields}, tags=TAGS)
FLAT_LOOSE = flat(LOOSE, **{f"in_{field.name}": optional(field.schema) for field in INNER.fields}, **{"a.b": Schema.STRING})


@pytest.mark.spark
@pytest.mark.parametrize(
    "delimiter, before, after",
    [
        param(
            ".",
            Struct(OUTER, {"in": Struct(INNER, {"x": 1, "y": 2, "z": "s", "t": Instant(9)}), "tags": ["a"]}),
            Struct(FLAT_OUTER, {"in.x": 1, "in.y": 2, "in.z": "s", "in.t": Instant(9), "tags": ["a"]}),
            id="fields and a list",
        ),
        param(
            ".",
            Struct(OUTER, {"in": Struct.trusted(INNER, [1, None, None, None]), "tags": []}),
            Struct(FLAT_OUTER, {"in.x": 1, "in.y": 4, "in.z": "zz", "tags": []}),
            id="defaults for nulls",
        ),
        param(
            "_",
            Struct(LOOSE, {"in": None, "a.b": "x"}),
            Struct(FLAT_LOOSE, {"a.b": "x"}),
            id="a null struct has no defaults",
        ),
        param(
            "_",
            Struct(LOOSE, {"in": Struct(MAYBE, {"x": 1, "y": 2}), "a.b": "x"}),
            Struct(FLAT_LOOSE, {"in_x": 1, "in_y": 2, "in_z": "zz", "a.b": "x"}),
            id="what is inside of an optional struct is optional",
        ),
        param(
            "",
            Struct(DEEP, {"a": Struct(DEEP["a"], {"b": Struct(DEEP["a"]["b"], {"c": 7})})}),
            Struct(flat(DEEP, abc=Schema.INT8), {"abc": 7}),
            id="an empty delimiter",
        ),
    ],
)
def test_structs(delimiter, before, after, spark_holder):
    check_transform(Flatten.Value.of(delimiter=delimiter), record(before, before.schema), record(after, after.schema), spark_holder)


CLASH = struct(**{"a": struct(b=Schema.INT32), "a.b": Schema.STRING})
WITH_MAP = struct(m=SchemaBuilder.map(Schema.STRING, Schema.INT32).build())


@pytest.mark.spark
@pytest.mark.parametrize(
    "before, schema, error",
    [
        param(Struct(CLASH, {"a": Struct(CLASH["a"], {"b": 1}), "a.b": "x"}), CLASH, SchemaBuilderError, id="two fields of one name"),
        param(Struct(WITH_MAP, {"m": {}}), WITH_MAP, DataError, id="a map"),
        param(Struct.trusted(OUTER, [Struct.trusted(INNER, [None] * 4), []]), OUTER, DataError, id="a null that is required"),
        param("text", Schema.STRING, DataError, id="a string"),
    ],
)
def test_what_cannot_be_flattened_is_an_error(before, schema, error, spark_holder):
    check_transform(Flatten.Value.of(), record(before, schema), error, spark_holder)


@pytest.mark.parametrize("schema", [None, OUTER])
def test_a_null_stays_as_it_is(schema):
    check_transform(Flatten.Value.of(), record(None, schema), record(None, schema))


def test_the_default_of_a_struct_gives_its_fields_theirs():
    given = Struct(INNER, {"x": 1, "y": 2})
    outer = struct(**{"in": INNER.with_(default=given)})
    made = Flatten.Value.of().apply(record(Struct.trusted(outer, [None]), outer))
    assert [field.schema.default for field in made.value_schema.fields] == [1, 4, "zz", None]
    assert made.value.values == [1, 2, "zz", None]


@pytest.mark.parametrize(
    "before, after",
    [
        param({"a": {"b": 1, "c": {"d": "x"}}, "e": None}, {"a.b": 1, "a.c.d": "x", "e": None}, id="nested maps"),
        param({"a": [1, {"b": 2}], "n": b"x", "i": Int8(1)}, {"a": [1, {"b": 2}], "n": b"x", "i": Int8(1)}, id="lists stay"),
        param({"a": {}, "b": {"c": {}}}, {}, id="empty maps vanish"),
        param({"a": {"b": 1}, "a.b": 2}, {"a.b": 2}, id="the later of two wins"),
        param({"": {"a": 1}}, {"a": 1}, id="an empty name"),
    ],
)
def test_maps(before, after):
    check_transform(Flatten.Value.of(), record(before), record(after))


@pytest.mark.parametrize("item", [decimal.Decimal(1), Instant(0), BigInt(1), Struct(struct(a=Schema.OPTIONAL_INT8))])
def test_without_a_schema_there_are_no_such_values(item):
    check_transform(Flatten.Value.of(), record({"a": {"b": item}}), DataError)


@pytest.mark.spark
def test_maps_of_one_shape(check_shape):
    inner = struct(x=Schema.FLOAT64, deep=struct(y=Schema.BOOLEAN))
    shape = struct(**{"s": Schema.STRING, "m": inner, "a.b": Schema.INT64, "tags": TAGS})
    values = [{"s": "a", "m": {"x": each, "deep": {"y": True}}, "a.b": 5, "tags": ["t"]} for each in (1.5, 2.5)]
    check_shape(Flatten.Value.of(delimiter="_"), values, shape)
