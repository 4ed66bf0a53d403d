"""Shared by the soaks: threads whose failure fails the soak, and clean shutdown of workers."""

import signal
import subprocess
import sys
import threading

STOP_SECONDS = 60


class Watched(threading.Thread):
    """A thread whose error is raised where it is waited for: one that ended early must not look like one that had nothing to do."""

    def __init__(self, work, *arguments):
        super().__init__(name=work.__name__, daemon=True)
        self._work, self._arguments = work, arguments
        self.error = None

    def run(self):
        try:
            self._work(*self._arguments)
        except BaseException as error:  # SystemExit, too: a thread's own ends nothing
            self.error = error

    def finish(self, seconds=None):
        """Wait for its end; raises what it failed on."""
        self.join(seconds)
        if self.is_alive():
            sys.exit(f"the thread '{self.name}' did not end within {seconds} s")
        self.check()

    def check(self):
        """Raises what it failed on, as soon as it has."""
        if self.error is not None:
            raise RuntimeError(f"the thread '{self.name}' failed: {type(self.error).__name__}: {self.error}") from self.error


def watched(work, *arguments):
    """A started one."""
    thread = Watched(work, *arguments)
    thread.start()
    return thread


def end(process, number, log):
    """Send the signal and wait. A worker that was gone before, that does not go, or that goes in another way fails the soak."""
    if process.poll() is not None:
        sys.exit(f"the worker had ended by itself, with status {process.returncode}; see {log}")
    process.send_signal(number)
    try:
        code = process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        sys.exit(f"the worker did not end within {STOP_SECONDS} s of {signal.Signals(number).name}; see {log}")
    wanted = -number if number == signal.SIGKILL else 0
    if code != wanted:
        sys.exit(f"the worker ended with status {code} after {signal.Signals(number).name}, not with {wanted}; see {log}")


def kill(process):
    """Kill remaining processes after a failed soak."""
    if process is not None and process.poll() is None:
        process.kill()
        process.wait()
