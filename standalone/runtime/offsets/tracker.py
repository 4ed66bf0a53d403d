"""Decides which source offset may be stored: that of the last record of its source partition before which nothing is in flight."""

import collections
import threading


class OffsetTracker:
    """Records in flight, in poll order: a queue for each source partition. Thread-safe."""

    def __init__(self, connector, offsets, memory, on_error):
        self._connector = connector
        self._offsets = offsets
        self._memory = memory
        self._on_error = on_error
        self._lock = threading.Lock()
        self._queues = {}
        self._progress = False
        self._abandoned = False

    def abandon(self):
        """Store no more offsets: the task was abandoned, and its successor may run elsewhere, or the offsets may have been reset."""
        with self._lock:
            self._abandoned = True

    def add(self, partition, offset, outstanding, size):
        """Add a polled record that is complete after `outstanding` deliveries."""
        key = repr(sorted(partition.items(), key=str)) if partition else None
        sent = _Sent(key, partition, offset, outstanding, size)
        with self._lock:
            self._queues.setdefault(key, collections.deque()).append(sent)
        if not outstanding:
            self._advance(sent)
        return sent

    def done(self, sent):
        with self._lock:
            sent.outstanding -= 1
        if not sent.outstanding:
            self._advance(sent)

    def done_before(self, sent, offset):
        """Not all that was sent is in the log, nor will be; what is, is behind this offset."""
        with self._lock:
            queue = self._queues[sent.key]
            queue.insert(queue.index(sent), _Sent(sent.key, sent.partition, offset, 0, 0))
        self._advance(sent)

    def take_progress(self):
        """Whether an offset was stored since the last call."""
        with self._lock:
            progress, self._progress = self._progress, False
            return progress

    def _advance(self, sent):
        """Store the offset of the last complete entry at the front of the queue."""
        with self._lock:
            queue = self._queues.get(sent.key, ())
            last, size = None, 0
            while queue and not queue[0].outstanding:
                first = queue.popleft()
                size += first.size
                last = last if first.offset is None else first
            if not queue:
                self._queues.pop(sent.key, None)
            try:
                if last is not None and last.partition is not None and not self._abandoned:
                    self._offsets.append(self._connector, [(last.partition, last.offset)])
                    self._progress = True
            except Exception as error:  # a source partition may hold a value that cannot be stored
                self._on_error(error)
            if size:  # under the lock: letters and records are acknowledged on different threads
                self._memory.give(size)


class _Sent:
    __slots__ = ("key", "partition", "offset", "outstanding", "size")

    def __init__(self, key, partition, offset, outstanding, size):
        self.key = key
        self.partition = partition
        self.offset = offset
        self.outstanding = outstanding
        self.size = size
