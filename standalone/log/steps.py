"""Steps: network operations written once as generators, run blocking or non-blocking.

A generator yields a `Wait` whenever it must wait, is resumed afterwards, and returns its result. `finish` blocks; an `Underway` lets a
thread continue many at once, so that one silent broker does not delay the others.
"""

import collections
import select

from standalone.errors import LogError

FOREVER = float("inf")

# Wait for `file` (an object with fileno(), or None) to be ready for `events` of select.poll, at most until a time of the clock.
Wait = collections.namedtuple("Wait", "file events until")


def finish(steps, clock, pause=None):
    """Run steps to their end on this thread and return the result. `pause(seconds)` waits if there is no file."""
    try:
        wait = next(steps)
        while True:
            seconds = max(0.0, wait.until - clock.monotonic())
            if wait.file is not None:
                poller = select.poll()
                poller.register(wait.file, wait.events)
                poller.poll(None if seconds == FOREVER else seconds * 1000 + 0.5)
            elif pause is not None:
                pause(seconds)
            wait = next(steps)
    except StopIteration as end:
        return end.value


class Underway:
    """Steps that a thread advances when it can. Calls `then(result, None)` or `then(None, LogError)` at the end.

    Nothing runs before the first `advance`, or after the last one.
    """

    def __init__(self, steps, then):
        self._steps, self._then = steps, then
        self._wait = Wait(None, 0, 0.0)

    @property
    def over(self):
        return self._wait is None

    @property
    def until(self):
        """When to call `advance` even if the file is not ready."""
        return self._wait.until if self._wait is not None else FOREVER

    def register(self, poller):
        """Register with a select.poll; return the file's number, or None if there is nothing to poll."""
        if self._wait is None or self._wait.file is None:
            return None
        poller.register(self._wait.file, self._wait.events)
        return self._wait.file.fileno()

    def advance(self):
        """Continue until the next wait."""
        if self._wait is None:
            return
        try:
            self._wait = next(self._steps)
        except StopIteration as end:
            self._wait = None
            self._then(end.value, None)
        except LogError as error:
            self._wait = None
            self._then(None, error)

    def close(self):
        """Abandon the steps; `then` is not called."""
        self._wait = None
        self._steps.close()
