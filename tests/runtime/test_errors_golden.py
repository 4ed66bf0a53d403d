"""What the genuine worker does with records that fail, done by ours on a real broker: golden/errors.json, case by case."""

import json
import pathlib
import subprocess
import sys

import pytest
from kafka.protocol.consumer import OffsetFetchRequest

from tests.servers.fake_broker import FakeCluster, build

ROOT = pathlib.Path(__file__).parents[2]
NOT_COORDINATOR = 16
CASES = json.loads((ROOT / "tests" / "golden" / "errors.json").read_text())


@pytest.fixture(scope="module")
def errors():
    """scripts/goldenlib/errors.py"""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from goldenlib import errors

        yield errors
    finally:
        sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def lab(errors, kafka, tmp_path_factory):
    with errors.Lab(kafka, tmp_path_factory.mktemp("errors")) as lab:
        yield lab


@pytest.mark.kafka
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_bad_records_fare_as_with_javas_worker(errors, lab, case):
    found = errors.observed(lab, case)
    assert errors.alike(case["observed"], found), f"wanted {json.dumps(case['observed'], indent=1)}, found {json.dumps(found, indent=1)}"


def test_a_coordinator_that_is_not_ready_yet_is_asked_again(errors, tmp_path):
    """As a fresh broker is in its first moments: the process once died of that, by a segmentation fault of its client's."""
    with FakeCluster() as cluster:
        cluster.control(OffsetFetchRequest, lambda call: refusal(call) if len(cluster.seen(OffsetFetchRequest)) < 3 else None)
        assert errors.Lab(cluster.bootstrap, tmp_path).committed("c") == []
        assert len(cluster.seen(OffsetFetchRequest)) == 3


def refusal(call):
    groups = [{"group_id": "connect-c", "topics": [], "error_code": NOT_COORDINATOR}]
    return build(call.answer(throttle_time_ms=0, error_code=NOT_COORDINATOR), {"groups": groups, "topics": []})


@pytest.mark.kafka
def test_the_script_runs_files_of_the_same_kind(errors, kafka, tmp_path):
    few = [{"case": "mine", **{key: case[key] for key in ("setup", "observed")}} for case in CASES if case["case"] == "dlq-plain"]
    (tmp_path / "cases.json").write_text(json.dumps(few))
    command = [sys.executable, ROOT / "scripts" / "golden", "errors", tmp_path / "cases.json", "--bootstrap", kafka, "--out", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((tmp_path / "out.json").read_text())
    assert found["case"] == "mine" and errors.alike(few[0]["observed"], found["observed"])
