"""What waits for the network several times, written once as a generator and run in two ways.

A generator of steps yields a `Wait` wherever it has to wait, is resumed when that is over, and returns its result. `finish` waits in
its place; an `Underway` lets a thread continue with many at once, so that one broker that does not answer holds up nothing else.
"""

import collections
import select

from standalone.errors import LogError

FOREVER = float("inf")

# For `file` (anything with fileno(), or None) to be ready for `events` of select.poll, at most until a moment of the clock.
Wait = collections.namedtuple("Wait", "file events until")


def finish(steps, clock, pause=None):
    """The result of steps, waited for on this thread. `pause(seconds)` waits where there is no file to wait for."""
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
    """Steps that a thread continues with when it can. `then(result, None)` or `then(None, LogError)` is called when they are over.

    Nothing runs before the first `advance`, and nothing after the one that ends it.
    """

    def __init__(self, steps, then):
        self._steps, self._then = steps, then
        self._wait = Wait(None, 0, 0.0)

    @property
    def over(self):
        return self._wait is None

    @property
    def until(self):
        """When `advance` is worth a call though the file is not ready."""
        return self._wait.until if self._wait is not None else FOREVER

    def register(self, poller):
        """With a select.poll; the file's number, or None where there is nothing to poll."""
        if self._wait is None or self._wait.file is None:
            return None
        poller.register(self._wait.file, self._wait.events)
        return self._wait.file.fileno()

    def advance(self):
        """Go on as far as there is nothing to wait for."""
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
        """Give it up; `then` is not called."""
        self._wait = None
        self._steps.close()
