"""How many examples of a property are tried: one profile, and a longer form of it for the night.

    pytest                          the same examples every time, so that a commit is judged by what it changed
    CONNECT_TEST_EXAMPLES=20        twenty times as many, other ones every time; what failed is printed for @reproduce_failure
    CONNECT_TEST_EXAMPLES=0.1       a tenth of them, the same every time: scripts/quick

No profile has a deadline for a single example: what it measures is the machine's other work.
"""

import os

from hypothesis import HealthCheck, is_hypothesis_test, settings

TIMES = float(os.environ.get("CONNECT_TEST_EXAMPLES", "1"))
FEWEST = 5
_HELD = "_hypothesis_internal_use_settings"  # where hypothesis keeps the settings of a test; tests/test_suite.py notices if that moves

settings.register_profile("commit", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("night", deadline=None, derandomize=False, print_blob=True, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure(config):
    settings.load_profile("commit" if TIMES <= 1 else "night")


def pytest_collection_modifyitems(items):
    if TIMES != 1:
        for machine in {item.cls for item in items if isinstance(getattr(item.cls, "settings", None), settings)}:
            machine.settings = scaled(machine.settings)
        for test in {getattr(item, "function", None) for item in items}:
            if is_hypothesis_test(test):
                setattr(test, _HELD, scaled(getattr(test, _HELD, settings.default)))


def scaled(known, times=TIMES):
    """The same settings with that many times the examples; where they are more, other ones every time."""
    examples = max(min(known.max_examples, FEWEST), int(known.max_examples * times))
    return settings(known, max_examples=examples, derandomize=known.derandomize and times <= 1)
