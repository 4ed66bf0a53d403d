"""The example of docs/errors.md, as it is there."""

import pathlib
import re

from standalone import SinkConnector, SinkTask, properties
from tests.runtime.bad_records import context, messages, produce
from tests.runtime.local import LocalWorker, wait_for

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "errors.md").read_text()
PROPERTIES = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
TEXTS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_sink_with_a_dead_letter_queue(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sink.properties").write_text(PROPERTIES[0])
    found = properties.load_connector(tmp_path / "sink.properties")
    records = re.search(r"Of the messages `(.*?)`, `(.*?)` and `(.*?)` the file", PAGE).groups()
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "readings", [(None, record, []) for record in records])
        worker.herder.create(found.name, found.config)
        wait_for(lambda: (tmp_path / "readings.txt").exists() and (tmp_path / "readings.txt").read_text() == TEXTS[0])
        (letter,) = messages(worker.bootstrap, "readings-failed", 1)
    assert letter.value().decode() == records[1]
    shown = dict(line.split(": ") for line in TEXTS[1].splitlines())
    said = {f"__connect.errors.{name}": value for name, value in context(letter).items()}
    assert {name: said[name] for name in shown} == shown
    assert set(said) - set(shown) == {"__connect.errors.exception.message", "__connect.errors.exception.stacktrace"}


STORED = []
scope = {}
exec(PYTHON[0], scope)


class PageTask(SinkTask):
    start, put = scope["start"], scope["put"]

    def store(self, record):
        STORED.append(int(record.value))


class PageSink(SinkConnector):
    task_class = PageTask


def test_the_reporting_sink(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, value, []) for value in ("1", "two", "3")])
        queue = {key: value for key, value in properties.parse(PROPERTIES[0]).items() if key.startswith("errors.")}
        worker.herder.create("k", {"connector.class": f"{__name__}:PageSink", "topics": "t", **queue})
        (letter,) = messages(worker.bootstrap, "readings-failed", 1)
        wait_for(lambda: STORED == [1, 3])
        assert letter.value() == b"two"
