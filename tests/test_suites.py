"""The ready suites, on the connectors that are here; and that they find what is wrong with others."""

import pytest

from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector, FileStreamSourceTask
from standalone.testing import SinkSuite, SourceSuite

LINES = ["one", "", "three ünï ✓", "four", "five"]


class TestFileStreamSource(SourceSuite):
    connector = FileStreamSourceConnector
    expected = LINES

    def given(self, folder):
        path = folder / "in.txt"
        path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
        return {"file": str(path), "topic": "lines"}


class TestFileStreamSink(SinkSuite):
    connector = FileStreamSinkConnector
    messages = LINES
    expected = LINES

    def given(self, folder):
        return {"file": str(folder / "out.txt"), "topics": "lines"}

    def stored(self, folder):
        path = folder / "out.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


# --- What they find ----------------------------------------------------------------------------------------------------


class Doubles(FileStreamSourceTask):
    """Hands on its first batch twice."""

    def poll(self):
        batch = super().poll()
        if batch is not None and not hasattr(self, "kept"):
            self.kept = batch
            return [batch, batch]
        return batch


class Forgets(FileStreamSourceTask):
    """Begins at the beginning, whatever was stored."""

    def initialize(self, context):
        context.offset_reader.offset = lambda partition: None
        super().initialize(context)


class Deaf(FileStreamSourceTask):
    """Does not hear that it is stopped."""

    def __init__(self):
        super().__init__(idle_seconds=60)

    def stop(self):
        pass


def faulty(task):
    kind = type("Faulty", (FileStreamSourceConnector,), {"task_class": task, "__module__": __name__})
    return type("Suite", (TestFileStreamSource,), {"connector": kind, "__test__": False})()


@pytest.mark.parametrize(
    "task, test, said",
    [
        (Doubles, "test_it_goes_on_behind_each_offset", "surplus"),
        (Forgets, "test_it_goes_on_behind_each_offset", "records arrived|started behind"),
        (Deaf, "test_a_poll_that_waits_comes_back_when_it_is_stopped", "continued for"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_faulty_source_is_found(task, test, said, tmp_path, monkeypatch):
    monkeypatch.setattr("standalone.suites.STOP_SECONDS", 1)
    with pytest.raises(AssertionError, match=said):
        getattr(faulty(task), test)(tmp_path)


def test_records_that_come_twice_are_found_by_a_worker(tmp_path):
    from standalone.local_worker import LocalWorker

    path = tmp_path / "in.txt"
    path.write_text("one\n")
    config = {"connector.class": f"{__name__}:FaultySource", "topic": "t", "file": str(path)}
    with LocalWorker(tmp_path) as worker, pytest.raises(AssertionError, match="2 records in .*, 1 more than expected"):
        worker.run_source(config, count=1)


class FaultySource(FileStreamSourceConnector):
    task_class = Doubles
