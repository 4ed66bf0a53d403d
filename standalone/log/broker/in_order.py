"""Run actions in the order they were queued, although each waits for its own condition."""

from collections import deque


class InOrder:
    """Owned by one thread."""

    def __init__(self):
        self._entries = deque()
        self._is_draining = False

    @property
    def is_waiting(self):
        """Whether an action is still pending."""
        return bool(self._entries)

    def enter(self, action):
        """Queue `action`; return a function to call, with the action's arguments, once its condition holds."""
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
