"""SQL statements and the queries they create (streams/engine.py): opened on first use, because importing PySpark takes a second."""

import os
import threading


class Streaming:
    """Thread-safe. `connectors` is the herder."""

    def __init__(self, worker, connectors, clock, failed_for_good):
        self._given = worker, connectors, clock, failed_for_good
        self._folder = os.path.join(worker.config.state_dir, "queries")
        self._lock = threading.Lock()
        self._opened = None
        self._closed = False

    def get(self):
        """The engine (Streams); the first call starts its queries."""
        from standalone.errors import ConflictError
        from standalone.streams.engine import Streams

        with self._lock:
            if self._closed:
                raise ConflictError("The worker is stopping: it accepts no statements.")
            if self._opened is None:
                self._opened = Streams(*self._given)
                self._opened.restore()
            return self._opened

    def restore(self, files=()):
        """Start the stored queries, and run these files of statements."""
        if files or os.path.exists(os.path.join(self._folder, "catalog.json")):
            engine = self.get()
            for path in files:
                engine.run_file(path)

    @property
    def opened(self):
        """The engine, or None if it was not used yet."""
        return self._opened

    def close(self, seconds):
        with self._lock:
            self._closed = True
        if self._opened is not None:
            self._opened.close(seconds)
