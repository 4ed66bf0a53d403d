"""A real metastore of Hive for tests, 3.1, with Derby beneath; its jars come from Maven, once, into a cache folder.

    python tests/servers/hive_metastore.py      runs one until Ctrl-C and prints its address
"""

import contextlib
import fcntl
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tests.servers.kafka_broker import CACHE, HERE, Unavailable, free_port

VERSION = "3.1.3"
START_SECONDS = 120
OPENED = ("java.base/java.lang", "java.base/java.net", "java.base/java.util", "java.base/java.util.concurrent", "java.base/java.lang.reflect")
SETTINGS = {
    "datanucleus.schema.autoCreateAll": "true",
    "metastore.schema.verification": "false",
    "hive.metastore.schema.verification": "false",
    "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
}


def jars():
    """The folder with the metastore's jars, fetched if they are not there."""
    libs = CACHE / f"hive-metastore-{VERSION}"
    if not libs.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / "hive.lock", "w") as lock:  # tests may run in several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not libs.is_dir():
                _fetch(libs)
    return libs


def _fetch(libs):
    if not shutil.which("mvn"):
        raise Unavailable(f"mvn is not installed, and Hive's jars are not in {libs}")
    part = libs.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", HERE / "hive-pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"Maven could not fetch Hive's jars: {(done.stdout + done.stderr)[-500:]}")
    part.rename(libs)


class Metastore:
    def start(self):
        if not shutil.which("java"):
            raise Unavailable("java is not installed")
        libs, self.port = jars(), free_port()
        self.url = f"thrift://127.0.0.1:{self.port}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="connect-test-hive-"))
        settings = {
            **SETTINGS, "metastore.warehouse.dir": f"file://{self.folder}/warehouse",
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.folder}/metastore;create=true",
        }  # fmt: skip
        properties = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
        (self.folder / "metastore-site.xml").write_text(f"<configuration>{properties}</configuration>")
        opens = [word for each in OPENED for word in ("--add-opens", f"{each}=ALL-UNNAMED")]
        command = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opens, "-cp", f"{self.folder}:{libs}/*"]
        command += ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port)]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return self
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.1)
        told = (self.folder / "log").read_text(errors="replace")[-800:]
        self.stop()
        raise Unavailable(f"Hive's metastore did not start within {START_SECONDS} s: {told}")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    server = Metastore().start()
    try:
        print(server.url, flush=True)
        signal.pause()
    finally:
        server.stop()
