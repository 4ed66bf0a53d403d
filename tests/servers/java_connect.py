"""The genuine connect-standalone, for tests: its jars come from Maven, once, into a cache folder."""

import fcntl
import os
import pathlib
import shutil
import signal
import subprocess

from tests.servers.kafka_broker import free_port

HERE = pathlib.Path(__file__).parent
POM = HERE.parent.parent / "scripts" / "bench" / "pom.xml"
VERSION = "4.3.1"
CACHE = pathlib.Path(os.environ.get("CONNECT_TEST_CACHE") or pathlib.Path.home() / ".cache/connect-standalone/test")
JAVA_OPTIONS = ["-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
STOP_SECONDS = 30


class Unavailable(Exception):
    """No worker can be had here; says why."""


def jars():
    """The folder with Connect's jars, fetched if they are not there."""
    libs = CACHE / f"connect-{VERSION}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:  # tests may run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not libs.is_dir():
            _fetch(libs)
    return libs


def _fetch(libs):
    if not shutil.which("mvn"):
        raise Unavailable(f"mvn is not installed, and Connect's jars are not in {libs}")
    part = libs.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", POM, "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"Maven could not fetch Connect's jars: {(done.stdout + done.stderr)[-500:]}")
    part.rename(libs)


class JavaConnect:
    """`with JavaConnect(worker_props, [connector_file, ...], folder):` runs it; the end of the block stops it as SIGTERM does."""

    def __init__(self, props, connectors, folder):
        self._folder = pathlib.Path(folder)
        self.port = free_port()
        self._props = {"listeners": f"http://127.0.0.1:{self.port}", "plugin.discovery": "only_scan", **props}
        self._connectors = connectors
        self._process = None

    def __enter__(self):
        java = shutil.which("java")
        if java is None:
            raise Unavailable("java is not installed")
        libs = jars()
        worker = self._folder / "java-worker.properties"
        worker.write_text("".join(f"{key}={value}\n" for key, value in self._props.items()))
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        with open(self._folder / "java-connect.log", "wb") as log:
            self._process = subprocess.Popen(
                [java, *JAVA_OPTIONS, logging, "-cp", f"{libs}/*", main, worker, *self._connectors], cwd=self._folder, stdout=log, stderr=log
            )
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
