"""A real Apache Kafka broker of one node, for tests: its jars come from Maven, once, into a cache folder.

    python -m tests.servers.kafka_broker      runs one until Ctrl-C and prints its address
"""

import subprocess

from tests.servers.server import HERE, Server, Unavailable, free_port, jars, java, locked, run_until_interrupted, takes_connections
from tests.servers.server import JAVA_OPTIONS as QUICK_START

VERSION = "4.3.1"
CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAQ"
START_SECONDS = 80  # on a machine that has others to serve; ten on one that has not
JAVA_OPTIONS = ["-Xms256m", "-Xmx512m", *QUICK_START]


def kafka_jars():
    return jars(f"kafka-{VERSION}", HERE / "pom.xml")


def archive(libs):
    """Options by which Java starts with its classes as they were once loaded, at half of a start's cost; [] where that cannot be.

    The archive is made once, by a broker that starts and stops, and kept beside the jars; an empty file says that it was tried in vain.
    """
    path = libs.with_suffix(".jsa")
    if not path.exists():
        with locked("lock"):
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


class KafkaBroker(Server):
    """`bootstrap` stays the same, and so does the data, through kill and restart.

    listeners: {name: security protocol} of more listeners, each at `address(name)`; scram: `SCRAM-SHA-256=[name=..,password=..]`
    users; settings: into server.properties.
    """

    name = "kafka"

    def __init__(self, listeners=None, scram=(), settings=None, archive_to=None):
        super().__init__()
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._listeners = {name: (free_port(), protocol) for name, protocol in (listeners or {}).items()}
        self._scram = scram
        self._settings = settings or {}
        self._archive_to = archive_to  # where its classes are to be kept when it stops

    def start(self):
        self.launch()
        self.wait_until_it_answers()
        return self

    def launch(self):
        """Start it and wait for nothing: a node of a cluster answers once the others are there."""
        self._libs = kafka_jars()
        self._archive = [] if self._archive_to else archive(self._libs)
        if self._make_folder():
            self._write_config()
            users = [word for user in self._scram for word in ("--add-scram", user)]
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", self._config, *users)
        self._begin(self._command("kafka.Kafka", self._config))

    def address(self, listener):
        return f"localhost:{self._listeners[listener][0]}"

    def restart(self):
        """Start again after `kill` or `shut_down`; a second time where the first comes to nothing."""
        try:
            return self.start()
        except Unavailable:
            return self.start()

    def handed_over(self):
        return {"bootstrap": self.bootstrap, **super().handed_over()}

    @property
    def data(self):
        """The folder with its log."""
        return self._folder / "data"

    @property
    def _config(self):
        return self._folder / "server.properties"

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
            "log.retention.ms": -1,  # records of tests have the times that they like
            # A broker that was killed may not come back before the session of its dead self is over.
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 500,
            **self._settings,
        }
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _command(self, main, *arguments):
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        options = [f"-XX:ArchiveClassesAtExit={self._archive_to}"] if self._archive_to and main == "kafka.Kafka" else self._archive
        return [java(), *JAVA_OPTIONS, *options, logging, "-cp", f"{self._libs}/*", main, *map(str, arguments)]

    def _java(self, *command):
        done = subprocess.run(self._command(*command), capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"{command[0]} failed: {(done.stdout + done.stderr)[-500:]}")

    def wait_until_it_answers(self):
        """Until it can be asked for anything: one whose heartbeats came late, or that was frozen, may be fenced for a while. It has no
        controller then, and a client that asks for one at that moment may wait for it for a minute."""
        from kafka.errors import KafkaError

        self._wait_until(self._is_ready, START_SECONDS, KafkaError)

    def _is_ready(self):
        from kafka.admin import KafkaAdminClient

        takes_connections(self.port)
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            cluster = admin.describe_cluster()
            admin.list_topics()
            return cluster["controller_id"] >= 0 and not all(broker["is_fenced"] for broker in cluster["brokers"])
        finally:
            admin.close()


if __name__ == "__main__":
    run_until_interrupted(KafkaBroker(), lambda broker: broker.bootstrap)
