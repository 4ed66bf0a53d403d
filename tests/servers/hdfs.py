"""A real HDFS for tests: a name node and a data node in one Java process; its jars come from Maven, once, into a cache folder.

    python tests/servers/hdfs.py      runs one until Ctrl-C and prints its address
"""

import contextlib
import fcntl
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tests.servers.kafka_broker import CACHE, HERE, Unavailable, free_port

VERSION = "3.4.1"
START_SECONDS = 90
JAVA_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


def jars():
    """The folder with Hadoop's jars, fetched if they are not there."""
    libs = CACHE / f"hadoop-{VERSION}"
    if not libs.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / "hadoop.lock", "w") as lock:  # tests may run in several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not libs.is_dir():
                _fetch(libs)
    return libs


def _fetch(libs):
    if not shutil.which("mvn"):
        raise Unavailable(f"mvn is not installed, and Hadoop's jars are not in {libs}")
    part = libs.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", HERE / "hdfs.xml", "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"Maven could not fetch Hadoop's jars: {(done.stdout + done.stderr)[-500:]}")
    part.rename(libs)


class Hdfs:
    """`url` stays the same, and so does the data, through kill and restart."""

    def __init__(self):
        self.port, self._http = free_port(), free_port()
        self.url = f"hdfs://127.0.0.1:{self.port}"
        self.folder = None

    def start(self):
        if not shutil.which("java"):
            raise Unavailable("java is not installed")
        libs = jars()
        is_new = self.folder is None
        if is_new:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="connect-test-hdfs-"))
        details = self.folder / "details.json"
        details.unlink(missing_ok=True)
        options = ["dfs.replication=1", "dfs.namenode.edits.noeditlogchannelflush=true", "dfs.permissions.superusergroup=root"]
        command = ["java", *JAVA_OPTIONS, f"-Dtest.build.data={self.folder}", "-cp", f"{libs}/*", "org.apache.hadoop.test.MiniDFSClusterManager"]
        command += [*(["-format"] if is_new else []), "-datanodes", "1", "-nnport", str(self.port), "-httpport", str(self._http), "-writeDetails", str(details)]
        command += [word for option in options for word in ("-D", option)]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if details.exists() and details.stat().st_size:
                return self
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.05)
        told = (self.folder / "log").read_text(errors="replace")[-800:]
        self.stop()
        raise Unavailable(f"HDFS did not start within {START_SECONDS} s: {told}")

    def kill(self):
        """SIGKILL; the data stays for `start`."""
        self.process.kill()
        self.process.wait()

    def handed_over(self):
        """What another process needs to know to use it, and to stop it in our place."""
        return {"url": self.url, "pid": self.process.pid, "folder": str(self.folder)}

    def stop(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    server = Hdfs().start()
    try:
        print(server.url, flush=True)
        signal.pause()
    finally:
        server.stop()
