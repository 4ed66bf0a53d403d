"""Records, structs and schemas: copies have all that there was, checked values fit, and what is pickled is the same again."""

import pickle

import pytest

from standalone import DataError, Header, Instant, Int32, Schema, SchemaBuilder, SinkRecord, SourceRecord, Struct, timestamp_schema

SHARED = {
    "partition": 3,
    "key_schema": Schema.INT32,
    "key": 7,
    "value_schema": Schema.STRING,
    "value": "v",
    "timestamp": 1234,
    "headers": (Header("h", 1, Schema.INT8),),
}
RECORDS = [
    SourceRecord("t", source_partition={"file": "a"}, source_offset={"at": 9}, **SHARED),
    SinkRecord("t", offset=11, timestamp_type="LogAppendTime", original=("o", 1, 12), **SHARED),
]
EVENT = SchemaBuilder.struct().field("name", Schema.STRING).field("n", Schema.OPTIONAL_INT32).field("at", timestamp_schema(optional=True)).build()


def attributes(record):
    return {name: getattr(record, name) for name in record._names()}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
@pytest.mark.parametrize(
    "change, changed",
    [
        (lambda record: record.with_key(Schema.STRING, "k"), {"key_schema": Schema.STRING, "key": "k"}),
        (lambda record: record.with_value(None, {}), {"value_schema": None, "value": {}}),
        (lambda record: record.with_(topic="u", timestamp=None), {"topic": "u", "timestamp": None}),
    ],
    ids=["with_key", "with_value", "with_"],
)
def test_a_copy_differs_in_what_was_asked_for_only(record, change, changed):
    before = attributes(record)
    assert None not in before.values()  # so that an attribute that a copy forgets shows
    copy = change(record)
    assert type(copy) is type(record)
    assert attributes(copy) == before | changed
    assert attributes(record) == before


def test_values_of_a_struct_are_checked_as_put_checks_them():
    made = Struct.of_values(EVENT, ["a", Int32(1), Instant(5).to_datetime()])
    assert made == Struct(EVENT).put("name", "a").put("n", 1).put("at", Instant(5))
    for values in ([None, 1, None], [1, 1, None], ["a", 1 << 31, None], ["a", True, None], ["a", 1, 5]):
        with pytest.raises(DataError, match="Field '(name|n|at)'"):
            Struct.of_values(EVENT, values)


def test_a_pickled_schema_equals_itself_and_is_hashed_anew():
    schema = EVENT.with_(name="Event", version=2, doc="d", parameters={"a": "b"}, default=None)
    hash(schema)
    again = pickle.loads(pickle.dumps(schema))
    assert again._hash is None
    assert again == schema and hash(again) == hash(schema)
