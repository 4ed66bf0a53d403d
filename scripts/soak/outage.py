#!/usr/bin/env python3
"""Stop, kill and freeze a real Kafka broker under a running worker; count what is lost or doubled and how soon it goes on.

    scripts/soak/outage.py [--seconds 20]

Lines are appended all the while; they go file -> topic -> file. Needs Java and Maven.
"""

import argparse
import importlib.util
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]
PER_SECOND = 2000


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    said = parser.parse_args()
    kill = load(ROOT / "scripts" / "soak" / "kill.py")
    broker = load(ROOT / "tests" / "servers" / "kafka_broker.py").KafkaBroker()
    broker.start()
    outages = {
        "stopped": (broker.shut_down, broker.restart),
        "killed": (broker.kill, broker.restart),
        "frozen": (broker.freeze, broker.thaw),
    }
    bad = False
    try:
        for name, (begin, end) in outages.items():
            run = kill.Run(pathlib.Path(tempfile.mkdtemp(prefix="outage-")), broker.bootstrap, 10_000_000)
            run.start()
            try:
                total = int((10 + said.seconds + 20) * PER_SECOND)
                writer = threading.Thread(target=run.append, args=(total, total / PER_SECOND))
                writer.start()
                run.moving_again(0)
                time.sleep(5)
                begin()
                time.sleep(said.seconds)
                size = run.sink.stat().st_size
                end()
                recovered = run.moving_again(size)
                writer.join()
                run.wait_all()
                lost, repeated, misplaced, torn = run.judge(f"broker {name} for {said.seconds:.0f} s")
                print(f"  the sink moved again {recovered:.2f} s after the broker was back")
                bad |= any((lost, repeated, misplaced, torn)) or recovered > 10
            finally:
                run.end(signal.SIGTERM)
            if not bad:
                shutil.rmtree(run.folder)
    finally:
        broker.stop()
    if bad:
        sys.exit(f"not as it must be; see {run.folder}")


if __name__ == "__main__":
    main()
