"""Options, their parsing and what the REST API and the reference make of them."""

import json
import math
from pathlib import Path

import pytest

from standalone import config
from standalone.config import parse_type
from standalone.errors import ConfigError

GOLDEN = Path(__file__).parent / "golden"
CASES = [json.loads(line) for line in (GOLDEN / "config_types.jsonl").read_text(encoding="ascii").splitlines()]


def tagged(value, kind):
    """A parsed value as the golden file writes it."""
    if kind == config.PASSWORD:
        return {"$password": value.value}
    if kind == config.CLASS:
        return {"$class": config.class_name(value)}
    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['type']}")
def test_texts_are_parsed_as_kafka_parses_them(case):
    if "error" in case:
        with pytest.raises(ConfigError):
            parse_type("k", case["value"], case["type"])
        return
    value = tagged(parse_type("k", case["value"], case["type"]), case["type"])
    assert value == case["parsed"] and type(value) is type(case["parsed"])
