"""Periodic work of mirror connectors on their own thread: find topics and groups, sync configurations."""

import logging
import threading

from standalone.log import SYSTEM

log = logging.getLogger(__name__)

STOP_SECONDS = 5.0  # for work in progress when a connector stops


class Schedule:
    """Runs calls in order, one at a time. A failure is logged, and the call repeats after its interval."""

    def __init__(self, name):
        self._name = name
        self._calls = []  # [what, call, seconds, when]
        self._stopped = threading.Event()
        self._thread = None

    def every(self, seconds, call, what, at_once=False):
        """Add a call that runs from `start` on, first after `seconds` or at once."""
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
                if self._stopped.is_set():  # its clients are being closed
                    return
                log.warning("%s failed and is retried in %.0f s: %s", due[0], due[2], error)
            due[3] = SYSTEM.monotonic() + due[2]
