"""The one way into foreign code, and the mailbox of calls that keeps it from holding anybody up.

    call_plugin(call, connector="orders", method="start", wait=mailbox.patience(5.0))

runs the call on its own thread and waits for it within bounds: what hangs is abandoned, and whatever is raised becomes a
ConnectError that names the connector, the task and the method. Tasks have their own threads (tasks/lifecycle.py); all else of a
plugin is called by this.
"""

import collections
import concurrent.futures
import threading

from standalone.errors import ConflictError, ConnectError, shown_class
from standalone.runtime.tasks.lifecycle import log_context

CALL_SECONDS = 90.0  # how long a caller waits for a plugin's code; as Connect's REST requests


class Abandoned(ConnectError):
    """A call did not end while others waited; it continues, if it ever does, without anybody's waiting for it."""


def call_plugin(call, *, connector, method, task=None, on=None, wait=None):
    """What `call` returns. `on` is the Mailbox whose calls it waits behind; `wait` takes the Future and bounds it (CALL_SECONDS else)."""
    where = f"{method} of {f'task {task} of ' if task is not None else ''}" + (f"connector '{connector}'" if connector else "a plugin")

    def guarded():
        try:
            return call()
        except ConnectError:
            raise
        except BaseException as error:  # a stranger's code may raise anything, SystemExit too
            raise ConnectError(f"{where} failed: {shown_class(error)}: {error}") from error

    future = (on or Mailbox(connector)).post(guarded)
    if wait is not None:
        return wait(future)
    concurrent.futures.wait([future], CALL_SECONDS)
    if not future.done():
        raise ConflictError(f"{where} did not come back within {CALL_SECONDS:.0f} s: its own code hangs.")
    return future.result()


class Mailbox:
    """Calls that run one after the other, on a thread that exists only while there are any."""

    def __init__(self, name, scope="worker"):
        self._name = name
        self._scope = scope
        self._changed = threading.Condition()
        self._calls = collections.deque()
        self._urgent = 0  # of those that wait
        self._running = False

    def post(self, call, urgent=False):
        """A Future of what the call returns, once those posted before it are done. An urgent one makes `patience` end."""
        future = concurrent.futures.Future()
        with self._changed:
            self._calls.append((future, call, urgent))
            self._urgent += urgent
            self._changed.notify_all()
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=f"calls-{self._name}", daemon=True).start()
        return future

    def patience(self, seconds, at_once=False):
        """How a call of this mailbox waits for a plugin's: as long as it takes but, from when an urgent call waits behind (or `at_once`),
        so many seconds at most. Raises Abandoned."""

        def wait(future):
            future.add_done_callback(self._notify)
            with self._changed:
                self._changed.wait_for(lambda: future.done() or self._urgent or at_once)
                self._changed.wait_for(future.done, seconds)
            if not future.done():
                raise Abandoned(f"It did not come back within {seconds:.1f} s while something else was wanted (task.shutdown.graceful.timeout.ms).")
            return future.result()

        return wait

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
                except BaseException as error:  # handed to anyone who waits for it
                    future.set_exception(error)
                else:
                    future.set_result(result)
                future = call = result = None  # nothing is kept for the next one's sake
