#!/usr/bin/env python3
"""The state machine of tests/connectors/logs/machine.py, for long: logs_machine.py [--examples 400] [--steps 100]."""

import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main():
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    from tests.connectors.logs.machine import LogsMachine

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--examples", type=int, default=400)
    options.add_argument("--steps", type=int, default=100)
    chosen = options.parse_args()
    begun = time.monotonic()
    checks = list(HealthCheck)
    run_state_machine_as_test(
        LogsMachine, settings=settings(max_examples=chosen.examples, stateful_step_count=chosen.steps, deadline=None, suppress_health_check=checks)
    )
    print(f"{chosen.examples} runs of at most {chosen.steps} steps: nothing lost, nothing twice, in order; {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
