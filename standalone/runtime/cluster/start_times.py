"""How long each step of a task's start on an executor took; sent to the worker with the task's first state.

    steps = Steps({"imports": 0.8})     in the executor task, as it begins
    steps.done("configuration")         seconds since the last step
    steps.told()                        {"steps": {...}, "ages": {...}}
    described(told, seconds)            the sentence that the worker logs
"""

import contextlib
import os
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_ABOVE = ("Python process", "Python daemon", "executor")  # a task's process, its parent and its grandparent


class Steps:
    def __init__(self, before):
        self._steps = dict(before)
        self._at = time.monotonic()

    def done(self, name):
        now = time.monotonic()
        self._steps[name] = now - self._at
        self._at = now

    def told(self):
        return {"steps": {name: round(seconds, 3) for name, seconds in self._steps.items()}, "ages": ages()}


def ages():
    """{process: age in seconds} of a task's process and its ancestors, if /proc is available."""
    found, pid = {}, os.getpid()
    with contextlib.suppress(OSError, IndexError, ValueError):
        for name in _ABOVE:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[name] = round(time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICKS, 2)
            pid = int(fields[1])
    return found


def described(told, seconds):
    steps = ", ".join(f"{name} {took:.2f}" for name, took in told["steps"].items())
    before = ", ".join(f"{name} {age:.1f}" for name, age in told["ages"].items())
    own = sum(told["steps"].values())
    return f"{seconds:.1f} s after it was submitted to Spark; its own steps took {own:.2f} s ({steps}); started, in seconds before: {before}"
