"""Actions that are carried out in the order in which they were asked for, though each waits for something of its own."""

from collections import deque


class InOrder:
    """Owned by one thread."""

    def __init__(self):
        self._entries = deque()
        self._is_draining = False

    @property
    def is_waiting(self):
        """Whether something that was asked for is not done yet."""
        return bool(self._entries)

    def enter(self, action):
        """A function to be called, with whatever `action` takes, once what it waits for has come."""
        entry = [action, None]
        self._entries.append(entry)

        def ready(*arguments):
            entry[1] = arguments
            self._drain()

        return ready

    def _drain(self):
        if self._is_draining:
            return
        self._is_draining = True
        try:
            while self._entries and self._entries[0][1] is not None:
                action, arguments = self._entries.popleft()
                action(*arguments)
        finally:
            self._is_draining = False
