"""The way of PUT /connectors/NAME/config through the code, file by file, is the one that the README lists, and a short one."""

import functools
import pathlib
import re
import sys
import threading

import anyio.to_thread

import standalone
from standalone import SourceConnector, SourceTask
from standalone.runtime.calls import Mailbox
from tests.rest.conftest import Api
from tests.runtime.local import LocalWorker, wait_for

ROOT = pathlib.Path(standalone.__file__).parent
MOST = 12
_way = threading.local()  # .before: the files that led to this thread's work
FOUND = []


def way_to_here():
    """The files of ours that led here, each once in a row: on this thread's stack, and before it on those that had this done."""
    frame, files = sys._getframe(1), []
    while frame is not None:
        path = pathlib.Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            files.append(str(path.relative_to(ROOT)))
        frame = frame.f_back
    way = [*getattr(_way, "before", ()), *reversed(files)]
    return [file for at, file in enumerate(way) if not at or way[at - 1] != file]


def following(call):
    """The same call, to be made on another thread: what led to its being ordered leads to it."""
    before = way_to_here()

    @functools.wraps(call)
    def followed(*arguments):
        _way.before = before
        return call(*arguments)

    return followed


class Task(SourceTask):
    def start(self, config):
        FOUND.append(way_to_here())
        self.over = threading.Event()

    def poll(self):
        self.over.wait()

    def stop(self):
        self.over.set()


class Source(SourceConnector):
    task_class = Task


def test_the_way_of_a_configuration_is_short_and_told(tmp_path, monkeypatch):
    post, start, run_sync = Mailbox.post, threading.Thread.start, anyio.to_thread.run_sync

    def start_following(thread):
        thread.run = following(thread.run)
        start(thread)

    monkeypatch.setattr(Mailbox, "post", lambda self, call, *more, **named: post(self, following(call), *more, **named))
    monkeypatch.setattr(threading.Thread, "start", start_following)
    monkeypatch.setattr(anyio.to_thread, "run_sync", lambda call, *arguments, **named: run_sync(following(call), *arguments, **named))
    with LocalWorker(tmp_path) as worker:
        Api(worker).json("PUT", "/connectors/x/config", {"connector.class": f"{__name__}:Source"}, status=201)
        (way,) = wait_for(lambda: FOUND)
    readme = (ROOT.parent / "README.md").read_text()
    told = re.search(r"`PUT /connectors/NAME/config` passes through these files.*?\n\n((?:[0-9]+\. .*\n)+)", readme)[1].splitlines()
    files = [file for step in told for file in re.findall(r"`((?:rest|runtime)/[a-z_/]+\.py)`", step)]
    assert files == way[way.index("rest/masked.py") :], f"README.md lists other files than {' → '.join(way)}"
    assert len(told) <= MOST
