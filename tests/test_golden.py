"""What the genuine Java classes did, case by case: columnar forms must do the same where there are; tests/test_oracle.py does it by rows."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.suite.golden import cases

ROOT = pathlib.Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"

CONNECT_ERRORS = (
    "DataException",
    "ConnectException",
    "SchemaBuilderException",
    "SchemaProjectorException",
    "ConfigException",
    "SerializationException",
    "RetriableException",
    "NotFoundException",
)


@pytest.fixture(scope="module")
def goldenlib():
    """The modules behind scripts/golden."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from goldenlib import columns, encoding, reasons, rows

        yield {"columns": columns, "encoding": encoding, "reasons": reasons, "rows": rows}
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def alike(wanted, found):
    """Whether two outcomes mean the same: maps without order, struct fields in order, foreign errors by any error."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        if "error" in wanted:
            named = wanted["error"] not in CONNECT_ERRORS or wanted["error"] == found.get("error")
            return "error" in found and named and all(wanted.get(name) == found.get(name) for name in ("stage", "at"))
        if set(wanted) == set(found) == {"$map"}:
            rest = list(found["$map"])
            for entry in wanted["$map"]:
                match = next((other for other in rest if alike(entry, other)), None)
                if match is None:
                    return False
                rest.remove(match)
            return not rest
        if "bytes" in wanted:
            wanted, found = ({name: part for name, part in each.items() if name != "text"} for each in (wanted, found))
        if "$struct" in wanted and list(wanted["$struct"]) != list(found.get("$struct", ())):
            return False
        return set(wanted) == set(found) and all(alike(wanted[name], found[name]) for name in wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(alike, wanted, found))
    return type(wanted) is type(found) and repr(wanted) == repr(found)


PARTS = 8  # in which all transforms are done by columns; each has cases of all classes


def by_columns(goldenlib, kind, every):
    """(how many cases went by columns, by class; how many with schemas were left to rows, by class and reason); fails where one came out
    otherwise than in Java."""
    columns, done, wrong = goldenlib["columns"], [], []
    for case, found in zip(every, columns.outcomes(kind, every), strict=True):
        is_left = isinstance(found, columns.LeftToRows)
        done.append({"engine": f"declined: {found}" if is_left else "columns", "outcome": case["outcome"]})
        if not is_left and not alike(case["outcome"], found):
            wrong.append(f"{case['id']}: wanted {case['outcome']}, found {found}")
    assert not wrong, "\n".join(wrong[:10])
    return goldenlib["reasons"].counted(kind, every, done)


def check_share(counted, least):
    done, left = counted
    share = sum(done.values()) / (sum(done.values()) + sum(left.values()))
    assert share >= least, f"only {share:.1%} by columns; left to rows: {left.most_common(5)}"


def test_column_meanings_of_converters_do_what_java_does(goldenlib):
    done, left = by_columns(goldenlib, "converters", cases("converters"))
    check_share((done, left), 0.9)
    assert {name for name, _ in left} <= set(done), "every converter has columnar forms in both directions"


@pytest.mark.spark
@pytest.mark.parametrize("part", range(PARTS))
def test_column_meanings_of_transforms_do_what_java_does(goldenlib, spark_holder, monkeypatch, part):
    monkeypatch.setattr(goldenlib["columns"].SESSION, "_holder", spark_holder)
    done, left = by_columns(goldenlib, "transforms", cases("transforms")[part::PARTS])
    check_share((done, left), 0.9)
    assert {name for name, _ in left} <= set(done), "every transform has a columnar form for keys and for values"


@pytest.mark.parametrize("kind", ["converters", "properties", "config_types", "partitions", "batches", "values"])
def test_the_script_writes_a_line_a_case(tmp_path, kind):
    few = tmp_path / "cases.jsonl"
    few.write_text("".join((GOLDEN / f"{kind}.jsonl").read_text().splitlines(True)[:20]))
    out = tmp_path / "out.jsonl"
    done = subprocess.run([sys.executable, ROOT / "scripts" / "golden", kind, few, "--out", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in out.open()]
    for case, line in zip(map(json.loads, few.open()), lines, strict=True):
        assert line["id"] == case["id"] and line["engine"] == "rows"
        outcomes = set(case) & {"outcome", "properties", "parsed", "murmur2", "partition", "records", "crc"}
        assert all(alike(case[name], line[name]) for name in outcomes)


def test_a_class_that_does_not_exist_is_told_case_by_case(tmp_path, goldenlib):
    case = {"id": "x", "class": "org.acme.NoConverter", "config": {}, "isKey": False, "direction": "to", "input": {"bytes": None}}
    found = goldenlib["rows"].outcome("converters", case)
    assert (found["error"], found["stage"]) == ("NotFoundException", "configure")


@pytest.mark.parametrize(
    "data, schema",
    [
        (7, None),
        ({"$long": 7}, {"type": "INT64", "optional": False}),
        ({"$long": 7}, {"type": "INT32", "optional": False}),
        ({"$bigint": "123456789012345678901"}, None),
        ({"$double": "NaN"}, None),
        (1.5, {"type": "FLOAT32", "optional": False}),
        ({"$float": "1.1"}, None),
        ({"$decimal": "1200", "scale": -2}, None),
        ({"$decimal": "-0.050", "scale": 3}, None),
        ({"$bytebuffer": "AQI="}, None),
        ({"$map": [[1, "a"], [None, "b"]]}, None),
        ({"$date": -1}, None),
    ],
)
def test_the_encoding_comes_back_as_it_was(goldenlib, data, schema):
    encoding = goldenlib["encoding"]
    schema = encoding.read_schema(schema)
    assert encoding.write_value(encoding.read_value(data, schema), schema) == data
