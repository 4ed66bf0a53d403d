"""StringConverter, ByteArrayConverter and SimpleHeaderConverter: what the golden cases leave out."""

import numpy as np
import pyarrow as pa
import pytest
from pytest import param

from standalone import ByteColumn, DataError, Float32, Instant, Schema, SchemaBuilder, SerializationError, timestamp_schema
from standalone.converters.byte_array import ByteArrayConverter
from standalone.converters.simple_header import SimpleHeaderConverter
from standalone.converters.string import StringConverter
from standalone.testing import check_converter


@pytest.mark.parametrize(
    "schema, value, data",
    [
        param(Schema.STRING, "café", "café".encode(), id="a string"),
        param(Schema.OPTIONAL_INT8, -3, b"-3", id="a number"),
        param(Schema.INT64, -(1 << 63), b"-9223372036854775808", id="the smallest number"),
        param(Schema.FLOAT32, Float32(1.5), b"1.5", id="a float"),
        param(Schema.FLOAT64, 1e-7, b"1.0E-7", id="a double"),
        param(Schema.BOOLEAN, False, b"false", id="a boolean"),
        param(Schema.BYTES, b"\xff\x00", b"\xff\x00", id="bytes as they are"),
    ],
)
def test_text_of_a_value(schema, value, data):
    check_converter(StringConverter.of(), schema, value, data, read=(Schema.OPTIONAL_STRING, data.decode("utf-8", "replace")))


def test_what_has_no_kernel_is_written_one_by_one():
    schema = SchemaBuilder.array(Schema.INT32).build()
    check_converter(StringConverter.of(), schema, [1, 2], b"[1, 2]", read=(Schema.OPTIONAL_STRING, "[1, 2]"))
    text = b"Thu Jan 01 00:00:00 UTC 1970"
    check_converter(StringConverter.of(), timestamp_schema(), Instant(0), text, (Schema.OPTIONAL_STRING, text.decode()))


def test_bytes_are_handed_through_without_a_copy():
    column = ByteColumn.of([b"a", None, b"\xff"])
    for converter, written, read in (
        (StringConverter.of(), Schema.STRING, Schema.OPTIONAL_STRING),
        (ByteArrayConverter.of(), Schema.BYTES, Schema.OPTIONAL_BYTES),
    ):
        assert converter.encode("t", written, column, 3)[0] is column
        assert converter.decode("t", column) == (read, column, None)


def test_nulls_among_numbers_stay_nulls():
    found, bad = StringConverter.of().encode("t", Schema.OPTIONAL_INT32, pa.array([1, None, 3], pa.int32()), 3)
    assert bad is None and list(found) == [b"1", None, b"3"]


def test_a_slice_of_a_column_is_written_from_where_it_begins():
    for array in (pa.array(range(10), pa.int32()), pa.array(np.arange(10) / 2), pa.array([n % 3 == 0 for n in range(10)])):
        kind = {pa.int32(): Schema.INT32, pa.float64(): Schema.FLOAT64, pa.bool_(): Schema.BOOLEAN}[array.type]
        found, _ = StringConverter.of().encode("t", kind, array.slice(3, 4), 4)
        rows = [StringConverter.of().from_connect("t", kind, value) for value in array.slice(3, 4).to_pylist()]
        assert list(found) == rows


@pytest.mark.parametrize("name", ["latin-1", "ISO-8859-1", "utf8", "UTF-16LE"])
def test_a_character_set_is_written_and_read_in_columns_as_by_rows(name):
    converter = StringConverter.of({"converter.encoding": name})
    data = converter.from_connect("t", Schema.STRING, "café")
    assert converter.to_connect("t", data) == (Schema.OPTIONAL_STRING, "café")
    check_converter(converter, Schema.STRING, "café", data, (Schema.OPTIONAL_STRING, "café"))


@pytest.mark.parametrize("name", ["hex", "rot13", "", "no-such-set"])
def test_a_name_that_is_no_character_set_is_refused(name):
    with pytest.raises(SerializationError, match="converter.encoding"):
        StringConverter.of({"converter.encoding": name})


def test_bytes_under_another_schema_are_refused():
    check_converter(ByteArrayConverter.of(), Schema.STRING, "x", DataError)


def test_headers_read_back_as_the_smallest_type():
    converter = SimpleHeaderConverter.of()
    assert converter.to_header("t", "h", converter.from_header("t", "h", Schema.INT64, 300)) == (Schema.INT16, 300)
    assert converter.to_header("t", "h", b"null") is None and converter.from_header("t", "h", None, None) is None
