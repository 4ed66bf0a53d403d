#!/usr/bin/env python3
"""The state machine of tests/connectors/logs/machine.py, for long: logs_machine.py [--examples 500] [--steps 100] [--seeds 1,2,3].

Each seed walks its own ways, the same every time; without one they are new each time.
"""

import argparse
import logging
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main():
    from hypothesis import HealthCheck, seed, settings
    from hypothesis.stateful import run_state_machine_as_test

    from tests.connectors.logs.machine import LogsMachine

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--examples", type=int, default=500)
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--seeds", type=lambda text: [int(each) for each in text.split(",")], default=[None])
    chosen = options.parse_args()
    logging.disable(logging.WARNING)  # of truncations, by the thousand
    wanted = settings(
        max_examples=chosen.examples, stateful_step_count=chosen.steps, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    for number in chosen.seeds:
        begun = time.monotonic()
        machine = LogsMachine if number is None else seed(number)(type("Walk", (LogsMachine,), {}))
        run_state_machine_as_test(machine, settings=wanted)
        said = "" if number is None else f"seed {number}: "
        took = time.monotonic() - begun
        print(f"{said}{chosen.examples} walks of at most {chosen.steps} steps: nothing lost, nothing twice, in order; {took:.0f} s", flush=True)


if __name__ == "__main__":
    main()
