"""A lane: calls that run one after the other, on a thread that exists only while there are any.

Each connector has its own, so that one whose method hangs keeps nobody else waiting. What may hang within a call of the lane is run
`apart`: once an urgent call waits behind, it has so long to end, and is abandoned then.
"""

import collections
import concurrent.futures
import threading

from standalone.runtime.tasks.lifecycle import log_context


class Abandoned(Exception):
    """A call did not end while others waited; it goes on, if it ever does, without anybody's waiting for it."""


class Lane:
    def __init__(self, name, scope="worker"):
        self._name = name
        self._scope = scope
        self._changed = threading.Condition()
        self._calls = collections.deque()
        self._urgent = 0  # of those that wait
        self._running = False

    def post(self, call, urgent=False):
        """A Future of what the call returns, once those posted before it are done. An urgent one makes `apart` impatient."""
        future = concurrent.futures.Future()
        with self._changed:
            self._calls.append((future, call, urgent))
            self._urgent += urgent
            self._changed.notify_all()
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=f"lane-{self._name}", daemon=True).start()
        return future

    def apart(self, call, patience, at_once=False):
        """From within a call of this lane: what `call` returns, run on a thread of its own. Waits as long as it takes but, from when an
        urgent call waits behind (or `at_once`), `patience` seconds at most. Raises Abandoned."""
        future = Lane(self._name, self._scope).post(call)
        future.add_done_callback(self._notify)
        with self._changed:
            self._changed.wait_for(lambda: future.done() or self._urgent or at_once)
            self._changed.wait_for(future.done, patience)
        if not future.done():
            raise Abandoned
        return future.result()

    def _notify(self, _):
        with self._changed:
            self._changed.notify_all()

    def _run(self):
        with log_context(f"{self._name}|{self._scope}"):
            while True:
                with self._changed:
                    if not self._calls:
                        self._running = False
                        return
                    future, call, urgent = self._calls.popleft()
                    self._urgent -= urgent
                try:
                    result = call()
                except BaseException as error:  # handed to whoever waits for it
                    future.set_exception(error)
                else:
                    future.set_result(result)
