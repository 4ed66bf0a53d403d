"""A real Apache Kafka broker of one node, for tests: its jars come from Maven, once, into a cache folder.

    python tests/servers/kafka_broker.py      runs one until Ctrl-C and prints its address
"""

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

HERE = pathlib.Path(__file__).parent
VERSION = "4.3.1"
CACHE = pathlib.Path(os.environ.get("CONNECT_TEST_CACHE") or pathlib.Path.home() / ".cache/connect-standalone/test")
CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAQ"
START_SECONDS = 80  # on a machine that has others to serve; ten on one that has not
PROCESSES = 16  # that run tests at once, at most
# The compiler that optimises hardest costs more in a short life than it gives back.
JAVA_OPTIONS = ["-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


class Unavailable(Exception):
    """No broker can be had here; says why."""


def jars():
    """The folder with Kafka's jars, fetched if they are not there."""
    libs = CACHE / f"kafka-{VERSION}"
    if not libs.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / "lock", "w") as lock:  # tests may run in several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not libs.is_dir():
                _fetch(libs)
    return libs


def archive(libs):
    """Options by which Java starts with its classes as they were once loaded, at half of a start's cost; [] where that cannot be.

    The archive is made once, by a broker that starts and stops, and kept beside the jars; an empty file says that it was tried in vain.
    """
    path = libs.with_suffix(".jsa")
    if not path.exists():
        with open(CACHE / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _make_archive(path)
    return [f"-XX:SharedArchiveFile={path}"] if path.stat().st_size else []


def _make_archive(path):
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    broker = KafkaBroker(archive_to=part)
    try:
        broker.start().stop()
    except Unavailable:
        broker.stop()
    if not part.exists():
        part.touch()
    part.rename(path)


def _fetch(libs):
    if not shutil.which("mvn"):
        raise Unavailable(f"mvn is not installed, and Kafka's jars are not in {libs}")
    part = libs.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"Maven could not fetch Kafka's jars: {(done.stdout + done.stderr)[-500:]}")
    part.rename(libs)


def free_port():
    """A port below those that the system gives to clients: nobody takes it while its server is away.

    Each process of a run has ports of its own to choose from: between the look and the use nobody else takes one.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % PROCESSES
    while True:
        port = random.randrange(15_000 + worker, 30_000, PROCESSES)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class KafkaBroker:
    """`bootstrap` stays the same, and so does the data, through kill and restart.

    listeners: {name: security protocol} of more listeners, each at `address(name)`; scram: `SCRAM-SHA-256=[name=..,password=..]`
    users; settings: into server.properties.
    """

    def __init__(self, listeners=None, scram=(), settings=None, archive_to=None):
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._listeners = {name: (free_port(), protocol) for name, protocol in (listeners or {}).items()}
        self._scram = scram
        self._settings = settings or {}
        self._archive_to = archive_to  # where its classes are to be kept when it stops
        self._folder = None
        self._process = None

    def start(self):
        """Start it, and wait until it answers; raises Unavailable where that cannot be."""
        self.launch()
        self.wait_until_it_answers()
        return self

    def launch(self):
        """Start it and wait for nothing: a node of a cluster answers once the others are there."""
        if not shutil.which("java"):
            raise Unavailable("java is not installed")
        self._libs = jars()
        self._archive = [] if self._archive_to else archive(self._libs)
        if self._folder is None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix="connect-test-kafka-"))
            self._write_config()
            users = [word for user in self._scram for word in ("--add-scram", user)]
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", self._config, *users)
        command = self._command("kafka.Kafka", self._config)
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def address(self, listener):
        return f"localhost:{self._listeners[listener][0]}"

    def stop(self):
        """SIGTERM, and away with its data."""
        self._end(signal.SIGTERM)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def shut_down(self):
        """SIGTERM; the data stays for `restart`."""
        self._end(signal.SIGTERM)

    def kill(self):
        """SIGKILL; the data stays as it is."""
        self._end(signal.SIGKILL)

    def restart(self):
        """Start again after `kill` or `shut_down`; a second time where the first comes to nothing."""
        try:
            return self.start()
        except Unavailable:
            return self.start()

    def handed_over(self):
        """What another process needs to know to use it, and to stop it in our place."""
        return {"bootstrap": self.bootstrap, "pid": self._process.pid, "folder": str(self._folder)}

    @property
    def runs(self):
        return self._process is not None and self._process.poll() is None

    def freeze(self):
        """SIGSTOP: connections stay, nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self._process.pid

    @property
    def data(self):
        """The folder with its log."""
        return self._folder / "data"

    @property
    def _config(self):
        return self._folder / "server.properties"

    @property
    def _log(self):
        return self._folder / "broker.log"

    def _write_config(self):
        controller = free_port()
        more = "".join(f",{name}://localhost:{port}" for name, (port, _) in self._listeners.items())
        protocols = "".join(f",{name}:{protocol}" for name, (_, protocol) in self._listeners.items())
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}{more}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}{more}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            "num.partitions": 1,
            "offsets.topic.num.partitions": 4,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.segment.delete.delay.ms": 1000,
            # A broker that was killed may not come back before the session of its dead self is over.
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 500,
            **self._settings,
        }
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _command(self, main, *arguments):
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        options = [f"-XX:ArchiveClassesAtExit={self._archive_to}"] if self._archive_to and main == "kafka.Kafka" else self._archive
        return ["java", *JAVA_OPTIONS, *options, logging, "-cp", f"{self._libs}/*", main, *map(str, arguments)]

    def _java(self, *command):
        done = subprocess.run(self._command(*command), capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"{command[0]} failed: {(done.stdout + done.stderr)[-500:]}")

    def wait_until_it_answers(self):
        """Until it can be asked for anything: one whose heartbeats came late, or that was frozen, may be fenced for a while. It has no
        controller then, and a client that asks for one at that moment may wait for it for a minute."""
        from kafka.errors import KafkaError

        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError, KafkaError):
                if self._is_ready():
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)
        tail = self._log.read_text(errors="replace")[-1000:]
        self._end(signal.SIGKILL)
        raise Unavailable(f"the broker did not answer within {START_SECONDS} s: {tail}")

    def _is_ready(self):
        from kafka.admin import KafkaAdminClient

        socket.create_connection(("127.0.0.1", self.port), 1).close()
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            cluster = admin.describe_cluster()
            admin.list_topics()
            return cluster["controller_id"] >= 0 and not all(broker["is_fenced"] for broker in cluster["brokers"])
        finally:
            admin.close()

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


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with KafkaBroker() as broker, contextlib.suppress(KeyboardInterrupt):
        print(broker.bootstrap, flush=True)
        signal.pause()
