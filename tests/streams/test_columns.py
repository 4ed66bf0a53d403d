"""Records as columns of a DataFrame: what kernels make of many is what Python makes of each."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from standalone import ByteColumn, kernels
from standalone.converters.json import JsonConverter
from standalone.converters.numbers import IntegerConverter, LongConverter
from standalone.converters.string import StringConverter
from standalone.errors import DataError
from standalone.streams.columns import Decoder
from standalone.streams.parts import FEWEST
from standalone.wire import Records

COUNT = FEWEST + 50
STRING, LONG, INT, TIME = t.StringType(), t.LongType(), t.IntegerType(), t.TimestampType()
COLUMNS = {
    "_key": STRING, "n": LONG, "i": INT, "s": STRING, "f": t.DoubleType(), "g": t.FloatType(), "b": t.BooleanType(), "at": TIME,
    "x": t.StructType([t.StructField("a", INT)]), "y": t.ArrayType(STRING), "none": STRING, "w": t.BinaryType(),
    "_offset": LONG, "_timestamp": TIME, "_tombstone": t.BooleanType(), "_topic": STRING, "_partition": INT,
}  # fmt: skip
PLAIN = {"schemas.enable": "false"}

longs, texts = st.integers(-(2**40), 2**40), st.text(max_size=5)
usual = st.fixed_dictionaries({
    "n": longs, "I": st.integers(-100, 100), "s": texts, "f": st.floats(allow_nan=False, allow_infinity=False), "b": st.booleans(),
    "at": st.integers(0, 2**40), "x": st.fixed_dictionaries({"a": st.integers(0, 9)}), "y": st.lists(texts, max_size=2), "w": texts,
})  # fmt: skip
values = st.one_of(st.none(), st.booleans(), longs, st.integers(2**60, 2**70), st.floats(), texts, st.lists(longs, max_size=2))
odd = st.one_of(
    st.dictionaries(st.sampled_from(["n", "N", "i", "s", "f", "g", "b", "at", "x", "y", "w"]), values), values, st.just(b"{"), st.just(None)
)


def _bytes(each):
    return each if each is None or isinstance(each, bytes) else json.dumps(each).encode("utf-8", "replace")


def _records(keys, datas):
    keys, datas = (None if each is None else ByteColumn.of(each) for each in (keys, datas))
    at = np.arange(COUNT)
    return Records(COUNT, keys, datas, 1_700_000_000_000 + at, None, at + 7)


def _decoder(columns, key=None, value=None, **how):
    schema = t.StructType([t.StructField(name, kind) for name, kind in columns.items()])
    return Decoder(schema, key or StringConverter.of(is_key=True), value or JsonConverter.of(PLAIN), **how)


def _one_by_one(decoder, records):
    """The same in pieces that are too small for the kernels."""
    parts = [decoder.batch("t", 3, records.slice(at, at + 50)) for at in range(0, len(records), 50)]
    return pa.Table.from_batches(parts).combine_chunks()


def _same(columns, records, **how):
    assert kernels.ready()
    few = _one_by_one(_decoder(columns, **how), records)
    many = pa.Table.from_batches([_decoder(columns, **how).batch("t", 3, records)])
    assert many.schema == few.schema
    for name in few.column_names:
        assert _shown(many.column(name)) == _shown(few.column(name)), name
    return many


def _shown(column):
    """Its values, as text, since NaN is not itself; times as numbers, for Python's end with the year 9999."""
    return repr((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())


@settings(max_examples=30)
@given(st.lists(usual, min_size=1, max_size=8), st.lists(odd, max_size=6), st.randoms(use_true_random=False))
def test_many_records_are_read_as_each_is(rows, odd_ones, chance):
    datas = [chance.choice(rows) for _ in range(COUNT)]
    for each in odd_ones:
        datas[chance.randrange(COUNT)] = each
    keys = [chance.choice([b"a", None, "é".encode(), b"\xff"]) for _ in range(COUNT)]
    _same(COLUMNS, _records(keys, [_bytes(each) for each in datas]), skips=True)


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=9), min_size=1, max_size=5), st.sampled_from([STRING, t.BinaryType(), LONG, TIME]))
def test_values_that_are_text_are_read_as_each_is(datas, kind):
    _same({"_value": kind, "_offset": LONG}, _records(None, (datas * COUNT)[:COUNT]), value=StringConverter.of(), skips=True)


@pytest.mark.parametrize("kind", [LONG, INT, t.DoubleType(), t.FloatType(), TIME, STRING], ids=lambda kind: kind.simpleString())
@pytest.mark.parametrize("converter, sizes", [(LongConverter, 8), (IntegerConverter, 4)])
def test_numbers_are_read_as_each_is(converter, sizes, kind):
    numbers = [None if number % 7 == 0 else (number * 12_345_678_901 % (1 << 8 * sizes - 1)).to_bytes(sizes, "big") for number in range(COUNT)]
    numbers[5] = b"x"
    _same({"_value": kind, "_offset": LONG}, _records(None, numbers), value=converter.of(), skips=True)


def test_an_envelope_s_fields_are_columns():
    fields = [{"field": "n", "type": "int64", "optional": True}, {"field": "s", "type": "string"}]
    fields.append({"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"})
    schema = {"type": "struct", "fields": fields}
    rows = [{"schema": schema, "payload": {"n": None if n % 5 == 0 else n, "s": f"é{n}", "at": 1_700_000_000_000 + n}} for n in range(COUNT)]
    found = _same({"N": INT, "s": STRING, "at": TIME, "x": STRING}, _records(None, [_bytes(row) for row in rows]), value=JsonConverter.of())
    assert found.column("N").to_pylist()[4:7] == [4, None, 6] and found.column("s")[3].as_py() == "é3" and found.column("x").null_count == COUNT


def test_the_record_that_will_not_do_is_named_among_many():
    datas = [b'{"n": 1}'] * COUNT
    datas[211] = b'{"n": "one"}'
    with pytest.raises(DataError, match="The column 'n' of t-3 at offset 218"):
        _decoder({"n": INT}).batch("t", 3, _records(None, datas))
    datas[211] = b"{"
    with pytest.raises(DataError, match="The value of t-3 at offset 218"):
        _decoder({"n": INT}).batch("t", 3, _records(None, datas))
