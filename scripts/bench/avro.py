#!/usr/bin/env python3
"""AvroConverter's columns beside fastavro, record by record: records a second, and how many times as many, in one run.

    scripts/bench/avro.py [--records 200000]

One thread. fastavro reads each message to a dict and writes each dict; the converter reads the messages to columns and writes columns.
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

    def __init__(self, said):
        self._schema = RegistrySchema(json.dumps(said))

    def schema_by_id(self, id, subject=None):
        return self._schema

    def lookup(self, subject, schema, normalize=False):
        return {"id": 1, "version": 1}

    def registered(self, subject, schema, normalize=False):
        return {"id": 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    count = parser.parse_args().records
    warm_up.compile_all()
    assert kernels.ready()
    print(f"{count} records; M records/s, best of {REPEATS}\n")
    print(f"{'':8}{'read':>8}{'fastavro':>10}{'times':>8}{'write':>10}{'fastavro':>10}{'times':>8}")
    for name, said, make in (("flat", FLAT, flat), ("nested", NESTED, nested)):
        data = [make(at) for at in range(count)]
        parsed = fastavro.parse_schema(said)
        messages = [_written(parsed, each) for each in data]
        column = ByteColumn.of([b"\0\0\0\0\1" + each for each in messages])
        converter = AvroConverter.of({"schema.registry.url": "http://none"})
        converter.client = _Registry(said)
        schema, values, bad = converter.decode("t", column)
        assert bad is None
        written = converter.encode("t", schema, values, count)
        assert written is not None and written[1] is None
        reading = _rate(count, lambda: converter.decode("t", column))
        writing = _rate(count, lambda: converter.encode("t", schema, values, count))
        their_reading = _rate(count, lambda: [fastavro.schemaless_reader(io.BytesIO(each), parsed, None) for each in messages])
        their_writing = _rate(count, lambda: [_written(parsed, each) for each in data])
        print(
            f"{name:8}{reading:8.2f}{their_reading:10.2f}{reading / their_reading:7.1f}x"
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
