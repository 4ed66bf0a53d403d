"""Each kind of column does what a list of its values does."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from pytest import param

from standalone import ByteColumn, Schema, SchemaBuilder, Struct
from standalone.data import column
from standalone.data.arrow import NotColumns
from standalone.data.struct_column import Shaped, StructColumn

POINT = SchemaBuilder.struct().field("x", Schema.OPTIONAL_INT32).field("name", Schema.OPTIONAL_STRING).build()
NAMES = ["a", None, "é😀", ""]
NUMBERS = [1, None, -3, 4]
STRUCTS = [Struct.trusted(POINT, [number, name]) for number, name in zip(NUMBERS, NAMES)]
TEXTS = ByteColumn.of([None if name is None else name.encode() for name in NAMES])
POINTS = StructColumn(POINT, [pa.array(NUMBERS, pa.int32()), TEXTS], 4)
SHAPE = SchemaBuilder.struct().field("n", Schema.INT64).build()

KINDS = {
    "nulls": (None, Schema.OPTIONAL_STRING, [None] * 4),
    "a byte column of texts": (TEXTS, Schema.OPTIONAL_STRING, NAMES),
    "a byte column of bytes": (ByteColumn.of([b"", b"\xff", None, b"x"]), Schema.OPTIONAL_BYTES, [b"", b"\xff", None, b"x"]),
    "an Arrow array": (pa.array(NUMBERS, pa.int32()), Schema.OPTIONAL_INT32, NUMBERS),
    "a chunked array": (pa.chunked_array([NUMBERS[:1], NUMBERS[1:]], pa.int32()), Schema.OPTIONAL_INT32, NUMBERS),
    "structs split": (POINTS, POINT, STRUCTS),
    "structs in Arrow": (column.to_arrow(POINTS, POINT), POINT, STRUCTS),
    "values of one shape": (Shaped(SHAPE, StructColumn(SHAPE, [pa.array([1, 2, 3, 4])], 4)), None, [{"n": n} for n in (1, 2, 3, 4)]),
    "a list": (list(NAMES), Schema.OPTIONAL_STRING, NAMES),
}
EVERY = [param(*given, id=name) for name, given in KINDS.items()]


@pytest.mark.parametrize("given, schema, values", EVERY)
def test_its_rows(given, schema, values):
    assert column.values_of(given, schema, 4) == values
    rows = np.array([3, 0, 0])
    assert column.values_of(column.take(given, rows), schema, 3) == [values[row] for row in rows]
    for low, high in itertools.combinations(range(5), 2):
        for part in (column.cut(given, low, high), column.compact(given, low, high)):
            assert column.values_of(part, schema, high - low) == values[low:high]


@pytest.mark.parametrize("given, schema, values", EVERY)
def test_its_nulls(given, schema, values):
    if given is None or isinstance(given, (list, Shaped)):
        return
    assert column.nulls_of(given).tolist() == [value is None for value in values]
    assert column.null_count(given) == values.count(None)


@pytest.mark.parametrize("given, schema, values", EVERY)
def test_as_columns(given, schema, values):
    bare, known = column.unshaped(given, schema)
    array = column.to_arrow(column.columnar(bare, known, 4), known, 4)
    assert isinstance(array, pa.Array) and len(array) == 4
    assert column.values_of(array, known, 4) == column.values_of(bare, known, 4)
    assert column.is_stored_as(bare, known) is (bare is not None and not isinstance(bare, list))
    assert (column.shape_of(given) is None) == (schema is not None)


@pytest.mark.parametrize("given, schema, values", EVERY)
def test_several_are_one_behind_the_other(given, schema, values):
    joined = column.concat([given, given], schema, [4, 4])
    assert column.values_of(joined, schema, 8) == values * 2
    assert (given is None) == (joined is None)
    if schema is not None and given is not None:  # what rows did again, after what columns did
        mixed = column.concat([given, list(values[:2])], schema, [4, 2])
        assert column.values_of(mixed, schema, 6) == values + values[:2]
        assert isinstance(mixed, list) == isinstance(given, list)


def test_what_does_not_fit_behind_a_column_makes_a_list_of_it():
    assert column.concat([TEXTS, [1]], Schema.OPTIONAL_STRING, [4, 1]) == [*NAMES, 1]
    assert column.concat([None, ["a"]], None, [1, 1]) == [None, "a"]
    with pytest.raises(NotColumns, match="int is not a string"):
        column.columnar([1], Schema.STRING, 1)


def test_bytes_that_are_no_text_are_mended_and_those_of_another_type_refused():
    repaired = column.columnar(ByteColumn.of([b"a", b"\xff"]), Schema.STRING, 2)
    assert column.values_of(repaired, Schema.STRING, 2) == ["a", "\ufffd"]
    with pytest.raises(NotColumns):
        column.columnar(TEXTS, Schema.INT32, 4)


def test_their_size():
    assert column.nbytes(None) == column.nbytes(["a"]) == 0
    assert column.nbytes(TEXTS) == 7 and column.nbytes(POINTS) == 7 + POINTS.parts[0].nbytes
    assert column.nbytes(KINDS["values of one shape"][0]) == 32


def test_one_value_for_all_rows_stays_what_it_is():
    assert column.take("topic", np.array([1])) == column.cut("topic", 0, 1) == "topic"
    assert column.folded(["a", "a"]) == "a" and column.folded(["a", "b"]) == ["a", "b"]
    assert column.concat_spread(["a", "a"], [2, 1]) == "a" and column.concat_spread(["a", ["b"], None], [2, 1, 1]) == ["a", "a", "b", None]
    assert column.concat_longs([None, None], [1, 2], -1) is None
    assert column.concat_longs([None, np.array([7])], [2, 1], -1).tolist() == [-1, -1, 7]
    assert column.concat_headers([None, [("h",)]], [2, 1]) == [(), (), ("h",)]
