"""Send bulk requests: several in flight, each on its own thread until all its documents are settled.

Documents rejected temporarily are retried on their own; those rejected permanently are passed to `refused`. A request that cannot be
settled fails the sender and stays outstanding, so that no later offset is committed.
"""

import concurrent.futures
import logging
import random
import threading
import time

from connectors.elasticsearch import bulk as b
from connectors.elasticsearch.lines import Malformed
from connectors.elasticsearch.server import Refused, Unreachable
from standalone import ConnectError

log = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 60.0
_HALVED = (400, 413)  # the server rejected the whole request for one document, or for its size


class Sender:
    """`refused(piece, place, error)` handles a malformed document, on any thread; it raises if that fails the task."""

    def __init__(self, config, server, counts, refused):
        self._server, self._counts, self._refused = server, counts, refused
        self._most = config["max.in.flight.requests"]
        self._max_retries = config["max.retries"]
        self._backoff_seconds = config["retry.backoff.ms"] / 1000
        self._threads = concurrent.futures.ThreadPoolExecutor(self._most, thread_name_prefix="bulk")
        self._changed = threading.Condition()
        self._outstanding = []  # unsettled bulks, including failed ones
        self._ids = set()  # of documents in them, if order depends on ids
        self._running = 0
        self._failure = None
        self._closing = threading.Event()
        self.trouble = None  # why the last request failed, until one succeeds
        self.progress_at = time.monotonic()

    def raise_failure(self):
        if self._failure is not None:
            raise self._failure

    @property
    def has_room(self):
        return self._running < self._most

    def send(self, bulk, seconds):
        """Send a bulk; return False if there is no free slot for `seconds`. Raise the sender's failure."""
        with self._changed:
            if not self._running:
                self.progress_at = time.monotonic()
            free = self._changed.wait_for(lambda: self._failure or self._running < self._most and self._ids.isdisjoint(bulk.ids), seconds)
            self.raise_failure()
            if not free:
                return False
            self._outstanding.append(bulk)
            self._ids |= bulk.ids
            self._running += 1
        self._threads.submit(self._settle, bulk)
        return True

    def wait(self, seconds):
        """Wait up to `seconds`; return whether everything is settled."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds) and not self._outstanding

    def first_offsets(self):
        """Return {(topic, partition): the lowest unsettled offset}."""
        found = {}
        with self._changed:
            for bulk in self._outstanding:
                for piece in bulk.pieces:
                    if piece.pair is not None:
                        found[piece.pair] = min(piece.first_offset, found.get(piece.pair, piece.first_offset))
        return found

    def disown(self, pairs):
        """Ignore these partitions from now on: another task owns them."""
        with self._changed:
            for bulk in self._outstanding:
                for piece in bulk.pieces:
                    if piece.pair in pairs:
                        piece.pair = None

    def close(self):
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # --- On the request's thread ------------------------------------------------------------------------------------

    def _settle(self, bulk):
        problem = None
        try:
            self._deliver(bulk)
        except ConnectError as error:
            problem = error
        except Exception as error:
            problem = ConnectError(f"A bulk request failed: {error}")
            problem.__cause__ = error
        with self._changed:
            self._running -= 1
            self._ids -= bulk.ids
            if problem is None:
                self._outstanding.remove(bulk)
                self.progress_at, self.trouble = time.monotonic(), None
            else:
                self._failure = self._failure or problem
            self._changed.notify_all()

    def _deliver(self, bulk):
        tries = 0
        while True:
            try:
                left = self._attempt(bulk)
            except Unreachable as error:
                left, reason = bulk, str(error)
            except Refused as error:
                if error.status not in _HALVED:
                    raise
                return self._divide(bulk, error)
            else:
                if left is None:
                    return
                left, reason = left
            tries = 1 if left.count < bulk.count else tries + 1
            self.trouble = reason
            if tries > self._max_retries:
                raise ConnectError(
                    f"{left.count} documents are not stored after {tries} tries (max.retries={self._max_retries}): {reason} "
                    "Their offsets are not committed. Restart the task once the server accepts them."
                )
            self._counts.retried(left.count)
            self._pause(tries, reason, left.count)
            bulk = left

    def _attempt(self, bulk):
        """Return None if all is settled, else (a bulk of the rest, why). Raise Unreachable or Refused."""
        body, begun = bulk.body(), time.monotonic()
        status, answer = self._server.send("POST", b.PATH, body)
        if status >= 300:
            raise self._server.refusal(status, answer, f"write {bulk.count} documents")
        self._counts.answered(time.monotonic() - begun, len(body))
        again, why, failure, done = [], None, None, bulk.count
        for line, verdict, kind, reason in b.judged(answer, bulk.count):
            done -= 1
            if verdict == b.LATER:
                again.append(line)
                why = reason
            elif verdict == b.CONFLICT:
                self._counts.conflict()
            elif verdict == b.FATAL:
                way = "Fix the index or the user's permissions, then restart the task."
                failure = failure or ConnectError(f"A document could not be written: {reason}. {way}")
            else:
                failure = failure or self._refuse(bulk, line, kind, reason)
        self._counts.done(done)
        if failure is not None:
            raise failure
        if not again:
            return None
        return bulk.take(bulk.with_followers(again)), f"the server rejects {len(again)} of {bulk.count} documents for now ({why})."

    def _refuse(self, bulk, line, kind, reason):
        """Handle a rejected document; return the error if it fails the task, else None."""
        self._counts.refused(kind)
        try:
            self._refused(*bulk.find(line), Malformed(f"The server rejects the document: {reason}"))
        except ConnectError as error:
            return error
        return None

    def _divide(self, bulk, error):
        """Bisect a request that is rejected as a whole until the bad document is alone."""
        if bulk.count > 1:
            for half in bulk.halves():
                self._deliver(half)
        elif (failure := self._refuse(bulk, 0, error.kind, str(error))) is not None:
            raise failure

    def _pause(self, tries, reason, count):
        seconds = min(self._backoff_seconds * 2 ** min(tries - 1, 30), _LONGEST_PAUSE_SECONDS) * random.uniform(0.5, 1.0)
        log.warning("Retrying %d documents in %.1f s, attempt %d of %d: %s", count, seconds, tries, self._max_retries, reason)
        if self._closing.wait(seconds):
            raise ConnectError("The task was stopped before these documents were stored; they will be redelivered.")
