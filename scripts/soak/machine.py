#!/usr/bin/env python3
"""A live worker against a small model of it, for as many steps as asked for: tests/runtime/test_machine.py, and 200 callers at once for a minute.

    scripts/soak/machine.py [--steps 100000] [--seconds 60]
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    environment = {**os.environ, "MACHINE_STEPS": str(asked.steps), "CALLERS_SECONDS": str(asked.seconds)}
    tests = ["tests/runtime/test_machine.py", "tests/runtime/test_many_callers.py"]
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", "-s", "--timeout=0", *tests], cwd=ROOT, env=environment))


if __name__ == "__main__":
    main()
