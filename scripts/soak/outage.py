#!/usr/bin/env python3
"""Stop, kill and freeze a real Kafka broker under a running worker; count what is lost or doubled and how soon it goes on.

    scripts/soak/outage.py [--seconds 20]

Lines are appended all the while; they go file -> topic -> file. Needs Java and Maven.
"""

import argparse
import pathlib
import shutil
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]

import kill  # noqa: E402
import watched  # noqa: E402

from tests.servers.kafka_broker import KafkaBroker  # noqa: E402

PER_SECOND = 2000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    said = parser.parse_args()
    broker = KafkaBroker()
    broker.start()
    outages = {
        "stopped": (broker.shut_down, broker.restart),
        "killed": (broker.kill, broker.restart),
        "frozen": (broker.freeze, broker.thaw),
    }
    bad = []
    try:
        for name, (begin, end) in outages.items():
            run = kill.Run(pathlib.Path(tempfile.mkdtemp(prefix="outage-")), broker.bootstrap, 10_000_000)
            run.start()
            try:
                total = int((10 + said.seconds + 20) * PER_SECOND)
                writer = watched.watched(run.append, total, total / PER_SECOND)
                run.moving_again(0)
                time.sleep(5)
                begin()
                time.sleep(said.seconds)
                size = run.sink.stat().st_size
                end()
                recovered = run.moving_again(size)
                writer.finish()
                run.wait_all()
                run.end(signal.SIGTERM)
                lost, repeated, misplaced, torn = run.judge(f"broker {name} for {said.seconds:.0f} s")
                print(f"  the sink moved again {recovered:.2f} s after the broker was back")
                if any((lost, repeated, misplaced, torn)) or recovered > 10:
                    bad.append(run.folder)
                else:
                    shutil.rmtree(run.folder)
            finally:
                watched.kill(run.process)
    finally:
        broker.stop()
    if bad:
        sys.exit(f"not as it must be; everything is kept in {', '.join(map(str, bad))}")


if __name__ == "__main__":
    main()
