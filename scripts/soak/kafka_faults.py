#!/usr/bin/env python3
"""Runs a worker through each fault of real brokers and their network, long enough to have an effect, and reports the result.

    scripts/soak/kafka_faults.py [--seconds 20] [--brokers 1|3|both] [--only WORD] [--report FILE]

Numbered lines go file -> topic -> file with Java's default timeouts while each fault of tests/log/kafka_faults.py begins, lasts and ends; on
one broker, and on a cluster of three. SIGSTOP and silence last a minute. Told are what is lost, doubled or out of place, how soon lines came
through again, what the worker held, and what it said. Needs Java and Maven.
"""

import argparse
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.log import kafka_faults  # noqa: E402
from tests.servers.kafka_cluster import KafkaCluster  # noqa: E402

MEMORY_BYTES = 100 << 20  # more than that between the first fault and the last is a leak
HEAD = "| brokers | fault | lines | lost | doubled | out of order | steps back | again after | memory | the worker said |\n" + "|---" * 10 + "|"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--brokers", choices=("1", "3", "both"), default="both")
    parser.add_argument("--only", default="", help="faults with this in their name")
    parser.add_argument("--report", type=pathlib.Path, help="where the table is written, too")
    said = parser.parse_args()
    rows, bad = [HEAD], []
    print(HEAD, flush=True)
    for size in {"1": [1], "3": [3], "both": [1, 3]}[said.brokers]:
        for row, problem in _all(size, said):
            print(row, flush=True)
            rows.append(row)
            bad += problem
    if said.report:
        said.report.write_text(f"{time.strftime('%Y-%m-%d')}, each fault for {said.seconds:.0f} s\n\n" + "\n".join(rows) + "\n")
    if bad:
        sys.exit("not as it must be:\n" + "\n".join(bad))


def _all(size, said):
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, KafkaCluster(size) as cluster:
        stage, first = kafka_faults.Stage(cluster, folder), None
        try:
            for name, fault in kafka_faults.FAULTS.items():
                if said.only not in name or fault.brokers > size:
                    continue
                since = len(stage.lab.output())
                try:
                    verdict, again, line = fault.through(stage, name, max(said.seconds, fault.least_long))
                except AssertionError as error:
                    yield f"| {size} | {name} | | | | | | | | {str(error)[:300]} |", [f"{size} brokers, {name}: {error}"]
                    continue
                memory = stage.memory()
                first = first or memory
                problems = verdict.problems()
                if memory - first > MEMORY_BYTES:
                    problems["memory"] = f"{first >> 20} MiB at first, {memory >> 20} MiB now"
                lost = verdict.lost + verdict.missing_in_topic
                told = _short(line or next(iter(stage.warnings(since)), "nothing"))
                yield (
                    f"| {size} | {name} | {verdict.lines} | {lost} | {verdict.doubled_in_topic} | {verdict.misplaced + verdict.misplaced_in_topic} | "
                    f"{verdict.redelivered} | {again:.1f} s | {memory >> 20} MiB | {told} |",
                    [f"{size} brokers, {name}: {problems}"] if problems else [],
                )
        finally:
            stage.close()


def _short(line):
    """A line of the log without its time and place."""
    return re.sub(r"^\[.*?\] (WARN|ERROR) *", "", line.replace("|", "/"))[:160]


if __name__ == "__main__":
    main()
