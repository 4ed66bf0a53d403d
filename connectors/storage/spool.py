"""Where an encoder writes a file's bytes: in memory at first, on disk once somebody needs the memory.

An encoder sees a file that only grows. `spill` moves what is in memory after what is on disk; where the disk is full nothing of it is lost.
"""

import os


class Spool:
    def __init__(self, path):
        self._path = path  # where it is once it has spilled
        self._parts = []
        self.memory = 0  # bytes that are not on disk
        self._stored = 0  # bytes that are
        self.closed = False

    # --- What an encoder calls ---

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
        pass  # the encoder is done; the bytes are still wanted

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    # --- What its owner calls ---

    def __len__(self):
        return self.tell()

    @property
    def path(self):
        """The file on disk, or None while all is in memory."""
        return self._path if self._stored else None

    def spill(self):
        """To disk with what is in memory. Raises OSError, and then all is as it was."""
        if not self.memory:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.ftruncate(descriptor, self._stored)  # a spill that failed may have left something behind
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
        """What is in memory, in pieces; only where nothing has spilled is it all."""
        return self._parts

    def chunks(self, size=4 << 20):
        """All bytes, in pieces of about that size."""
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
