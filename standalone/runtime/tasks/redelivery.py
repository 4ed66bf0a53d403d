"""Retries a put that raised RetriableError, with the same records, until the task accepts them or fails.

Nothing is fetched meanwhile, but the consumer must keep polling to stay in the group; records of partitions that are revoked are left out
of the next attempt.
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
        """Put these, with as many retries as needed. Raises all the task's errors except RetriableError; Stopped if the task is to stop."""
        try:
            self._task.put(records)
        except RetriableError as error:
            with self._assigned.repeating():
                self._repeat(records, error)

    def _repeat(self, records, error):
        is_empty, pauses = not records, self._retries.pauses()
        while error is not None:
            if self._retries.stopping.is_set():
                raise Stopped("The task was stopped during the retry of a put; its records are redelivered.") from error
            count = sum(map(len, records)) if self._task.takes_batches else len(records)
            log.warning("The put of %d records failed and will be retried: %s", count, error)
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
        """Poll at least once, as Java does: even a short wait keeps the membership alive, and handles a rebalance."""
        until = self._clock.monotonic() + self._context.take_timeout(seconds)
        while not self._retries.stopping.is_set():
            left = until - self._clock.monotonic()
            if self._consumer.poll(max(0.0, min(left, POLL_SECONDS))):
                raise ConnectError(  # continuing would lose them; no offset was committed
                    "Records were fetched while a put was being retried. This is a bug of the worker; restart the task to redeliver them."
                )
            if self._clock.monotonic() >= until:
                return
