"""Processes of connect-standalone without the second that its imports take: a server that has done them forks for each.

Each is its own process, with its own folder, streams, signals and exit code; only what `import` does is shared. `Forks` is the
server's side of the test, `Forked` a process as subprocess.Popen shows it; run as a module it is the server.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile

_IMPORTS = (
    "standalone.cli.worker", "standalone.cli.logs", "standalone.cli.systemd", "standalone.runtime.process", "standalone.rest.server",
    "standalone.log.broker.server", "standalone.converters.string", "standalone.converters.simple_header", "connectors.file.source",
    "connectors.file.sink",
)  # fmt: skip


class Forks:
    """The server, from the test's side: `with Forks() as forks: forks.start([...], cwd, stdin, stdout)`."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._address = os.path.join(self._folder.name, "forks")
        command = [sys.executable, "-m", "tests.forked", self._address]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()})
        assert self._server.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_):
        self._server.kill()
        self._server.wait()
        self._server.stdout.close()
        self._folder.cleanup()

    def start(self, arguments, cwd, stdin, stdout, environment=None):
        """A worker with these arguments, and these variables beside the server's own; errors go where the output goes."""
        link = socket.socket(socket.AF_UNIX)
        link.connect(self._address)
        with open(os.devnull) as nothing:
            given = nothing if stdin == subprocess.DEVNULL else stdin
            descriptors = [given.fileno(), stdout.fileno(), stdout.fileno()]
            socket.send_fds(link, [json.dumps([list(arguments), str(cwd), environment or {}]).encode()], descriptors)
        return Forked(link)


class Forked:
    def __init__(self, link):
        self._link = link.makefile()
        self.pid = int(self._link.readline())
        self._socket = link
        self.returncode = None

    def poll(self):
        return self._ended(0)

    def wait(self, timeout=None):
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired("connect-standalone", timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout):
        if self.returncode is None:
            if select.select([self._socket], [], [], timeout)[0]:
                self.returncode = int(self._link.readline())
                self._link.close()
                self._socket.close()
        return self.returncode


# --- The server -------------------------------------------------------------------------------------------------------
def serve(address):
    import importlib

    for name in _IMPORTS:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(address)
        listens.listen()
        print("ready", flush=True)
        while True:
            link, _ = listens.accept()
            _forget_ended()
            if os.fork() == 0:
                listens.close()
                watch(link)
            link.close()


def _forget_ended():
    """Watchers that have ended; their time counts to this process, which it does not where SIGCHLD is ignored."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def watch(link):
    """Fork again, tell the number of that process, and how it ended."""
    data, descriptors, _, _ = socket.recv_fds(link, 1 << 20, 3)
    worker = os.fork()
    if worker == 0:
        link.close()
        become(*json.loads(data), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    link.sendall(f"{worker}\n".encode())
    _, status = os.waitpid(worker, 0)
    link.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def become(arguments, cwd, environment, descriptors):
    """This process is connect-standalone from now on."""
    from standalone.cli.worker import main

    os.environ.update(environment)

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(cwd)
    sys.argv = ["connect-standalone", *arguments]
    sys.exit(main())


if __name__ == "__main__":
    serve(sys.argv[1])
