"""The same history, with the same settings: our records are those that Debezium's connector 3.2.0 wrote (tests/golden/debezium.json.xz)."""

import contextlib
import json
import lzma
import os
import pathlib

import pytest

from standalone import JsonConverter
from standalone.plugins import Plugins
from tests.connectors.postgres_cdc import history
from tests.connectors.postgres_cdc.database import Database, Driver

GOLDEN = json.loads(lzma.decompress((pathlib.Path(__file__).parents[2] / "golden" / "debezium.json.xz").read_bytes()))
CASES = [(name, topic) for name in GOLDEN for topic in GOLDEN[name]]
CONVERTERS = {part: JsonConverter.of({"converter.type": part}) for part in ("key", "value")}
HEADERS = Plugins().find("header_converter", "SimpleHeaderConverter").of({"converter.type": "header"})
# Where we do otherwise, and why: (settings, column of `kinds`) -> what Debezium has.
ARRAYS = history.NAMES["integer[][]"]  # nulls in the place of what is within: a null altogether, and a warning
OTHERWISE = {
    ("texts", history.NAMES["timestamp"]): ("infinity", "-infinity"),  # years that nobody meant
    ("nano", history.NAMES["timestamp"]): ((1 << 63) - 1, -(1 << 63)),  # what an overflow leaves
}
# It takes an update of columns that are left out for none, although the key has changed.
LOST = {("micro", "public.indexed")}
LEFT_OUT = ("micro", "public.Odd_name")  # where the key's column is left out of the value, it takes the key for one that may be null


@pytest.fixture(scope="module")
def told(postgresql_server):
    """{settings' name: {topic without its prefix: records}}: all connectors watch one database at once."""
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(Database(postgresql_server["port"], f"cdc_history_{os.getpid()}"))
        for statement in history.SETUP:
            database.run(statement)
        tasks = {}
        for name in history.CONFIGS:
            own = {"database.dbname": database.name, "slot.name": f"{database.name}_{name}", "status.update.interval.ms": "50"}
            options = {**history.config(name, database.port), **own}
            tasks[name] = stack.enter_context(Driver(database)).start(**options).until_streaming()
        for transaction in history.CHANGES:
            database.run(*transaction)
            [(now,)] = database.rows("SELECT pg_current_wal_insert_lsn() - '0/0'")
            for task in tasks.values():
                task.until_streaming(upto=int(now))
        found = {}
        for name, task in tasks.items():
            for record in task._rest:
                found.setdefault(name, {}).setdefault(record.topic.removeprefix(f"{name}."), []).append(converted(record))
        yield found


def converted(record):
    """As it is in the log."""
    key, value = (
        None if found is None else json.loads(CONVERTERS[part].from_connect(record.topic, schema, found))
        for part, schema, found in (("key", record.key_schema, record.key), ("value", record.value_schema, record.value))
    )
    headers = [[each.name, HEADERS.from_header(record.topic, each.name, each.schema, each.value).decode()] for each in record.headers]
    return {"key": key, "value": value, "headers": headers}


def lasting(record):
    """Without what is of the moment, or of the database's own past; the same is done to what was recorded."""
    key, value = record["key"], record["value"]
    payload = value and value["payload"]
    if payload and payload.get("source"):
        payload["source"] = {name: payload["source"][name] for name in ("connector", "name", "snapshot", "schema", "table")}
    for each in (payload, payload and payload.get("transaction"), key and key["payload"]):
        for name in ("ts_ms", "ts_us", "ts_ns", *(() if each is not None and "before" in each or each is key else ("id",))):
            if each and name in each and not (each is (key and key["payload"]) and ":" not in str(each[name])):
                each[name] = "passing"
    return record


@pytest.mark.parametrize("name, topic", CASES, ids=lambda each: each)
def test_our_records_are_debeziums(told, name, topic):
    ours, theirs = [lasting(each) for each in told[name].get(topic, [])], GOLDEN[name][topic]
    if (name, topic) in LOST:
        assert len(ours) > len(theirs)
        return
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        if topic == "transaction":  # in no order that anybody could rely on
            for each in (mine, other):
                tables = each["value"]["payload"]["data_collections"] or []
                for table in tables:
                    if "LogicalDecodingMessageId@" in table["data_collection"]:  # where an object of Java's lay; a message is of no table
                        table["data_collection"] = ""
                tables.sort(key=lambda table: table["data_collection"])
        if topic == "public.kinds":
            forget_what_differs(name, mine, other)
        if (name, topic) == LEFT_OUT:
            other["key"]["schema"]["fields"][0]["optional"] = False
        assert list(differences(mine, other)) == []


def differences(mine, other, path=""):
    if isinstance(mine, dict) and isinstance(other, dict) and list(mine) == list(other):
        for name in mine:
            yield from differences(mine[name], other[name], f"{path}.{name}")
    elif isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        for at, (one, two) in enumerate(zip(mine, other)):
            yield from differences(one, two, f"{path}[{at}]")
    elif mine != other:
        yield path, mine, other


def forget_what_differs(name, mine, other):
    for schema in (mine, other):
        for part in schema["value"]["schema"]["fields"][:2]:
            for field in part["fields"]:
                if field["field"] == history.NAMES["mood[]"]:
                    field["items"]["optional"] = True  # an array of an enum's values may have nulls as any other
    after, their_after = mine["value"]["payload"]["after"], other["value"]["payload"]["after"]
    assert after[ARRAYS] is None
    their_after[ARRAYS] = None
    number = after[history.NAMES["numeric"]]
    if number == {"scale": 2, "value": "/2o="}:  # -1.50 as it is in the database; theirs is -1.5
        their_after[history.NAMES["numeric"]] = number
    for (of, column), instead in OTHERWISE.items():
        if of == name and after[column] in instead:
            their_after[column] = after[column]
