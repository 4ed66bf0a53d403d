"""connect-standalone as a process in a folder of its own, for tests of the command itself."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

from tests.runtime.local import STRING, wait_for
from tests.servers.kafka_broker import free_port
from tests.suite.patience import PATIENCE_SECONDS

GOOD = {"name": "ok1", "connector.class": "FileStreamSource", "topic": "t", "file": "in.txt"}


class Command:
    """connect-standalone in a folder of its own; with `forks` (tests/forked.py) it comes up without its imports' second."""

    def __init__(self, folder, forks=None):
        self.folder = folder
        self.forks = forks
        self.port = free_port()
        self.process = None

    def worker(self, without=(), **props):
        base = {
            "bootstrap.servers": "embedded",
            "embedded.log.listener": "127.0.0.1:0",
            "embedded.log.retention.ms": "-1",
            "listeners": f"http://127.0.0.1:{self.port}",
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": str(self.folder / "connect.offsets"),
        }
        merged = {**base, **{key.replace("__", "."): value for key, value in props.items()}}
        return self.file("worker.properties", "".join(f"{key}={value}\n" for key, value in merged.items() if key not in without))

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return str(path)

    def connector(self, path="c.properties", **props):
        return self.file(path, "".join(f"{key.replace('__', '.')}={value}\n" for key, value in {**GOOD, **props}.items()))

    def start(self, *arguments, stdin=subprocess.DEVNULL, **environment):
        self.log = open(self.folder / "log", "w+")
        if self.forks is not None:
            environment = {name: value for name, value in environment.items() if value}
            self.process = self.forks.start(arguments, self.folder, stdin, self.log, environment)
            return self
        self.process = subprocess.Popen(
            [sys.executable, "-m", "standalone.cli.worker", *arguments],
            cwd=self.folder,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            stdin=stdin,
            env={**os.environ, "PYTHONPATH": os.getcwd(), **{name: value for name, value in environment.items() if value}},
        )
        return self

    def run(self, *arguments, seconds=PATIENCE_SECONDS):
        """(exit code, output) of a command that ends by itself."""
        self.start(*arguments)
        try:
            code = self.process.wait(seconds)
        finally:
            self.stop()
        return code, self.output()

    def output(self):
        return (self.folder / "log").read_text()

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return json.load(response)
        except OSError:
            return None

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            assert response.status < 300
            return json.loads(response.read() or "null")

    def states(self):
        found = self.get("/connectors?expand=status") or {}
        return {name: views["status"]["connector"]["state"] for name, views in found.items()}

    def wait_up(self):
        wait_for(lambda: (self.get("/health") or {}).get("status") == "healthy" or self.process.poll() is not None)
        assert self.process.poll() is None, self.output()

    def stop(self, number=signal.SIGTERM):
        """The exit code after that signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode
