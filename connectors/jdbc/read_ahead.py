"""Read the next rows of a query in a separate thread while the task converts and sends the previous ones."""

import queue
import threading

_MOST = 1  # items read and not yet requested
_LOOK_SECONDS = 0.05


def read_ahead(items, is_small):
    """Yield the same items. A thread starts after the first item for which `is_small` is false; small results need none.

    Until the generator ends or is closed, nothing else may use the connection that it reads from.
    """
    for item in items:
        if not is_small(item):
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
    """Runs a generator in a thread, which also closes it."""

    def __init__(self, items):
        self._items = items
        self._found = queue.Queue(_MOST)  # (item, None), finally (None, error or None)
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
