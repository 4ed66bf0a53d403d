"""Calls of plugin code, with a timeout, and the mailbox that runs them one at a time.

    call_plugin(call, connector="orders", method="start", wait=mailbox.patience(5.0))

runs the call on its own thread and waits for it with a timeout. A call that hangs is abandoned; any exception becomes a ConnectError that
names the connector, the task and the method. Task methods run on the tasks' own threads (tasks/lifecycle.py); all other plugin methods are
called through this function.
"""

import collections
import concurrent.futures
import threading

from standalone.errors import ConflictError, ConnectError, shown_class
from standalone.runtime.tasks.lifecycle import log_context

CALL_SECONDS = 90.0  # how long a caller waits for plugin code: the timeout of Connect's REST requests


class Abandoned(ConnectError):
    """A call was given up because other calls waited behind it; it may still be running."""


def call_plugin(call, *, connector, method, task=None, on=None, wait=None):
    """Return what `call` returns. `on` is the Mailbox that it runs in; `wait` takes the Future and limits the wait (default: CALL_SECONDS)."""
    where = f"{method} of {f'task {task} of ' if task is not None else ''}" + (f"connector '{connector}'" if connector else "a plugin")

    def guarded():
        try:
            return call()
        except ConnectError:
            raise
        except BaseException as error:  # plugin code may raise anything, even SystemExit
            raise ConnectError(f"{where} failed: {shown_class(error)}: {error}") from error

    future = (on or Mailbox(connector)).post(guarded)
    if wait is not None:
        return wait(future)
    concurrent.futures.wait([future], CALL_SECONDS)
    if not future.done():
        raise ConflictError(f"{where} did not return within {CALL_SECONDS:.0f} s: the plugin's code hangs.")
    return future.result()


class Mailbox:
    """Runs calls one after another, on a thread that lives only while calls are queued."""

    def __init__(self, name, scope="worker"):
        self._name = name
        self._scope = scope
        self._changed = threading.Condition()
        self._calls = collections.deque()
        self._urgent = 0  # number of urgent calls in the queue
        self._running = False

    def post(self, call, urgent=False):
        """Queue a call and return a Future of its result. An urgent call shortens the wait that `patience` gives the call before it."""
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
        """Return a wait for a plugin call of this mailbox: unlimited until an urgent call is queued (or `at_once`), at most `seconds` from then on.
        Raises Abandoned."""

        def wait(future):
            future.add_done_callback(self._notify)
            with self._changed:
                self._changed.wait_for(lambda: future.done() or self._urgent or at_once)
                self._changed.wait_for(future.done, seconds)
            if not future.done():
                raise Abandoned(f"It did not return within {seconds:.1f} s while another request waited (task.shutdown.graceful.timeout.ms).")
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
                except BaseException as error:  # raised in the caller that waits for the Future
                    future.set_exception(error)
                else:
                    future.set_result(result)
                future = call = result = None  # free the objects before the next call
