"""The clock of runtime, log and REST, which tests replace."""

import time


class Clock:
    """Real time. All waits go through `wait`, on an event with a timeout."""

    def now_ms(self):
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self):
        """Seconds that never go back."""
        return time.monotonic()

    def wait(self, event, seconds):
        """Wait at most so long until the threading.Event or Condition is signalled; return whether it was."""
        return event.wait(seconds)


SYSTEM = Clock()
