"""A cache of registry responses with a TTL and a maximum size; the oldest entries are evicted first."""

import threading


class Cache:
    """`seconds`: -1 never expires, 0 disables the cache. Thread-safe."""

    def __init__(self, most, clock, seconds=-1):
        self._most, self._clock, self._seconds = most, clock, seconds
        self._held = {}
        self._lock = threading.Lock()

    def get(self, key):
        """The cached value, or None; values are never None."""
        found = self._held.get(key)
        if found is None:
            return None
        value, ends = found
        if ends is not None and self._clock.monotonic() >= ends:
            self.forget(key)
            return None
        return value

    def put(self, key, value):
        if self._seconds == 0:
            return value
        ends = None if self._seconds < 0 else self._clock.monotonic() + self._seconds
        with self._lock:
            self._held.pop(key, None)
            self._held[key] = value, ends
            while len(self._held) > self._most:
                del self._held[next(iter(self._held))]
        return value

    def forget(self, key):
        with self._lock:
            self._held.pop(key, None)

    def clear(self):
        with self._lock:
            self._held.clear()
