"""Values to Arrow and back: nothing is lost, whatever the slice."""

import decimal

import pyarrow as pa
import pytest
from pytest import param

from standalone import Instant, Schema, SchemaBuilder, Struct, date_schema, decimal_schema
from standalone.data import arrow
from standalone.data.column import to_arrow

POINT = SchemaBuilder.struct().field("x", Schema.OPTIONAL_INT32).field("at", date_schema()).build()


@pytest.mark.parametrize(
    "schema, values",
    [
        param(Schema.OPTIONAL_INT8, [1, None, -128], id="numbers"),
        param(Schema.FLOAT64, [1.5, -0.0, float("inf")], id="doubles"),
        param(Schema.OPTIONAL_BOOLEAN, [True, None, False], id="booleans"),
        param(Schema.OPTIONAL_STRING, ["a", None, "é😀"], id="strings"),
        param(Schema.BYTES, [b"", b"\xff"], id="bytes"),
        param(decimal_schema(2), [decimal.Decimal("1.5"), decimal.Decimal(-(10**40)), decimal.Decimal("1E+3")], id="decimals keep their scale"),
        param(date_schema(optional=True), [Instant(-(10**15)), None], id="points in time beyond any calendar"),
        param(POINT.with_(optional=True), [Struct(POINT.with_(optional=True), {"at": Instant(0)}), None], id="structs"),
        param(SchemaBuilder.array(Schema.OPTIONAL_INT64).build(), [[1, None], [], [3]], id="lists"),
        param(SchemaBuilder.map(Schema.STRING, POINT).build(), [{"a": Struct(POINT, {"at": Instant(0)})}, {}], id="maps"),
        param(SchemaBuilder.struct().build(), [Struct(SchemaBuilder.struct().build())] * 2, id="structs without fields"),
    ],
)
def test_values_come_back(schema, values):
    array = to_arrow(values, schema)
    assert array.type == arrow.arrow_type(schema)
    assert arrow.from_arrow(array, schema) == values
    twice = pa.concat_arrays([array, array])
    for low in range(len(values)):
        assert arrow.from_arrow(twice.slice(low, len(values)), schema) == (values * 2)[low : low + len(values)]


@pytest.mark.parametrize(
    "schema, values",
    [
        param(SchemaBuilder.array(Schema.INT64).build(), [[1, 2], [3]], id="lists"),
        param(SchemaBuilder.map(Schema.STRING, Schema.INT64).build(), [{"a": 1, "b": 2}, {"c": 3}], id="maps"),
    ],
)
def test_of_a_slice_its_own_items_alone_are_read(schema, values, monkeypatch):
    array, read, from_arrow = to_arrow(values * 100, schema), [], arrow.from_arrow

    def noted(array, schema):
        read.append(len(array))
        return from_arrow(array, schema)

    monkeypatch.setattr(arrow, "from_arrow", noted)
    assert arrow.from_arrow(array.slice(50, 2), schema) == values
    assert max(read) == 3, "to read a batch part by part would else take the square of its rows"


def test_no_rows_and_only_nulls():
    assert to_arrow([], Schema.STRING).type == pa.string()
    assert arrow.from_arrow(to_arrow(None, POINT, 2), POINT) == [None, None]


@pytest.mark.parametrize("value", ["text", b"bytes", [1]])
def test_a_value_of_another_type_is_refused(value):
    with pytest.raises((ValueError, TypeError)):
        to_arrow([value], POINT)


@pytest.mark.parametrize("number, data", [(0, b"\0"), (127, b"\x7f"), (128, b"\0\x80"), (-128, b"\x80"), (-129, b"\xff\x7f")])
def test_whole_numbers_as_java_writes_them(number, data):
    assert arrow.int_bytes(number) == data
