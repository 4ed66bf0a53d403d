"""Lists and maps that hold a null which their schema forbids."""

import pyarrow as pa
import pytest
from pytest import param

from standalone import Schema, SchemaBuilder
from standalone.data.arrow import arrow_type
from standalone.pipeline.columns.misfits import misfits_within

ITEM = SchemaBuilder.struct().field("a", Schema.INT32).field("b", Schema.OPTIONAL_STRING).build()
WITH_DEFAULT = SchemaBuilder.struct().field("a", SchemaBuilder("int32").default(7).build()).build()


def list_of(schema, **more):
    made = SchemaBuilder.array(schema)
    return made.optional().build() if more.get("optional") else made.build()


@pytest.mark.parametrize(
    "schema, values, wrong",
    [
        param(list_of(Schema.INT32), [[1, 2], [1, None], [], [None]], [1, 3], id="a null among required items"),
        param(list_of(Schema.OPTIONAL_INT32), [[1, None]], [], id="a null among optional ones"),
        param(list_of(Schema.INT32, optional=True), [None, [1], [None]], [2], id="a list that is null holds none"),
        param(list_of(list_of(Schema.STRING)), [[["a"], []], [["a", None]], [None], []], [1, 2], id="a list in a list"),
        param(list_of(ITEM), [[{"a": 1, "b": None}], [{"a": None, "b": "x"}], [None]], [1, 2], id="a struct in a list"),
        param(list_of(WITH_DEFAULT), [[{"a": None}]], [], id="a null that has a default"),
        param(SchemaBuilder.map(Schema.STRING, Schema.INT32).build(), [[("a", 1)], [("a", None), ("b", 1)], []], [1], id="a value of a map"),
        param(SchemaBuilder.map(Schema.STRING, list_of(Schema.INT32)).build(), [[("a", [1])], [("a", [1, None])]], [1], id="a list in a map"),
    ],
)
@pytest.mark.parametrize("before", [0, 2], ids=["as it is", "cut out of a longer one"])
def test_where_a_null_must_not_be(schema, values, wrong, before):
    array = pa.array(values[:1] * before + values, arrow_type(schema))[before:]
    assert misfits_within(array, schema).nonzero()[0].tolist() == wrong
