"""Bytes that are not UTF-8, as Java fixes them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standalone.data import utf8
from standalone.data.utf8_column import malformed, repair
from standalone.wire import ByteColumn

BYTES = st.binary(max_size=6) | st.lists(st.sampled_from([0x41, 0x80, 0xBF, 0xC2, 0xE0, 0xA0, 0xED, 0xEF, 0xF0, 0x90, 0xF4, 0x8F, 0xC0, 0xFF])).map(bytes)


@pytest.mark.parametrize(
    "data, text",
    [
        (b"caf\xc3\xa9", "café"),
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd"),  # an encoded surrogate: one fault to Java, three to Python
        (b"\xed\xa0", "\ufffd"),
        (b"\xe0\x80\x80", "\ufffd\ufffd\ufffd"),
        (b"\xf0\x90\x80", "\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
    ],
)
def test_decode(data, text):
    assert utf8.decode(data) == text


def test_half_a_pair_is_written_as_a_question_mark():
    assert utf8.encode("a\ud83d") == b"a?"


@settings(deadline=None, max_examples=300)
@given(st.lists(BYTES | st.none() | st.text().map(str.encode)))
def test_a_column_is_mended_as_its_items_are(items):
    column = ByteColumn.of(items)
    assert list(repair(column)) == [None if item is None else utf8.encode(utf8.decode(item)) for item in items]
    assert malformed(column).tolist() == [row for row, item in enumerate(items) if item is not None and utf8.encode(utf8.decode(item)) != item]


def test_a_column_that_is_right_is_not_touched():
    column = ByteColumn.of(["é".encode(), None, b""])
    assert repair(column) is column
