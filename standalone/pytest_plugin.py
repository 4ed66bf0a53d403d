"""pytest fixtures for tests of connectors and transforms; installed with the package as an entry point.

    def test_a_line_becomes_a_record(run_connector):
        assert [record.value for record in run_connector({"connector.class": "FileStreamSource", "topic": "t"}, ["foo"])] == [b"foo"]

Loading it does not import the worker: the first test that uses a fixture does.
"""

import contextlib
import json

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden-files", action="store_true", help="write the tests' results to their golden files instead of comparing them"
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
    """run_connector(connector's properties, lines): run it on these lines in its own worker.

    For a source, returns the records in its topic as testing.LogRecords. A sink receives the lines and is done once it has committed
    their offsets. `worker` takes further worker properties.
    """

    def run(config, lines=None, count=None, worker=None, **more):
        started = connect_worker(**(worker or {}))
        if "topics" in config:
            return started.run_sink(config, lines or [], **more)
        return started.run_source(config, lines, count, **more)

    return run


@pytest.fixture
def apply_transforms():
    """apply_transforms(properties, record): the record after the transforms; None if it is dropped, a list if there are several."""
    from standalone.local_worker import apply_transforms

    return apply_transforms


@pytest.fixture
def fail_calls():
    """fail_calls(class, "method", error, times=1): the first calls raise the error, until the test ends."""
    from standalone.local_worker import failing

    with contextlib.ExitStack() as undone:
        yield lambda *arguments, **named: undone.enter_context(failing(*arguments, **named))


@pytest.fixture
def golden_file(request):
    """golden_file("name.json", found): compare with this file in the folder `golden` beside the test.

    Bytes and strings are compared directly, everything else as JSON. `pytest --update-golden-files` writes the file.
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
        assert path.exists(), f"there is no golden file {path}: write it with pytest --update-golden-files, and review it before you commit it"
        assert found.decode("utf-8", "backslashreplace") == path.read_bytes().decode("utf-8", "backslashreplace"), f"{path} says otherwise"

    return check


def _shown(value):
    """Bytes as text, for JSON."""
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "backslashreplace")
    raise TypeError(f"a {type(value).__name__} cannot be written to a golden file: use bytes, strings, numbers, lists and dicts")
