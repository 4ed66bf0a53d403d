"""files.allowed.paths: file connectors open nothing outside of it, by whatever name, link or change of links."""

import os

import pytest
from pytest import param

from standalone import files
from standalone.errors import ConfigError
from tests.runtime.local import LocalWorker, wait_for


@pytest.fixture(autouse=True)
def all_again():
    yield
    files.allow_only(None)


@pytest.fixture
def place(tmp_path):
    """A folder that is allowed, one that is not, and ways from the one into the other."""
    inside, outside = tmp_path / "logs", tmp_path / "secret"
    for folder in (inside, outside, tmp_path / "logs-not"):
        folder.mkdir()
        (folder / "a.log").write_text("line\n")
    (inside / "link.log").symlink_to(outside / "a.log")
    (inside / "folder").symlink_to(outside)
    (inside / "own.log").symlink_to(inside / "a.log")
    (tmp_path / "by-link").symlink_to(inside)
    return tmp_path


@pytest.mark.parametrize(
    "path, passes",
    [
        param("logs/a.log", True, id="a file in it"),
        param("logs/new.log", True, id="one that is not there yet"),
        param("logs/own.log", True, id="a link that stays in it"),
        param("by-link/a.log", True, id="by a link that leads into it"),
        param("logs", True, id="the folder itself"),
        param("one.log", True, id="a file that is named itself"),
        param("secret/a.log", False, id="elsewhere"),
        param("logs-not/a.log", False, id="a folder whose name begins so"),
        param("logs/../secret/a.log", False, id="by way of it"),
        param("logs/link.log", False, id="a link that leads out"),
        param("logs/folder/a.log", False, id="a folder that is a link"),
        param("logs/folder/new.log", False, id="a new file behind such a link"),
        param("one.log.1", False, id="beside a file that is named itself"),
    ],
)
def test_paths(place, path, passes):
    files.allow_only([str(place / "logs"), str(place / "one.log")])
    if passes:
        files.check_allowed_file(str(place / path))
        return
    with pytest.raises(ConfigError, match="files.allowed.paths"):
        files.check_allowed_file(str(place / path))
    with pytest.raises(ConfigError):
        files.open_allowed(str(place / path), os.O_WRONLY | os.O_CREAT)
    assert not (place / "secret" / "new.log").exists()


def test_an_allowed_path_may_be_a_link_itself(place):
    files.allow_only([str(place / "by-link")])
    files.check_allowed_file(str(place / "logs" / "a.log"))


def test_a_link_that_is_put_in_its_way_at_the_last_moment(place, monkeypatch):
    """The check is of what was opened, too."""
    files.allow_only([str(place / "logs")])
    target = str(place / "logs" / "a.log")
    monkeypatch.setattr(files.os.path, "realpath", lambda path: str(path))  # as if the links had changed since they were looked at
    os.remove(target)
    os.symlink(place / "secret" / "a.log", target)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConfigError):
        files.open_allowed(target, os.O_RDONLY)
    assert len(os.listdir("/proc/self/fd")) == before, "and it is closed again"


@pytest.mark.parametrize("connector, keys", [("FileStreamSource", {"topic": "t"}), ("FileStreamSink", {"topics": "t"})])
@pytest.mark.parametrize("path", ["secret/a.log", "logs/link.log", "logs/folder/new.log"])
def test_no_connector_is_made_on_another_file(place, connector, keys, path):
    with LocalWorker(place / "logs", **{"files.allowed.paths": str(place / "logs")}) as worker:
        with pytest.raises(ConfigError, match="files.allowed.paths") as raised:
            worker.create("c", {"connector.class": connector, "file": str(place / path), **keys})
        assert set(raised.value.errors) == {"file"}
        worker.create("c", {"connector.class": connector, "file": str(place / "logs" / "a.log"), **keys})


def test_a_source_whose_file_becomes_a_link_outside_fails(place):
    path = place / "logs" / "a.log"
    with LocalWorker(place / "logs", **{"files.allowed.paths": str(place / "logs")}) as worker:
        worker.source("c", str(path), "t", **{"file.rotate.wait.ms": "0"})
        assert worker.values("t", 1) == [b"line"]
        path.unlink()
        path.symlink_to(place / "secret" / "a.log")
        wait_for(lambda: worker.states("c") == ["RUNNING", "FAILED"], what="the task to fail")
        assert "files.allowed.paths" in worker.trace("c")


def test_a_rotated_file_outside_is_not_looked_at(place):
    """Only the file itself is allowed: what is beside it is not read, and no error."""
    path = place / "logs" / "a.log"
    with LocalWorker(place / "logs", **{"files.allowed.paths": str(path)}) as worker:
        worker.source("c", str(path), "t", **{"file.rotate.wait.ms": "0"})
        assert worker.values("t", 1) == [b"line"]
        path.rename(place / "logs" / "a.log.1")
        path.write_text("new\n")
        assert worker.values("t", 2) == [b"line", b"new"]
        assert worker.states("c") == ["RUNNING", "RUNNING"]


def test_relative_paths_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="files.allowed.paths"), LocalWorker(tmp_path, **{"files.allowed.paths": "logs"}):
        pass
