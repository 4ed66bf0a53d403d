"""What the real servers of tests have in common: where their programs are kept, their ports, and how a process is stopped, killed and frozen."""

import contextlib
import fcntl
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CACHE = pathlib.Path(os.environ.get("CONNECT_TEST_CACHE") or pathlib.Path.home() / ".cache/connect-standalone/test")
HERE = pathlib.Path(__file__).parent
STOP_SECONDS = 30
UNPRIVILEGED = 65534  # nobody: databases refuse to run as root
PROCESSES = 16  # that run tests at once, at most
# The compiler that optimises hardest costs more in a short life than it returns.
JAVA_OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


class Unavailable(Exception):
    """No such server can be had here; says why."""


class Server:
    """A process with its own folder. Its data stays as it is through `kill` and the next `start`, and goes away with `stop`.

    A server says how it starts: `_begin(command)`, then `_wait_until(ready, seconds)`.
    """

    name = "server"
    stops_by = signal.SIGTERM

    def __init__(self):
        self._folder = self._process = None

    def start(self):
        """Start it, and wait until it answers; raises Unavailable where that cannot be."""
        raise NotImplementedError

    def stop(self):
        """Away with it and its data."""
        self._end(self.stops_by)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def shut_down(self):
        """As `stop`, but the data stays."""
        self._end(self.stops_by)

    def kill(self):
        """SIGKILL for the server and all that it started."""
        self._end(signal.SIGKILL)

    def freeze(self):
        """SIGSTOP: connections stay, nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    @property
    def runs(self):
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self):
        return self._process.pid

    def handed_over(self):
        """What another process needs to know to use it, and to stop it in our place."""
        return {"pid": self.pid, "folder": str(self._folder)}

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def _make_folder(self):
        """Whether it was not there."""
        if self._folder is not None:
            return False
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix=f"connect-test-{self.name}-"))
        return True

    @property
    def _log(self):
        return self._folder / "log"

    def _begin(self, command, **how):
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [str(word) for word in command], cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **how
            )

    def _wait_until(self, is_ready, seconds, *errors):
        """`is_ready()` may raise OSError and these errors as long as it is not."""
        deadline, last = time.monotonic() + seconds, None
        while self.runs and time.monotonic() < deadline:
            try:
                if is_ready():
                    return
            except (OSError, *errors) as error:
                last = error
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)
        said = self._log.read_text(errors="replace")[-1000:]
        self._end(signal.SIGKILL)
        raise Unavailable(f"{self.name} did not answer within {seconds} s ({last}): {said}")

    def _end(self, number):
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        if number != signal.SIGKILL:
            self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # whatever is left of it and of what it started
        self._process.wait()
        self._process = None


def run_until_interrupted(server, told):
    """For a server that is started by hand: `told(server)` is printed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with server, contextlib.suppress(KeyboardInterrupt):
        print(told(server), flush=True)
        signal.pause()


def jars(name, pom):
    """The folder CACHE/name with the jars that a pom asks for, fetched by Maven if they are not there."""
    libs = CACHE / name
    if not libs.is_dir():
        with locked("lock"):
            if not libs.is_dir():
                _fetch(libs, pom)
    return libs


def _fetch(libs, pom):
    if not shutil.which("mvn"):
        raise Unavailable(f"mvn is not installed, and there are no jars in {libs}")
    part = libs.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"Maven could not fetch the jars of {libs.name}: {(done.stdout + done.stderr)[-500:]}")
    part.rename(libs)


def java():
    """The command `java`."""
    found = shutil.which("java")
    if found is None:
        raise Unavailable("java is not installed")
    return found


def takes_connections(port):
    """True, or an OSError."""
    socket.create_connection(("127.0.0.1", port), 1).close()
    return True


@contextlib.contextmanager
def locked(name):
    """One process at a time, of all that run tests."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / name, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def free_port():
    """A port below those that the system gives to clients: nobody takes it while its server is away.

    Each process of a run has its own ports to choose from: between the look and the use nobody else takes one.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % PROCESSES
    while True:
        port = random.randrange(15_000 + worker, 30_000, PROCESSES)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def unprivileged(folder):
    """What is before a command that must not run as root; the folder is made that user's."""
    if os.getuid():
        return []
    if not shutil.which("setpriv"):
        raise Unavailable("setpriv is not installed, and the server does not run as root")
    shutil.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
    return ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
