"""A lane: calls that run one after the other, on a thread that exists only while there are any.

Each connector has its own, so that one whose method hangs keeps nobody else waiting.
"""

import collections
import concurrent.futures
import threading

from standalone.runtime.lifecycle import log_context


class Lane:
    def __init__(self, name):
        self._name = name
        self._lock = threading.Lock()
        self._calls = collections.deque()
        self._running = False

    def post(self, call):
        """A Future of what the call returns, once those posted before it are done."""
        future = concurrent.futures.Future()
        with self._lock:
            self._calls.append((future, call))
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=f"lane-{self._name}", daemon=True).start()
        return future

    def _run(self):
        with log_context(f"{self._name}|worker"):
            while True:
                with self._lock:
                    if not self._calls:
                        self._running = False
                        return
                    future, call = self._calls.popleft()
                try:
                    result = call()
                except BaseException as error:  # handed to whoever waits for it
                    future.set_exception(error)
                else:
                    future.set_result(result)
