"""The keys are Debezium's: names, types, defaults, importances, groups (tests/golden/debezium-keys.json, of its sources)."""

import json
import pathlib

import pytest

from connectors.postgres_cdc.keys import SOURCE
from connectors.postgres_cdc.source import PostgresCdcSourceConnector
from standalone import REQUIRED, ConnectError
from standalone.plugins import Plugins

KEYS = json.loads((pathlib.Path(__file__).parents[2] / "golden" / "debezium-keys.json").read_text())
OTHER_DEFAULT = {"plugin.name": "pgoutput"}  # decoderbufs has to be built into the server, and is not read here
GIVEN = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key["name"])
def test_a_key_is_as_in_java(key):
    ours = SOURCE[key["name"]]
    assert ours.type == ("STRING" if key["type"] == "CLASS" else key["type"]) and ours.importance == key["importance"]
    default = OTHER_DEFAULT.get(ours.name, key["default"])
    assert (ours.default is REQUIRED) if default == "REQUIRED" else ours.default == default
    assert ours.group == key["group"] and list(ours.dependents) == key["dependents"] and ours.internal == key.get("internal", False)


def test_no_key_is_missing_or_made_up():
    assert set(SOURCE.names()) == {key["name"] for key in KEYS}


def test_debeziums_name_is_ours():
    assert Plugins().find("connector", "io.debezium.connector.postgresql.PostgresConnector") is PostgresCdcSourceConnector


@pytest.mark.parametrize(
    "more, wrong",
    [
        ({"slot.name": "Not-good"}, "slot.name"),
        ({"table.include.list": "a", "table.exclude.list": "b"}, "table.exclude.list"),
        ({"schema.include.list": "a", "schema.exclude.list": "b"}, "schema.exclude.list"),
    ],
)
def test_what_is_wrong_together(more, wrong):
    assert list(PostgresCdcSourceConnector().validate({**GIVEN, **more})) == [wrong]


@pytest.mark.parametrize(
    "more, wrong",
    [
        ({"plugin.name": "decoderbufs"}, "plugin.name"),
        ({"topic.prefix": "a b"}, "topic.prefix"),
        ({"table.include.list": "("}, "table.include.list"),
        ({"snapshot.mode": "custom"}, "snapshot.mode"),
        ({"time.precision.mode": "structured"}, "time.precision.mode"),
        ({"skipped.operations": "x"}, "skipped.operations"),
    ],
)
def test_what_is_wrong_by_itself(more, wrong):
    with pytest.raises(ConnectError, match=wrong):
        SOURCE.parse({**GIVEN, **more})


@pytest.mark.parametrize(
    "partition, offset, wrong",
    [
        ({"server": "p"}, {"lsn": 5}, None),
        ({"server": "p"}, {"lsn_proc": 9, "lsn_commit": 5, "lsn": 9, "txId": 3, "ts_usec": 1, "messageType": "INSERT", "transaction_id": None}, None),
        ({"server": "p"}, None, None),
        ({"server": "other"}, None, "server"),
        ({"server": "p"}, {"position": 3}, "lsn"),
        ({"server": "p"}, {"lsn": "x"}, "whole numbers"),
    ],
)
def test_which_offsets_may_be_set(partition, offset, wrong):
    connector = PostgresCdcSourceConnector()
    if wrong is None:
        assert connector.alter_offsets(GIVEN, [(partition, offset)])
        return
    with pytest.raises(ConnectError, match=wrong):
        connector.alter_offsets(GIVEN, [(partition, offset)])
