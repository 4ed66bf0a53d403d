"""examples/nginx-logs, run in a worker with Debian's logrotate in both modes: every request comes once, in order."""

import json
import pathlib
import shutil
import subprocess

import pytest

from standalone.testing import LocalWorker

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "nginx-logs"
DEADLINE = 60
LINE = '10.0.0.7 - ann [22/Nov/2026:13:35:{:02d} +0000] "GET /page/{} HTTP/1.1" 200 {} "-" "curl/8.5.0"\n'


def example(name, folder):
    return (EXAMPLE / name).read_text().replace("/var/log/nginx", str(folder))


def properties(folder):
    pairs = (line.partition("=") for line in example("nginx-logs.properties", folder).splitlines() if "=" in line and not line.startswith("#"))
    return {key: value for key, _, value in pairs}


@pytest.mark.skipif(not shutil.which("logrotate", path="/usr/sbin:/usr/bin"), reason="there is no logrotate (Debian's logrotate)")
@pytest.mark.parametrize("mode", ["rename", "copytruncate"])
def test_every_request_comes_once(mode, tmp_path):
    logs = tmp_path / "nginx"
    logs.mkdir(mode=0o755)
    rules = tmp_path / "rules"
    rules.write_text(example(f"{mode}.logrotate", logs))
    rules.chmod(0o644)
    number = 0

    def write(count):
        nonlocal number
        with (logs / "access.log").open("a") as file:
            for number in range(number + 1, number + count + 1):
                file.write(LINE.format(number % 60, number, 100 + number))

    def rotate():
        command = shutil.which("logrotate", path="/usr/sbin:/usr/bin")
        subprocess.run([command, "--force", "--state", str(tmp_path / "state"), str(rules)], check=True, capture_output=True, timeout=DEADLINE)

    write(50)
    (logs / "error.log").write_text("2026/11/22 13:35:02 [error] 7#7: *1 open() failed\n")
    props = properties(logs)
    with LocalWorker(tmp_path / "worker") as worker:
        worker.create("nginx-logs", props)
        worker.values("logs.access", 50, DEADLINE)
        for _ in range(3):
            write(20)
            rotate()
            write(30)
            found = worker.values("logs.access", number, DEADLINE)
        errors = worker.values("logs.error", 1, DEADLINE)
    write(20)  # while nobody reads
    rotate()
    write(10)
    rotate()
    write(10)
    with LocalWorker(tmp_path / "worker") as worker:
        if "nginx-logs" not in worker.herder.names():
            worker.create("nginx-logs", props)
        found = worker.values("logs.access", number, DEADLINE)
    requests = [json.loads(each) for each in found]
    assert [request["path"] for request in requests] == [f"/page/{each}" for each in range(1, number + 1)]
    assert {(request["status"], request["user"], request["agent"]) for request in requests} == {(200, "ann", "curl/8.5.0")}
    assert "open() failed" in json.loads(errors[0])["unparsed"]
