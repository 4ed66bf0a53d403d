"""While Spark starts, a backlog waits for it: the rows engine would be slower and take CPU time from the start.

The first records do not wait: the rows engine processes them at once, like everything that is too little to be a backlog.
"""

import time

BY_ROWS_FIRST = 50_000  # in a run of large batches, where nobody knows how much follows: about a second's work
TOO_MUCH = 200_000  # records: where so many are known to follow, only the first batch goes by rows, which would take longer than the start
MOST_SECONDS = 10.0  # of waiting for one start; after them rows continue
LOOK_SECONDS = 0.1
LARGE = 2_000  # records in a batch that suggest a backlog


class Backlog:
    """Decides when a task's batches wait for Spark."""

    def __init__(self, session, stopping=None):
        """`session` is the SessionHolder or None; `stopping` is an event that ends the wait."""
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
        """Whether there is a session; waits for it first if needed."""
        session = self._session
        while session.ready() is None and self.waits and not (self._stopping is not None and self._stopping.is_set()):
            began = time.monotonic()
            session.wait_for_start(min(LOOK_SECONDS, self._seconds_left))
            self._seconds_left -= time.monotonic() - began
        if session.ready() is None:
            return False
        self._by_rows, self._seconds_left = 0, MOST_SECONDS
        return True
