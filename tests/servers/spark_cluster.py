"""A real Spark standalone cluster for tests: a master and its workers from pyspark's own jars, on loopback.

    python -m tests.servers.spark_cluster      runs one until Ctrl-C and prints spark.master
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

from tests.servers.server import Server, free_port, java, run_until_interrupted

START_SECONDS = 120
WORKERS, CORES = 2, 18  # one worker's cores hold all the tasks of a test: those of an executor that died continue in the other at once
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"


class SparkCluster(Server):
    """`master` is what spark.master is to say. `secret` makes it one that authenticates and encrypts; `cores` are each worker's, of which there are two unless fewer are asked for."""

    name = "spark-cluster"

    def __init__(self, secret=None, cores=CORES, workers=WORKERS):
        super().__init__()
        self._cores, self._workers = cores, workers
        self._port, self._page = free_port(), free_port()
        self._secret = secret
        self.master = f"spark://127.0.0.1:{self._port}"

    def start(self):
        java()
        self._make_folder()
        if self._secret:
            self.name = "spark-cluster-secured"
        self._begin([sys.executable, "-m", "tests.servers.spark_cluster", self._folder, self._port, self._page, self._cores, self._workers], env=self._environment())
        self._wait_until(self._has_workers, START_SECONDS)
        return self

    def handed_over(self):
        return {"master": self.master, **super().handed_over()}

    def _environment(self):
        import pyspark

        settings = {"spark.authenticate": "true", "spark.authenticate.secret": self._secret, "spark.network.crypto.enabled": "true"} if self._secret else {}
        return {
            **os.environ, "SPARK_HOME": str(pathlib.Path(pyspark.__file__).parent), "SPARK_SCALA_VERSION": "2.13", "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join([QUICK, *(f"-D{key}={value}" for key, value in settings.items())]),
            "SPARK_CONF_DIR": str(self._folder), "PYTHONPATH": str(pathlib.Path(__file__).parents[2]),
        }  # fmt: skip

    def _has_workers(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=1) as answer:
            return answer.read().count(b'"ALIVE"') > self._workers  # the master says it of itself, too


def _run_nodes(folder, port, page, cores, workers):
    """The processes of a cluster, until this one is ended; then they end with it."""
    spark = pathlib.Path(os.environ["SPARK_HOME"])
    start = [str(spark / "bin" / "spark-class")]
    here = ["--host", "127.0.0.1"]
    master = [*start, "org.apache.spark.deploy.master.Master", *here, "--port", port, "--webui-port", page]
    worker = [*start, "org.apache.spark.deploy.worker.Worker", *here, "--webui-port", "0", "--cores", cores, "--memory", "4g"]
    commands = [master, *([*worker, "--work-dir", f"{folder}/worker-{number}", f"spark://127.0.0.1:{port}"] for number in range(int(workers)))]
    with contextlib.ExitStack() as nodes:
        for command in commands:
            node = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            nodes.callback(node.wait)
            nodes.callback(node.terminate)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        signal.pause()


def executors():
    """The process ids of all executors of this machine's clusters, by application: {application id: [pid]}."""
    found = {}
    for each in pathlib.Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and "--app-id" in words:
                found.setdefault(words[words.index("--app-id") + 1], []).append(int(each.name))
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _run_nodes(*sys.argv[1:])
    else:
        run_until_interrupted(SparkCluster(), lambda server: server.master)
