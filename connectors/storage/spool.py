"""A spool for a file being encoded: in memory first, on disk when memory runs short.

Encoders see an append-only file. `spill` appends the memory to the disk file; if the disk is full, nothing is lost.
"""

import os


class Spool:
    def __init__(self, path):
        self._path = path  # path of the disk file, once spilled
        self._parts = []
        self.memory = 0  # bytes not on disk
        self._stored = 0  # bytes on disk
        self.closed = False

    # --- Called by the encoder ---

    def write(self, data):
        data = bytes(data)
        self._parts.append(data)
        self.memory += len(data)
        return len(data)

    def tell(self):
        return self._stored + self.memory

    def flush(self):
        pass

    def close(self):
        pass  # the encoder is done, but the bytes are still needed

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    # --- Called by the owner ---

    def __len__(self):
        return self.tell()

    @property
    def path(self):
        """The file on disk, or None while everything is in memory."""
        return self._path if self._stored else None

    def spill(self):
        """Write the memory to disk. On OSError nothing changes."""
        if not self.memory:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.ftruncate(descriptor, self._stored)  # a failed spill may have left bytes
            place = self._stored
            for part in self._parts:
                view = memoryview(part)
                while len(view):
                    written = os.pwrite(descriptor, view, place)
                    view, place = view[written:], place + written
        finally:
            os.close(descriptor)
        self._stored, self._parts, self.memory = place, [], 0

    def parts(self):
        """Return the pieces in memory, which is everything only if nothing was spilled."""
        return self._parts

    def chunks(self, size=4 << 20):
        """Yield all bytes in pieces of about that size."""
        if self._stored:
            with open(self._path, "rb") as file:
                left = self._stored
                while left and (piece := file.read(min(size, left))):
                    left -= len(piece)
                    yield piece
        yield from self._parts

    def discard(self):
        self._parts, self.memory = [], 0
        if self._stored:
            self._stored = 0
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                pass
