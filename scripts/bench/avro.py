#!/usr/bin/env python3
"""AvroConverter's columns beside fastavro, record by record, and ProtobufConverter's beside the protobuf package: records a second, and how many
times as many, in one run.

    scripts/bench/avro.py [--records 200000]

One thread. fastavro reads each message to a dict and writes each dict, protobuf parses each to a message, looks at each field of it, and writes a
message made of such fields; the converters read the messages to columns and write columns.
"""

import argparse
import io
import json
import pathlib
import sys
import time

import fastavro

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from standalone import ByteColumn, kernels, warm_up  # noqa: E402
from standalone.converters.avro.converter import AvroConverter  # noqa: E402
from standalone.converters.protobuf.converter import ProtobufConverter  # noqa: E402
from standalone.converters.protobuf.files import ProtoFile  # noqa: E402
from standalone.schema_registry.client import RegistrySchema  # noqa: E402

REPEATS = 5


def _record(name, fields):
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


FLAT = _record(
    "Flat",
    [
        *(("id", "long"), ("host", "string"), ("level", ["null", "string"]), ("code", "int"), ("size", "long"), ("took", "double")),
        *(("ok", "boolean"), ("path", "string"), ("agent", ["null", "string"]), ("at", {"type": "long", "logicalType": "timestamp-millis"})),
        *(("day", {"type": "int", "logicalType": "date"}), ("ratio", "float")),
    ],
)
NESTED = _record(
    "Nested",
    [
        ("id", "long"),
        ("who", ["null", _record("Who", [("name", "string"), ("age", ["null", "int"])])]),
        ("lines", {"type": "array", "items": _record("Line", [("sku", "string"), ("count", "int"), ("price", "double")])}),
        ("tags", {"type": "map", "values": "string"}),
    ],
)


FLAT_PROTO = """syntax = "proto3";
message Flat {
  int64 id = 1; string host = 2; optional string level = 3; int32 code = 4; int64 size = 5; double took = 6; bool ok = 7; string path = 8;
  optional string agent = 9; int64 at = 10; int32 day = 11; float ratio = 12;
}
"""
NESTED_PROTO = """syntax = "proto3";
message Nested {
  int64 id = 1; Who who = 2; repeated Line lines = 3; repeated TagsEntry tags = 4;
  message Who { string name = 1; optional int32 age = 2; }
  message Line { string sku = 1; int32 count = 2; double price = 3; }
  message TagsEntry { string key = 1; string value = 2; }
}
"""


def flat(at):
    return {
        **{"id": at, "host": f"host-{at % 97}", "level": None if at % 3 else "warn", "code": at % 600, "size": at * 37, "took": at / 7},
        **{"ok": at % 2 == 0, "path": f"/a/b/{at}", "agent": "curl", "at": 1_700_000_000_000 + at, "day": 19_000 + at % 9, "ratio": 0.5},
    }


def nested(at):
    return {
        "id": at,
        "who": None if at % 5 == 0 else {"name": f"n{at}", "age": at % 90},
        "lines": [{"sku": f"s{each}", "count": each, "price": each * 1.5} for each in range(at % 4)],
        "tags": {"a": "x", "b": f"{at}"},
    }


class _Registry:
    """The one schema."""

    def __init__(self, text, kind="AVRO"):
        self._schema = RegistrySchema(text, kind)

    def schema_by_id(self, id, subject=None):
        return self._schema

    def lookup(self, subject, schema, normalize=False):
        return {"id": 1, "version": 1}

    def registered(self, subject, schema, normalize=False):
        return {"id": 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    count = parser.parse_args().records
    warm_up.compile_all()
    assert kernels.ready()
    print(f"{count} records; M records/s, best of {REPEATS}\n")
    print(f"{'':16}{'read':>8}{'theirs':>10}{'times':>8}{'write':>10}{'theirs':>10}{'times':>8}")
    for name, said, make in (("flat", FLAT, flat), ("nested", NESTED, nested)):
        data = [make(at) for at in range(count)]
        parsed = fastavro.parse_schema(said)
        messages = [_written(parsed, each) for each in data]
        ours = _ours(AvroConverter, _Registry(json.dumps(said)), [b"\0\0\0\0\1" + each for each in messages])
        their_reading = _rate(count, lambda: [fastavro.schemaless_reader(io.BytesIO(each), parsed, None) for each in messages])
        their_writing = _rate(count, lambda: [_written(parsed, each) for each in data])
        _tell(f"avro {name}", *ours, their_reading, their_writing)
    for name, text, make in (("flat", FLAT_PROTO, flat), ("nested", NESTED_PROTO, _nested_fields)):
        data = [{field: item for field, item in make(at).items() if item is not None} for at in range(count)]
        file = ProtoFile(text)
        kind = file.class_of(file.message([0]))
        messages = [kind(**each).SerializeToString() for each in data]
        ours = _ours(ProtobufConverter, _Registry(text, "PROTOBUF"), [b"\0\0\0\0\1\0" + each for each in messages])
        look = _looker(kind.DESCRIPTOR)
        their_reading = _rate(count, lambda: [look(kind.FromString(each)) for each in messages])
        their_writing = _rate(count, lambda: [kind(**each).SerializeToString() for each in data])
        _tell(f"protobuf {name}", *ours, their_reading, their_writing)


def _nested_fields(at):
    """Protobuf's entries are messages."""
    made = nested(at)
    return {**made, "tags": [{"key": key, "value": value} for key, value in made["tags"].items()]}


def _looker(descriptor):
    """A function from a message to a dict of its fields, as a program would parse it."""
    plain = [field.name for field in descriptor.fields if field.message_type is None]
    within = [(field.name, field.is_repeated, _looker(field.message_type)) for field in descriptor.fields if field.message_type is not None]

    def look(message):
        found = {name: getattr(message, name) for name in plain}
        for name, is_repeated, inner in within:
            item = getattr(message, name)
            found[name] = [inner(each) for each in item] if is_repeated else inner(item)
        return found

    return look


def _ours(kind, registry, messages):
    """(rate of reading, of writing)"""
    column, count = ByteColumn.of(messages), len(messages)
    converter = kind.of({"schema.registry.url": "http://none"})
    converter.client = registry
    schema, values, bad = converter.decode("t", column)
    assert bad is None
    written = converter.encode("t", schema, values, count)
    assert written is not None and written[1] is None
    return _rate(count, lambda: converter.decode("t", column)), _rate(count, lambda: converter.encode("t", schema, values, count))


def _tell(name, reading, writing, their_reading, their_writing):
    print(
        f"{name:16}{reading:8.2f}{their_reading:10.2f}{reading / their_reading:7.1f}x"
        f"{writing:10.2f}{their_writing:10.2f}{writing / their_writing:7.1f}x"
    )


def _written(parsed, datum):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, datum)
    return out.getvalue()


def _rate(count, work):
    """Millions a second, the best turn."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return count / best / 1e6


if __name__ == "__main__":
    main()
