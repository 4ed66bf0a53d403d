"""What the documents say is so: the README's example runs as written, samples are what the code takes, generated pages are up to date."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from standalone import Schema, SchemaBuilder, SourceRecord, Struct, properties
from standalone.pipeline.chain import Link
from standalone.pipeline.columns.leaves import Leaves
from standalone.pipeline.columns.plan import ColumnPlan
from standalone.plugins import Plugins
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.runtime.configuration.worker_keys import WORKER
from standalone.testing import check_transform, columns_of
from tests.runtime.local import LocalWorker, wait_for

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def blocks(page, language="python"):
    """What is in a page as code of that language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def test_the_readmes_connector_runs_as_written(tmp_path):
    example = EXAMPLES[0]
    assert len([line for line in example.splitlines() if line.strip()]) <= 22
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "counter.py").write_text(example)
    for upto in (3, 5):
        with LocalWorker(tmp_path, plugin__path=tmp_path / "plugins") as worker:
            worker.herder.create("c", {"connector.class": "Counter", "topic": "numbers", "upto": str(upto)}, replace=True)
            assert worker.values("numbers", upto) == [b"number %d" % number for number in range(upto)]


def test_the_tutorials_sink_runs_as_written_and_counts_each_record_once(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "line_counter.py").write_text(blocks("tutorial-connector.md")[0])
    (tmp_path / "c.properties").write_text(blocks("tutorial-connector.md", "properties")[0])
    counts = tmp_path / "counts.json"
    config = {**properties.load_connector(tmp_path / "c.properties").config, "path": str(counts)}
    with LocalWorker(tmp_path, plugin__path=tmp_path / "plugins") as worker:
        worker.send("connect-test", [b"a", b"b", b"c"])
        worker.herder.create("count", config)
        wait_for(lambda: counts.exists() and json.loads(counts.read_text()) == {"connect-test-0": {"seen": 3, "next": 3}})
        worker.herder.stop("count")
        worker.wait_states("count", "STOPPED")
        worker.herder.reset_offsets("count")
        worker.send("connect-test", [b"d"])
        worker.herder.resume("count")  # it reads all four again
        wait_for(lambda: json.loads(counts.read_text()) == {"connect-test-0": {"seen": 4, "next": 4}})


LINE = Schema.STRING
ENVELOPE = SchemaBuilder.struct().field("host", Schema.STRING).field("event", LINE).build()


def test_the_pages_transform_runs_as_written(tmp_path, spark_holder):
    (tmp_path / "envelope.py").write_text(blocks("tutorial-transform.md")[0])
    transform = Plugins([tmp_path]).find("transform", "Envelope$Value").of(host="h1")
    plain = SourceRecord("t", {"a": "b"})
    check_transform(transform, plain, plain.with_value(None, {"host": "h1", "event": {"a": "b"}}))
    line = SourceRecord("t", "foo", value_schema=LINE)
    check_transform(transform, line, line.with_value(ENVELOPE, Struct(ENVELOPE).put("host", "h1").put("event", "foo")), spark_holder)
    frame = columns_of([line] * 3)
    assert not ColumnPlan([Link("e", transform)], Leaves(frame, set()), frame).computes, "it is said to take no Spark"


def test_the_samples_run_the_quickstart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they name files in the folder where they are started
    worker = properties.load(ROOT / "config" / "connect-standalone.properties")
    free = {"listeners": "http://127.0.0.1:0", "embedded.log.listener": "127.0.0.1:0"}
    with LocalWorker(tmp_path, **{**worker, **free}) as local:
        for name in ("source", "sink"):
            found = properties.load_connector(ROOT / "config" / f"connect-file-{name}.properties")
            local.herder.create(found.name, found.config)
        (tmp_path / "test.txt").write_text("foo\nbar\n")
        sink = tmp_path / "test.sink.txt"
        wait_for(lambda: sink.exists() and sink.read_text() == "foo\nbar\n")
        expected = re.search(r'^ +(\{"schema".*"payload":"foo"\})$', README, re.MULTILINE)[1].encode()
        assert local.values("connect-test", 2) == [expected, expected.replace(b"foo", b"bar")]


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.properties")), ids=lambda path: path.name)
def test_a_sample_has_no_unknown_key(path):
    props = properties.load(path)
    if "connector.class" in props:
        worker = WorkerConfig.of(properties.load(ROOT / "config" / "connect-standalone.properties"))
        assert ConnectorConfig.of(props, worker.plugins, worker).warnings == []
    else:
        assert WorkerConfig.of(props).warnings == []


def test_commented_keys_of_the_workers_sample_exist():
    text = (ROOT / "config" / "connect-standalone.properties").read_text()
    for key in re.findall(r"^#([a-z][a-z.]+)=", text, re.MULTILINE):
        assert key in WORKER, key


def test_the_configuration_reference_is_what_the_code_says():
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "docs"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
