#!/usr/bin/env python3
"""Run random REST operations on busy connectors while numbered lines go file -> log -> file; then count lost and duplicated lines.

    scripts/soak/acts.py [--acts 60] [--lines 4000000] [--bootstrap HOST:PORT] [--chain none|columns|python]

Source and sink are paused and resumed, stopped and resumed, restarted, and given another configuration, at random moments and both at
once. Of none of this may a line be lost, doubled or moved. `--chain` is what the sink's records go through.
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]

import watched  # noqa: E402
from kill import CHAINS, Run  # noqa: E402

REFUSED = 0.5  # of the acts, at most: 409 while another is under way is an answer, but a soak of refusals proves nothing


class Busy(Run):
    def __init__(self, folder, bootstrap, lines, chain):
        super().__init__(folder, bootstrap, lines, chain)
        with open(folder / "worker.properties", "a") as file:
            file.write("offset.flush.interval.ms=500\n")
        self.done, self.refused = [], []

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"{self.rest}{path}", method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            data = answer.read()
        return json.loads(data) if data else None

    def act(self, name, chance):
        """One operation of a user, and its reverse."""
        path = f"/connectors/{name}"
        what = chance.choice(("pause", "pause", "stop", "restart", "restart all", "restart task", "config"))
        self.done.append(what)
        if what in ("pause", "stop"):
            self.ask("PUT", f"{path}/{what}")
            time.sleep(chance.uniform(0, 0.3))
            self.ask("PUT", f"{path}/resume")
        elif what == "restart":
            self.ask("POST", f"{path}/restart")
        elif what == "restart all":
            self.ask("POST", f"{path}/restart?includeTasks=true")
        elif what == "restart task":
            self.ask("POST", f"{path}/tasks/0/restart")
        else:
            self.ask("PUT", f"{path}/config", {**self.ask("GET", f"{path}/config"), "soak.turn": str(len(self.done))})

    def acts(self, name, count, chance):
        for _ in range(count):
            time.sleep(chance.uniform(0, 0.5))
            try:
                self.act(name, chance)
            except urllib.error.HTTPError as error:
                # While another act is under way, and while it is stopped and has no task.
                if error.code != 409 and not (error.code == 404 and error.url.endswith("/tasks/0/restart")):
                    raise
                self.refused.append(error.url)

    def check_states(self):
        """No act makes anything FAILED."""
        for name, views in self.ask("GET", "/connectors?expand=status").items():
            for part in (views["status"]["connector"], *views["status"]["tasks"]):
                if part["state"] == "FAILED":
                    sys.exit(f"{name} FAILED, and nobody asked for it:\n{part.get('trace')}")

    def check_acts(self, wanted):
        if len(self.done) < wanted or len(self.refused) > REFUSED * wanted:
            sys.exit(f"of {wanted} acts {len(self.done)} were tried and {len(self.refused)} refused: that proves nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--acts", type=int, default=60)
    parser.add_argument("--lines", type=int, default=4_000_000)
    parser.add_argument("--bootstrap", default="embedded")
    parser.add_argument("--chain", choices=CHAINS, default="none")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    run = Busy(pathlib.Path(tempfile.mkdtemp(prefix="soak-")), said.bootstrap, said.lines, said.chain)
    try:
        found = _soak(said, run)
    finally:
        watched.kill(run.process)
    if any(found):
        sys.exit(f"not as it must be; everything is kept in {run.folder}")
    shutil.rmtree(run.folder)


def _soak(said, run):
    chance = random.Random(said.seed)
    run.append(said.lines // 20, 0.01)
    run.start()
    run.moving_again(0)
    actors = [watched.watched(run.acts, run.names[kind], said.acts, random.Random(chance.random())) for kind in run.names]
    while any(actor.is_alive() for actor in actors) or run.written < said.lines:
        run.append(said.lines // 20, 0.01)  # as fast as can be written, so that there is always something under way
        time.sleep(0.5 if run.written < said.lines else 0.05)
        run.check_worker()
        run.check_states()
    for actor in actors:
        actor.finish()
    run.check_acts(said.acts * len(actors))
    run.wait_all()
    run.check_states()
    run.end(signal.SIGTERM)
    return run.judge(f"{len(run.done)} acts, {len(run.refused)} refused")


if __name__ == "__main__":
    main()
