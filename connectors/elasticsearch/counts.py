"""Metrics of a task."""

import collections
import threading


class Counts:
    """Counters, which several threads may update."""

    def __init__(self):
        self._lock = threading.Lock()
        self.documents = self.bytes = self.requests = self.conflicts = self.retries = 0
        self.seconds = self.longest_seconds = 0.0
        self.refusals = collections.Counter()  # by the server's error type

    def answered(self, seconds, size):
        with self._lock:
            self.requests += 1
            self.bytes += size
            self.seconds += seconds
            self.longest_seconds = max(self.longest_seconds, seconds)

    def done(self, count):
        with self._lock:
            self.documents += count

    def retried(self, count):
        with self._lock:
            self.retries += count

    def conflict(self):
        with self._lock:
            self.conflicts += 1

    def refused(self, kind):
        with self._lock:
            self.refusals[kind or "other"] += 1

    def metrics(self):
        with self._lock:
            counted = {
                "documents-total": self.documents,
                "bytes-total": self.bytes,
                "requests-total": self.requests,
                "request-seconds-total": self.seconds,
                "request-longest-seconds": self.longest_seconds,
                "retried-total": self.retries,
                "older-total": self.conflicts,
            }
            found = {f"elasticsearch_{name}": value for name, value in counted.items()}
            return {**found, **{("elasticsearch_refused-total", "reason", kind): count for kind, count in self.refusals.items()}}

    def shown(self):
        with self._lock:
            average = self.seconds / self.requests if self.requests else 0.0
            refused = ", ".join(f"{kind}: {count}" for kind, count in self.refusals.most_common(5)) or "none"
            return (
                f"{self.documents} documents, {self.bytes} bytes in {self.requests} requests ({1000 * average:.0f} ms on average, "
                f"{1000 * self.longest_seconds:.0f} ms at most), {self.retries} retried, "
                f"{self.conflicts} older than the stored version, rejected: {refused}"
            )
