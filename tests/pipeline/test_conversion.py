"""Conversion: headers between bytes and columns, and whether the bytes may go straight through."""

import numpy as np
import pytest

from standalone.converters.byte_array import ByteArrayConverter
from standalone.converters.json import JsonConverter
from standalone.converters.simple_header import SimpleHeaderConverter
from standalone.converters.string import StringConverter
from standalone.pipeline.chain import Chain
from standalone.pipeline.conversion import Conversion
from standalone.pipeline.rows.engine import RowsEngine
from standalone.wire import ByteColumn, Records

STRINGS, BYTES, JSON = StringConverter, ByteArrayConverter, JsonConverter


def conversion(kind, key, value):
    chain = Chain(kind, key.of(is_key=True), value.of(), SimpleHeaderConverter.of(), [])
    return Conversion(chain, RowsEngine(chain))


@pytest.mark.parametrize(
    "kind, key, value, may",
    [
        ("source", STRINGS, STRINGS, True),
        ("source", STRINGS, BYTES, True),
        ("sink", BYTES, BYTES, True),
        ("sink", STRINGS, STRINGS, True),
        ("sink", STRINGS, JSON, False),
        ("sink", JSON, STRINGS, False),
        ("source", STRINGS, JSON, False),
        ("source", JSON, STRINGS, False),
    ],
)
def test_bytes_go_straight_through_where_both_converters_leave_them(kind, key, value, may):
    assert conversion(kind, key, value).hand_bytes_through(kind) is may


class OneWay(ByteArrayConverter):
    """Leaves the bytes as they are when it reads, and marks them when it writes."""

    def encode(self, topic, schema, column, count):
        found = super().encode(topic, schema, column, count)
        return found and (ByteColumn.of([b"!" + each for each in found[0]]), found[1])


@pytest.mark.parametrize("kind, may", [("sink", True), ("source", False)])
def test_what_counts_is_the_way_that_the_records_go(kind, may):
    assert conversion(kind, OneWay, OneWay).hand_bytes_through(kind) is may


def test_a_record_without_headers_among_others_has_none():
    values = ByteColumn.of([b"a", b"b", b"c"])
    records = Records(3, values=values, headers=[[("h", b"1")], None, []], offsets=np.arange(3))
    batch, numbers, bad = conversion("sink", STRINGS, STRINGS).decode("t", 0, records)
    assert numbers is None and not len(bad)
    assert [[(header.name, header.value) for header in each] for each in batch.headers] == [[("h", 1)], [], []]


def test_bad_keys_bad_values_and_their_union_leave_the_batch():
    keys = ByteColumn.of([b"1", b"{", b"3", b"{"])
    values = ByteColumn.of([b"1", b"2", b"{", b"{"])
    chain = Chain("sink", JSON.of({"schemas.enable": "false"}, is_key=True), JSON.of({"schemas.enable": "false"}), SimpleHeaderConverter.of(), [])
    batch, numbers, bad = Conversion(chain, RowsEngine(chain)).decode("t", 0, Records(4, keys, values, offsets=np.arange(4)))
    assert numbers.tolist() == [0] and bad.tolist() == [1, 2, 3] and batch.count == 1
