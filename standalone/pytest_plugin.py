"""Fixtures for those who test connectors and transforms with pytest; installed with the package, and named by its entry point.

    def test_a_line_becomes_a_record(run_connector):
        assert [record.value for record in run_connector({"connector.class": "FileStreamSource", "topic": "t"}, ["foo"])] == [b"foo"]

Loading it imports nothing of the worker: that comes with the first test that asks for a fixture.
"""

import contextlib
import json

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden-files", action="store_true", help="write what the tests made into their golden files instead of comparing it"
    )


@pytest.fixture
def connect_worker(tmp_path_factory):
    """connect_worker(**worker properties): a started testing.LocalWorker, stopped after the test."""
    from standalone.local_worker import LocalWorker

    with contextlib.ExitStack() as running:

        def start(folder=None, **props):
            return running.enter_context(LocalWorker(folder or tmp_path_factory.mktemp("worker"), **props))

        yield start


@pytest.fixture
def run_connector(connect_worker):
    """run_connector(connector's properties, lines): run it on these lines, on its own worker.

    Of a source the records that came into its topic are returned, as testing.LogRecords. A sink is fed with the lines, and is done when
    it has committed the offsets after them. `worker` takes more properties of the worker.
    """

    def run(config, lines=None, count=None, worker=None, **more):
        started = connect_worker(**(worker or {}))
        if "topics" in config:
            return started.run_sink(config, lines or [], **more)
        return started.run_source(config, lines, count, **more)

    return run


@pytest.fixture
def apply_transforms():
    """apply_transforms(properties, record): the record after the transforms; None where it is dropped, a list where several come of it."""
    from standalone.local_worker import apply_transforms

    return apply_transforms


@pytest.fixture
def fail_calls():
    """fail_calls(class, "method", error, times=1): the first calls raise that error, until the test is over."""
    from standalone.local_worker import failing

    with contextlib.ExitStack() as undone:
        yield lambda *arguments, **named: undone.enter_context(failing(*arguments, **named))


@pytest.fixture
def golden_file(request):
    """golden_file("name.json", found): compare with the file of that name in the folder `golden` beside the test.

    Bytes and strings are compared as they are, all else as JSON. `pytest --update-golden-files` writes the file.
    """

    def check(name, found):
        path = request.path.parent / "golden" / name
        if isinstance(found, str):
            found = found.encode()
        elif not isinstance(found, (bytes, bytearray)):
            found = (json.dumps(found, indent=1, ensure_ascii=False, default=_shown) + "\n").encode()
        if request.config.getoption("--update-golden-files"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(found)
        assert path.exists(), f"there is no golden file {path}: write it with pytest --update-golden-files, and read it before you keep it"
        assert found.decode("utf-8", "backslashreplace") == path.read_bytes().decode("utf-8", "backslashreplace"), f"{path} says otherwise"

    return check


def _shown(value):
    """JSON for what JSON does not know: bytes as text."""
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "backslashreplace")
    raise TypeError(f"a {type(value).__name__} is nothing for a golden file: give texts, numbers, lists and dicts")
