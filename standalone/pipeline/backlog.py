"""A backlog waits for Spark while that starts: by rows it would take longer, and take the processor from the start.

Not the first records: those go by rows at once, and so does all that is too little to be called a backlog.
"""

import time

BY_ROWS_FIRST = 50_000  # in a run of large batches, where nobody knows how much follows: about a second's work
TOO_MUCH = 200_000  # records: where so many are known to follow, only the first batch goes by rows, which would take longer than the start
MOST_SECONDS = 10.0  # of waiting for one start; after them rows continue
LOOK_SECONDS = 0.1
LARGE = 2_000  # records of a batch where more seem to follow


class Backlog:
    """What one task has done by rows while Spark could not be had."""

    def __init__(self, session, stopping=None):
        """`session` is the SessionHolder or None, `stopping` an event that ends the waiting."""
        self._session, self._stopping = session, stopping
        self.follows = lambda: 0  # records that are known to
        self._by_rows = 0
        self._seconds_left = MOST_SECONDS

    def done_by_rows(self, count):
        self._by_rows = self._by_rows + count if count >= LARGE else 0

    @property
    def waits(self):
        """Whether the next large batch will wait for Spark."""
        if self._by_rows < LARGE or self._seconds_left <= 0 or self._session is None or not self._session.is_starting:
            return False
        return self._by_rows >= BY_ROWS_FIRST or self.follows() >= TOO_MUCH

    def spark_is_up(self):
        """Whether there is a session, where need be after waiting for it."""
        session = self._session
        while session.ready() is None and self.waits and not (self._stopping is not None and self._stopping.is_set()):
            began = time.monotonic()
            session.wait_for_start(min(LOOK_SECONDS, self._seconds_left))
            self._seconds_left -= time.monotonic() - began
        if session.ready() is None:
            return False
        self._by_rows, self._seconds_left = 0, MOST_SECONDS
        return True
