"""The sinks' keys are Confluent's: names, types, defaults, importance (tests/golden/storage-keys.json, of its sources)."""

import json
import pathlib

import pytest

from connectors.storage.hdfs_sink import HdfsSinkConnector
from connectors.storage.s3_sink import S3SinkConnector
from connectors.storage.sink import LakeSinkConnector
from standalone import REQUIRED

KEYS = json.loads((pathlib.Path(__file__).parents[2] / "golden" / "storage-keys.json").read_text())
CONNECTORS = {"s3": S3SinkConnector, "hdfs": HdfsSinkConnector}
# LakeSink's own, and the defaults that are its own.
OWN = {"orc.codec", "text.compression.type", "text.compression.level", "json.decimal.format", "format.bytearray.extension", "format.bytearray.separator", "parquet.codec"}
OTHER_DEFAULT = {"format.class": "Parquet"}


def check(ours, key, other_defaults=None):
    assert ours.type == ("STRING" if key["type"] == "CLASS" else key["type"]), "classes of Java's are texts: there is nothing to load"
    assert ours.importance == key["importance"] and ours.internal == key.get("internal", False)
    default = (other_defaults or {}).get(ours.name, key["default"])
    assert (ours.default is REQUIRED) if default == "REQUIRED" else ours.default == default


@pytest.mark.parametrize("kind, key", [(kind, key) for kind in CONNECTORS for key in KEYS[kind]["keys"]], ids=lambda each: each["name"] if isinstance(each, dict) else each)
def test_a_key_is_as_in_java(kind, key):
    check(CONNECTORS[kind].config_def[key["name"]], key)


@pytest.mark.parametrize("kind", CONNECTORS)
def test_there_are_no_others(kind):
    assert set(CONNECTORS[kind].config_def.names()) == {key["name"] for key in KEYS[kind]["keys"]}


def test_lake_sink_has_the_same_keys_where_it_has_them():
    known = {key["name"]: key for key in KEYS["hdfs"]["keys"]}
    for option in LakeSinkConnector.config_def:
        if option.name not in OWN:
            check(option, known[option.name], OTHER_DEFAULT)
