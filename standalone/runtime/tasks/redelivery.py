"""A put that asks for a retry is repeated with the same records until the task takes them, or gives up.

Meanwhile nothing is fetched, but the group must see that the task lives, and may take partitions away: their records are left out of the
next attempt.
"""

import logging

from standalone.errors import ConnectError, RetriableError, Stopped

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0


class Redelivery:
    def __init__(self, task, assigned, consumer, context, retries, clock):
        self._task = task
        self._assigned = assigned
        self._consumer = consumer
        self._context = context
        self._retries = retries
        self._clock = clock

    def put(self, records):
        """Put these, however often it takes. Raises what the task raises but RetriableError; Stopped if the task is to stop."""
        try:
            self._task.put(records)
        except RetriableError as error:
            with self._assigned.repeating():
                self._repeat(records, error)

    def _repeat(self, records, error):
        is_empty, pauses = not records, self._retries.pauses()
        while error is not None:
            if self._retries.stopping.is_set():
                raise Stopped("The task was stopped while a put was still to be repeated; its records are redelivered.") from error
            count = sum(map(len, records)) if self._task.takes_batches else len(records)
            log.warning("The task asks for the same %d records again: %s", count, error)
            self._retries.failed()
            self._wait(next(pauses))
            records = self._assigned.still_ours(records)
            error = self._attempt(records) if is_empty or records else None

    def _attempt(self, records):
        try:
            self._task.put(records)
        except RetriableError as error:
            return error
        return None

    def _wait(self, seconds):
        """Poll at least once, as Java does: however short the time is, the group sees that the task lives, and may take partitions away."""
        until = self._clock.monotonic() + self._context.take_timeout(seconds)
        while not self._retries.stopping.is_set():
            left = until - self._clock.monotonic()
            if self._consumer.poll(max(0.0, min(left, POLL_SECONDS))):
                raise ConnectError(  # better than to continue without them: no offset has moved
                    "Records were fetched while a put was being repeated. This is a fault of the worker; restart the task: they come again."
                )
            if self._clock.monotonic() >= until:
                return
