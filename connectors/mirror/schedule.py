"""What a mirror connector does again and again, on its own thread: looks for topics and groups, brings configurations over."""

import logging
import threading

from standalone.log import SYSTEM

log = logging.getLogger(__name__)

STOP_SECONDS = 5.0  # for what a connector has under way when it stops


class Schedule:
    """Calls in order, one at a time. One that fails is said, and comes again when its time has come again."""

    def __init__(self, name):
        self._name = name
        self._calls = []  # [what, call, seconds, when]
        self._stopped = threading.Event()
        self._thread = None

    def every(self, seconds, call, what, at_once=False):
        """From `start` on; the first time after this many seconds, or at once."""
        self._calls.append([what, call, seconds, SYSTEM.monotonic() + (0 if at_once else seconds)])

    def start(self):
        if self._calls:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self):
        self._stopped.set()

    def join(self, seconds):
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self):
        while not self._stopped.is_set():
            due = min(self._calls, key=lambda each: each[3])
            if self._stopped.wait(max(0.0, due[3] - SYSTEM.monotonic())):
                return
            try:
                due[1]()
            except Exception as error:
                if self._stopped.is_set():  # its clients are closed under it
                    return
                log.warning("%s failed and is tried again in %.0f s: %s", due[0], due[2], error)
            due[3] = SYSTEM.monotonic() + due[2]
