"""The clock of runtime, log and rest; tests inject their own."""

import time


class Clock:
    """Real time. `wait` is the only way to wait: on an event, with a timeout."""

    def now_ms(self):
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self):
        """Monotonic seconds."""
        return time.monotonic()

    def wait(self, event, seconds):
        """Wait for the threading.Event or Condition, up to the timeout; returns whether it was signalled."""
        return event.wait(seconds)


SYSTEM = Clock()
