"""ExtractNewRecordState takes rows out of envelopes."""

import pytest

from connectors.postgres_cdc.extract_new_record_state import ExtractNewRecordState
from connectors.postgres_cdc.pgoutput import Relation
from connectors.postgres_cdc.shapes import BLOCK, SOURCE, Shape, struct_of
from standalone import DataError, Header, Schema, SourceRecord, Struct
from standalone.plugins import Plugins

ROW = struct_of("p.public.t.Value", ("id", Schema.INT32), ("v", Schema("string", True, "standard")), optional=True)
ENVELOPE = struct_of("p.public.t.Envelope", ("before", ROW), ("after", ROW), ("source", SOURCE), ("transaction", BLOCK), ("op", Schema.STRING), version=2)


def row(*values):
    return Struct.trusted(ROW, list(values)) if values else None


def change(operation, before, after):
    source = Struct.trusted(SOURCE, ["1", "postgresql", "p", 5, "false", "d", None, 5000, 5000000, "public", "t", 3, 77, None])
    value = Struct.trusted(ENVELOPE, [before, after, source, Struct.trusted(BLOCK, ["3:80", 2, 1]), operation])
    return SourceRecord("p.public.t", value, {}, {}, value_schema=ENVELOPE, key_schema=Schema.INT32, key=1)


TOMBSTONE = SourceRecord("p.public.t", None, {}, {}, key_schema=Schema.INT32, key=1)
INSERTED, DELETED, TRUNCATED = change("c", None, row(1, "a")), change("d", row(1, "a"), None), change("t", None, None)


def told(record, **props):
    made = ExtractNewRecordState.of({name.replace("_", "."): value for name, value in props.items()}).apply(record)
    return made if made is None or made.value is None else made.value.to_dict()


@pytest.mark.parametrize(
    "mode, inserted, deleted, tombstone",
    [
        ("drop", {"id": 1, "v": "a"}, None, None),
        ("tombstone", {"id": 1, "v": "a"}, None, TOMBSTONE),
        ("rewrite", {"id": 1, "v": "a", "__deleted": "false"}, {"id": 1, "v": "a", "__deleted": "true"}, None),
        ("rewrite-with-tombstone", {"id": 1, "v": "a", "__deleted": "false"}, {"id": 1, "v": "a", "__deleted": "true"}, TOMBSTONE),
        ("delete-to-tombstone", {"id": 1, "v": "a"}, TOMBSTONE, None),
    ],
)
def test_what_becomes_of_deletions(mode, inserted, deleted, tombstone):
    props = {"delete_tombstone_handling_mode": mode}
    assert [told(each, **props) for each in (INSERTED, DELETED, TOMBSTONE)] == [inserted, deleted, tombstone]
    assert told(TRUNCATED, **props) is None


def test_fields_and_headers_are_added():
    transform = ExtractNewRecordState.of({"add.fields": "op,source.lsn,table,id:tx", "add.headers": "ts_ms:at,source.db", "add.headers.prefix": "h."})
    with pytest.raises(DataError, match="ts_ms"):
        transform.apply(INSERTED)  # this envelope has none
    transform = ExtractNewRecordState.of({"add.fields": "op,source.lsn,table,id:tx", "add.headers": "source.db", "add.headers.prefix": "h."})
    made = transform.apply(INSERTED)
    assert made.value.to_dict() == {"id": 1, "v": "a", "__op": "c", "__source_lsn": 77, "__table": "t", "__tx": "3:80"}
    assert made.headers == (Header("h.source_db", "d", Schema.OPTIONAL_STRING),) and made.value_schema.name == "p.public.t.Value"
    made.value.validate()


@pytest.mark.parametrize("replaces, expected", [("true", "standard"), ("false", None)])
def test_a_null_with_a_default(replaces, expected):
    made = ExtractNewRecordState.of({"replace.null.with.default": replaces}).apply(change("u", None, row(1, None)))
    assert made.value.stored("v") == expected


def test_a_record_is_routed_by_a_field():
    transform = ExtractNewRecordState.of({"route.by.field": "v"})
    assert transform.apply(INSERTED).topic == "a"
    with pytest.raises(DataError, match="route.by.field"):
        ExtractNewRecordState.of({"route.by.field": "nope"}).apply(INSERTED)


def test_other_records_pass():
    other = SourceRecord("t", {"a": 1}, {}, {})
    assert ExtractNewRecordState.of({}).apply(other) is other


def test_debeziums_name_is_ours():
    assert Plugins().find("transform", "io.debezium.transforms.ExtractNewRecordState") is ExtractNewRecordState


def test_the_envelopes_of_the_source_are_taken():
    shape = Shape(Relation(1, "public", "t", "d", ()), "p.public.t", [], [], str)
    assert shape.envelope.name.endswith(".Envelope") and [each.name for each in shape.envelope.fields][:5] == [each.name for each in ENVELOPE.fields]
