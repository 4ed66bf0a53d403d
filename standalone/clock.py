"""The clock that runtime, log and rest are handed, so that a test may hand them another."""

import time


class Clock:
    """Real time. `wait` is the only way the program passes time: on an event, with a deadline."""

    def now_ms(self):
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self):
        """Seconds that never go back."""
        return time.monotonic()

    def wait(self, event, seconds):
        """Wait until the threading.Event or Condition is signalled, at most so long; whether it was."""
        return event.wait(seconds)


SYSTEM = Clock()
