"""Rows of a query read in a thread of their own, while the task has those before them turned into records and sent."""

import queue
import threading

_MOST = 1  # items that wait to be asked for
_LOOK_SECONDS = 0.05


def read_ahead(items, is_last):
    """A generator of the same items. Up to the first of which `is_last` is not true they are read by who asks for them: small results need no
    thread.

    Nobody else may use what they are read from before the generator is at its end, or closed.
    """
    for item in items:
        if not is_last(item):
            break
        yield item
    else:
        return
    reader = _Reader(items)
    try:
        yield item
        yield from reader
    finally:
        reader.close()


class _Reader:
    """Iterates over a generator, which is closed in the thread that it runs in."""

    def __init__(self, items):
        self._items = items
        self._found = queue.Queue(_MOST)  # (item, None); (None, an error or None) at the end
        self._is_unwanted = False
        self._thread = threading.Thread(target=self._read, name="jdbc-read-ahead", daemon=True)
        self._thread.start()

    def __iter__(self):
        while True:
            item, error = self._found.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item

    def close(self):
        self._is_unwanted = True
        while self._thread.is_alive():
            try:
                self._found.get_nowait()
            except queue.Empty:
                self._thread.join(_LOOK_SECONDS)

    def _read(self):
        error = None
        try:
            for item in self._items:
                if self._is_unwanted:
                    break
                self._found.put((item, None))
        except BaseException as problem:
            error = problem
        finally:
            self._items.close()
            self._found.put((None, error))
