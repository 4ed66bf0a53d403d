"""connectctl as a person or a script calls it, on a real worker over real HTTP."""

import json

import pytest
from click.testing import CliRunner

from standalone.cli.ctl import main
from tests.runtime.local import LocalWorker, wait_for


class Ctl:
    """`ctl("status", "x")` runs it, must end with exit code 0 (or `code`), and gives what it printed; `ctl.json(...)` what it said as JSON."""

    def __init__(self, url=None):
        self.url = url

    def run(self, *arguments, input=None, color=False, env=None):
        options = ["--url", self.url] if self.url else []
        return CliRunner().invoke(main, [*options, *map(str, arguments)], input=input, color=color, env=env, prog_name="connectctl")

    def __call__(self, *arguments, code=0, **more):
        result = self.run(*arguments, **more)
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return result.output

    def json(self, *arguments, code=0, **more):
        result = self.run(*arguments, "--json", **more)
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return json.loads(result.stdout)

    def lines(self, *arguments, code=0, **more):
        """What it said as a line of JSON each."""
        result = self.run(*arguments, "--json", **more)
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="package")
def worker(tmp_path_factory):
    with LocalWorker(tmp_path_factory.mktemp("worker")) as worker:
        yield worker


@pytest.fixture
def ctl(worker):
    ctl = Ctl("http://{}:{}".format(*worker.process.rest.address))
    yield ctl
    for name in worker.herder.names():
        worker.herder.delete(name)


@pytest.fixture
def local():
    """connectctl without a worker: what works on files alone."""
    return Ctl()


@pytest.fixture
def source(worker, tmp_path):
    """source("name", key=value): a running file source on its own topic; its input is tmp_path/name.txt."""

    def make(name, lines="one\ntwo\n", **config):
        path = tmp_path / f"{name}.txt"
        path.write_text(lines)
        worker.source(name, path, config.pop("topic", name), **config)
        worker.wait_states(name, "RUNNING", "RUNNING")
        return path

    return make


@pytest.fixture
def until():
    return wait_for
