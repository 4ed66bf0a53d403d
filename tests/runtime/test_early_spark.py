"""Java is launched before the worker's modules are imported, where the properties show that a chain computes; and only there."""

import json
import os
import subprocess
import sys

import pytest

from standalone import Transform, plugins
from standalone.pipeline.spark.session import SessionHolder
from standalone.runtime import early_spark as early
from standalone.runtime.configuration.worker_config import WorkerConfig
from tests.suite.patience import PATIENCE_SECONDS

CAST = {"transforms": "a, cast", "transforms.a.type": "HoistField", "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value"}
RENAMES = {"transforms": "a", "transforms.a.type": "ReplaceField"}


@pytest.fixture
def launched(monkeypatch):
    """The settings of each session that was launched."""
    found = []

    class Holder:
        def __init__(self, conf):
            self.conf = conf

        def launch(self):
            found.append(self.conf)

    monkeypatch.setattr(early, "SessionHolder", Holder)
    return found


@pytest.fixture
def file(tmp_path):
    def write(config, name="c.json"):
        (tmp_path / name).write_text(json.dumps({"name": "c", **config}))
        return tmp_path / name

    return write


def test_the_listed_transforms_are_those_that_always_compute():
    ours = [each for each in plugins.Plugins().classes("transform") if each.__module__.startswith("standalone.")]
    assert {early._simple_name(plugins.class_name(each)) for each in ours if each.computes is Transform.computes} == early.COMPUTING


@pytest.mark.parametrize("config", [CAST, {**CAST, "pipeline.engine": "auto"}, {"transforms": "s", "transforms.s.type": "standalone.transforms.sql.Sql"}])
def test_a_chain_that_computes_launches_java(launched, file, config):
    worker = {"spark.driver.memory": "300m", "topic.prefix": "x"}
    early.launch(worker, [file(RENAMES, "other.json"), file(config)])
    assert launched == [{"spark.driver.memory": "300m"}]


@pytest.mark.parametrize(
    "worker, config",
    [
        ({}, {}),
        ({}, RENAMES),
        ({}, {**CAST, "transforms": "a"}),
        ({}, {**CAST, "pipeline.engine": "rows"}),
        ({"pipeline.engine": "rows"}, CAST),
        ({"spark.start": "lazy"}, CAST),
        ({"spark.driver.memory": "${file:/etc/spark:memory}"}, CAST),
        ({"spark.master": "spark://there:7077"}, CAST),
        ({"tasks.run.on": "cluster"}, CAST),
        ({}, {"name": "c", "config": CAST, "initial_state": "PAUSED"}),
    ],
)
def test_anything_else_does_not(launched, file, worker, config):
    assert early.launch(worker, [file(config)]) is None and launched == []


def test_a_connector_of_the_rows_engine_does_not_keep_another_from_it(launched, file):
    early.launch({"pipeline.engine": "rows"}, [file({**CAST, "pipeline.engine": "spark"})])
    assert len(launched) == 1


def test_an_eager_start_needs_no_chain(launched):
    early.launch({"spark.start": "eager"}, [])
    assert launched == [{}]


def test_a_file_that_cannot_be_read_is_left_to_the_worker(launched, tmp_path):
    (tmp_path / "c.properties").write_text("\\u12\n")
    assert early.launch({}, [tmp_path / "none", tmp_path / "c.properties", tmp_path / "q.sql"]) is None


def test_the_settings_are_those_that_the_worker_reads():
    props = {"offset.storage.file.filename": "o", "spark.driver.memory": "300m", "spark.start": "eager", "key.converter": "JsonConverter", "value.converter": "JsonConverter"}
    assert early.settings(props) == WorkerConfig.of(props).spark() == {"spark.driver.memory": "300m"}


SESSION = """
import os, sys
from standalone.pipeline.spark.session import SessionHolder

holder = SessionHolder({}, cache_dir=sys.argv[1], archive_after_seconds=None)
holder.launch()
process = holder._process
try:
    assert holder.wait(float(sys.argv[2])) is not None, holder.failure
    assert holder._process is process and holder.starts == 1
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == os.getpriority(os.PRIO_PROCESS, os.getpid())
finally:
    holder.stop()
assert process.poll() is not None
"""


def test_a_session_is_made_of_the_process_that_was_launched(tmp_path):
    """In a process of its own: pyspark allows one session, and this one may have that of other tests."""
    done = subprocess.run([sys.executable, "-c", SESSION, str(tmp_path), str(PATIENCE_SECONDS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_process_that_no_chain_asked_for_ends_with_the_worker(tmp_path):
    holder = SessionHolder({}, cache_dir=str(tmp_path))
    holder.launch()
    process, folder = holder._process, holder._folder
    holder.stop(0)
    assert process.poll() is not None and not os.path.exists(folder)
