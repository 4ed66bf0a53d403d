"""The converters' keys are Confluent's: names, types, defaults, importance (tests/golden/registry-keys.json, of its sources)."""

import json
import logging

import pytest

from standalone import ConfigError
from standalone.converters.avro.converter import AvroConverter
from standalone.converters.json_schema.converter import JsonSchemaConverter
from standalone.converters.protobuf.converter import ProtobufConverter
from tests.converters.fake_registry import with_registry
from tests.suite.golden import GOLDEN

KEYS = json.loads((GOLDEN / "registry-keys.json").read_text())
CONVERTERS = {"avro-converter": AvroConverter, "protobuf-converter": ProtobufConverter, "json-schema-converter": JsonSchemaConverter}


def expected(name):
    return {key: (kind, default, importance) for part in ("schema-registry-serde", name) for key, kind, default, importance in KEYS[part]}


def text(kind, default):
    """A default as REST reports it."""
    if default == "REQUIRED" or default is None:
        return None
    if kind == "BOOLEAN":
        return str(default).lower()
    return ",".join(default) if kind == "LIST" else str(default)


@pytest.mark.parametrize("name", CONVERTERS)
def test_the_keys_are_confluents(name):
    options = {option.name: option for option in CONVERTERS[name].config_def}
    assert set(options) - {"converter.type"} == set(expected(name))


@pytest.mark.parametrize("name", CONVERTERS)
def test_types_defaults_and_importance_are_confluents(name):
    options = {option.name: option for option in CONVERTERS[name].config_def}
    for key, (kind, default, importance) in expected(name).items():
        option = options[key]
        # Classes of Java's are named, and never loaded here.
        assert option.type == ("STRING" if kind == "CLASS" else kind), key
        if key == "schema.registry.url":  # the worker's own, where none is named
            assert option.default == ["embedded"]
            continue
        shown = option.default_text
        assert ("[hidden]" if kind == "PASSWORD" and default is not None else text(kind, default)) == shown, key
        assert option.importance == importance, key


@pytest.mark.parametrize(
    "key, value, said",
    [
        ("schema.registry.url", "", "schema.registry.url"),
        ("value.subject.name.strategy", "com.example.Mine", "must be one of"),
        ("value.schema.id.serializer", "io.confluent.kafka.serializers.schema.id.MySchemaIdSerializer", "must be one of"),
        ("schemas.cache.config", "0", "at least 1"),
        ("use.schema.guid", "seven", "use.schema.guid.*must be a GUID"),
    ],
)
@pytest.mark.parametrize("converter", CONVERTERS.values(), ids=CONVERTERS)
def test_a_wrong_key_is_refused(converter, key, value, said):
    props = {"schema.registry.url": "http://r", key: value}
    with pytest.raises(ConfigError, match=said):
        converter.of({name: each for name, each in props.items() if each is not None})


def test_a_key_without_effect_is_named_once_in_the_log(caplog):
    with caplog.at_level(logging.WARNING):
        with_registry(AvroConverter, rule__executors="a", specific__avro__reader="true")
    assert [record.getMessage() for record in caplog.records] == [
        "AvroConverter: rule.executors has no effect. Rules of data contracts are not run here.",
        "AvroConverter: specific.avro.reader has no effect. Values become structs, not objects of classes.",
    ]
