"""The ends of a chain: messages of an unusual writing stay in their batch's columns, errors and other schemas leave it."""

import pytest
from pytest import param

from standalone import ByteColumn, Schema
from standalone.converters.json import JsonConverter
from standalone.converters.numbers import IntegerConverter
from standalone.data.column import values_of
from standalone.pipeline.conversion import decoded


def envelope(schema, payload):
    return f'{{"schema":{schema},"payload":{payload}}}'.encode()


INT, TEXT = '{"type":"int32"}', '{"type":"string","optional":true}'
PLACE = '{"type":"struct","fields":[{"field":"at","type":"int32"},{"field":"name","type":"string","optional":true}]}'


@pytest.mark.parametrize(
    "messages, values, left",
    [
        param([envelope(INT, 1), envelope(INT, 2.5), envelope(INT, 3)], [1, 2, 3], [], id="a fraction for an int is cut"),
        param([envelope(TEXT, '"a"'), envelope(TEXT, 7), b'{"payload":"b","schema":%s}' % TEXT.encode()], ["a", None, "b"], [], id="texts"),
        param([envelope(INT, 1), envelope(INT, "{"), envelope(INT, 2.5)], [1, None, 2], [1], id="an error is left"),
        param([envelope(INT, 1), envelope(TEXT, '"a"')], [1, None], [1], id="another schema is left"),
        param([envelope(INT, 1), None], [1, None], [1], id="so is not a message at all"),
    ],
)
def test_few_messages_of_an_unusual_writing_are_mended(messages, values, left):
    column = ByteColumn.of(messages)
    schema, read, bad = decoded(JsonConverter.of(), "t", column, len(column))
    assert bad.tolist() == left
    found = values_of(read, schema, len(column))
    assert [value for row, value in enumerate(found) if row not in left] == [value for row, value in enumerate(values) if row not in left]


def test_structs_are_mended_field_by_field():
    column = ByteColumn.of([envelope(PLACE, '{"at":1,"name":"a"}'), envelope(PLACE, '{"name":"b","at":2}'), envelope(PLACE, '{"at":true,"name":null}')])
    schema, read, bad = decoded(JsonConverter.of(), "t", column, 3)
    assert not len(bad) and schema["at"] == Schema.INT32
    assert [value.to_dict() for value in values_of(read, schema, 3)] == [{"at": 1, "name": "a"}, {"at": 2, "name": "b"}, {"at": 0, "name": None}]


def test_nothing_is_mended_where_all_is_well_or_nothing_can_be():
    _, read, bad = decoded(IntegerConverter.of(), "t", ByteColumn.of([b"\0\0\0\1", b"\0", None]), 3)
    assert bad.tolist() == [1] and read.to_pylist()[::2] == [1, None]
