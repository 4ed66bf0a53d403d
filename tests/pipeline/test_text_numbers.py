"""Numbers out of texts without Spark: those that are read are what Cast reads, all others are left to it, and plain ones are not."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pytest import param

from standalone import ByteColumn, DataError, Schema, SchemaBuilder, SourceRecord, Struct
from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.pipeline.text_numbers import numbers_of
from standalone.transforms.cast import Cast

KINDS = (s.INT8, s.INT16, s.INT32, s.INT64, s.FLOAT32, s.FLOAT64)
HOLDER = SchemaBuilder.struct().field("f", Schema.STRING).build()


def by_row(text, kind):
    """The number, or DataError."""
    record = SourceRecord("t", value_schema=HOLDER, value=Struct(HOLDER, {"f": text}))
    try:
        return Cast.Value.of({"spec": f"f:{kind}"}).apply(record).value["f"]
    except DataError:
        return DataError


def digits(low, high):
    return st.text("0123456789", min_size=low, max_size=high)


WRITTEN = (
    st.builds("{}{}".format, st.sampled_from(["", "-", "+"]), digits(0, 20))
    | st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), digits(0, 10), digits(0, 10))
    | st.text("0123456789-+. eEfFdDxNaInity", max_size=8)
    | st.text(max_size=4)
    | st.integers(-(1 << 64), 1 << 64).map(str)
    | st.floats().map(repr)
)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(texts=st.lists(st.none() | WRITTEN, min_size=1, max_size=8), as_arrow=st.booleans())
@example(texts=["0.1", "16777217", "9007199254740993", "0.30000000000000004"], as_arrow=False)  # digits that round
@example(texts=["١٢", "１２", "1_000", "0x10", "1f", "1d", "", " 1", "1 ", "-", ".", "-.5", "5.", "1.2.3"], as_arrow=False)
def test_what_is_read_is_what_cast_reads(kind, texts, as_arrow):
    data = [None if text is None else text.encode("utf-8", "replace") for text in texts]
    column = pa.array([None, *data], pa.binary()).cast(pa.string())[1:] if as_arrow else ByteColumn.of(data)
    numbers, left = numbers_of(column, kind)
    assert numbers.type == arrow_type(Schema(kind)) and len(numbers) == len(left) == len(texts)
    for text, number, is_left in zip([None if item is None else item.decode() for item in data], numbers.to_pylist(), left.tolist()):
        if text is None:
            assert number is None and not is_left
        elif not is_left:
            assert repr(type(number)(by_row(text, kind))) == repr(number), text


@pytest.mark.parametrize(
    "kind, text, number",
    [
        param(s.INT8, "-128", -128, id="the smallest byte"),
        param(s.INT16, "007", 7, id="zeros before it"),
        param(s.INT32, "-0", 0, id="zero has no sign"),
        param(s.INT64, "999999999999999999", 999_999_999_999_999_999, id="eighteen digits"),
        param(s.FLOAT64, "-0", -0.0, id="a float's zero has one"),
        param(s.FLOAT64, "00.25", 0.25, id="a fraction"),
        param(s.FLOAT32, "8080", 8080.0, id="a whole number"),
        param(s.INT32, None, None, id="null"),
    ],
)
def test_what_is_written_plainly_is_read_here(kind, text, number):
    numbers, left = numbers_of(ByteColumn.of([text and text.encode()]), kind)
    assert not left.any() and repr(numbers.to_pylist()) == repr([number])


@pytest.mark.parametrize(
    "kind, text",
    [
        param(s.INT8, "128", id="too large"),
        param(s.INT64, "9223372036854775807", id="more digits than surely fit"),
        param(s.INT32, "+5", id="a plus"),
        param(s.INT32, "1.5", id="a fraction where there is none"),
        param(s.FLOAT64, "1e3", id="an exponent"),
        param(s.FLOAT64, "NaN", id="a word"),
        param(s.FLOAT64, ".5", id="a point without digits before it"),
        param(s.FLOAT64, "5.", id="nor behind it"),
        param(s.INT32, "", id="nothing"),
        param(s.INT32, "-", id="a sign alone"),
        param(s.INT32, "x" * 40, id="a text"),
    ],
)
def test_what_is_not_is_left_to_the_rows_engine(kind, text):
    numbers, left = numbers_of(ByteColumn.of([b"1", text.encode(), None]), kind)
    assert left.tolist() == [False, True, False] and numbers.to_pylist() == [1, None, None]


def test_texts_may_overlap_and_leave_gaps():
    data = np.frombuffer(b"x12345y", np.uint8)
    column = ByteColumn(data, np.array([1, 3, 1, 5]), np.array([2, 3, 5, -1], np.int32))
    numbers, left = numbers_of(column, s.INT32)
    assert numbers.to_pylist() == [12, 345, 12345, None] and not left.any()
