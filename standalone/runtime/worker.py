"""What all connectors share: configuration, connections to the log, offsets, state, the Spark session. tasks/factory.py builds runners of it."""

import logging
import threading

from standalone import __version__
from standalone.errors import ConnectError, LogError, StartError
from standalone.log.admin import Admin
from standalone.log.client import Clusters
from standalone.log.client_config import AdminConfig, ConsumerConfig, ProducerConfig
from standalone.log.consumer import Consumer
from standalone.log.heartbeats import Heartbeats
from standalone.pipeline.spark.session import SessionHolder
from standalone.runtime.cluster.cluster import Cluster
from standalone.runtime.cluster.modules import Modules
from standalone.runtime.cluster.options import for_executors, runs_on_cluster, tasks_default_to_cluster
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.runtime.log_clients import LogClients
from standalone.runtime.log_keeper import LogKeeper
from standalone.runtime.log_view import LogView
from standalone.runtime.log_writer import LogWriter
from standalone.runtime.offsets.changes import SinkOffsets, SourceOffsets
from standalone.runtime.offsets.journal import OffsetsFile
from standalone.runtime.schema_registries import SchemaRegistries
from standalone.runtime.supervision import resident
from standalone.runtime.supervision.loggers import Loggers
from standalone.runtime.supervision.state import State
from standalone.runtime.tasks.active_topics import ActiveTopics
from standalone.runtime.tasks.factory import TaskFactory
from standalone.runtime.tasks.memory import MemoryBudget

log = logging.getLogger(__name__)

KAFKA_VERSION = "4.3.1"  # the Connect whose API and meaning this worker has


class Worker:
    def __init__(self, props, clock):
        self.clock = clock
        self.config = WorkerConfig.of(props)
        self.starting = True
        self.id = None
        self.state = None
        self.offsets = None
        self.topics = None
        self.loggers = None
        self._clusters = Clusters(clock)
        self._clients = LogClients(self.config, self._clusters, clock, self.log_settings)
        self._heartbeats = Heartbeats(clock)
        self._memory = MemoryBudget(self.config["pipeline.memory.bytes"], self.config["pipeline.task.memory.bytes"])
        self._modules = Modules(self.config["plugin.path"])  # that executors import
        on_cluster = tasks_default_to_cluster(self.config)
        spark = for_executors(self.config.spark()) if on_cluster else self.config.spark()
        self._session = SessionHolder(spark, self.config["spark.start"], prepare=self._modules.send if on_cluster else None)
        self._embedded = None
        self.schemas = SchemaRegistries(self.config)
        self.config.embedded_registry = self.schemas.embedded_url
        self._cluster_id = None
        self._tasks = self._cluster = None
        self._closing = threading.Event()
        self._herder = None
        self._offsets_trouble = None  # why offsets could not be made durable
        self.streaming = None  # a Streaming, once there is a herder
        self.note_end = lambda: None  # called when a source's task has come to its end

    # ---------------------------------------------------------------- the worker's life
    def open(self, address):
        """Take the state folder, reach the log. Raises StartError, OffsetsError, LogError, each with what to do."""
        host, port = address
        self.id = f"{'127.0.0.1' if host in ('', '0.0.0.0', '::') else host}:{port}"
        for message in self.config.warnings:
            log.warning("%s", message)
        self.state = State(self.config.state_dir, self.clock).open()
        self.topics = ActiveTopics(self.state, self.config["topic.tracking.enable"])
        self.topics.restore()
        self.loggers = Loggers(self.state, self.clock)
        self.loggers.restore()
        self._start_embedded_log()
        self.schemas.open()
        self.offsets = OffsetsFile(self.config["offset.storage.file.filename"], self._before_offsets).open()
        self._tasks = TaskFactory(
            *(self.config, self.clock, self._clients), heartbeats=self._heartbeats, memory=self._memory, session=self._session,
            topics=self.topics, offsets=self.offsets, uuid=self.state.worker_uuid(), state=self.state,
            note_event=lambda *event: self.state.note_event(*event, self.id), note_end=lambda: self.note_end(),
        )  # fmt: skip
        self._cluster = Cluster(self, self._clients, self._heartbeats, self.offsets, self.state, self.topics, self._session, self._modules)
        self._reach_cluster()
        if self.config["spark.start"] == "eager":
            self._session.request()
        threading.Thread(target=self._heartbeats.run, name="heartbeats", daemon=True).start()

    def watch(self, herder):
        """Make offsets durable every offset.flush.interval.ms, and tell the herder's source tasks."""
        self._herder = herder
        threading.Thread(target=self._flush_offsets, name="offsets", daemon=True).start()
        threading.Thread(target=self._give_memory_back, name="memory", daemon=True).start()

    def close(self):
        self._closing.set()
        steps = [self._heartbeats.stop, self._session.stop, self._modules.close, self._clusters.close, self.schemas.close]
        if self._cluster is not None:
            steps.insert(0, self._cluster.close)
        steps += [part.close for part in (self.offsets, self.state) if part is not None]
        if self._embedded is not None:
            steps.insert(-1, self._embedded.stop)
        for step in steps:
            try:
                step()
            except Exception:
                log.exception("While stopping")

    def about(self):
        return {"version": KAFKA_VERSION, "commit": f"connect-standalone-{__version__}", "kafka_cluster_id": self._cluster_id}

    def health_problem(self):
        """What keeps it from storing what it should, or None. Waits for nothing."""
        return self.state.health_problem() or self._offsets_trouble

    def figures(self):
        """What is counted of the worker as a whole: {"worker": {name: value}, "log": sizes of the embedded log's partitions}."""
        session = self._session
        spark = {
            "spark_up": int(session.ready() is not None),
            "spark_starts-total": session.starts,
            "spark_jobs-total": session.jobs,
            "spark_job_seconds-total": session.job_seconds,
            "spark_waiting_jobs": session.waiting,
        }
        return {"worker": spark, "log": self._embedded.sizes() if self._embedded is not None else []}

    @property
    def session(self):
        """The SessionHolder."""
        return self._session

    @property
    def clients(self):
        """The LogClients, for what is not a connector."""
        return self._clients

    def registry_url(self):
        """Where schemas are registered that no connector names a registry for; None where nobody says. The worker's own is started for it."""
        key = "converter.schema.registry.url"
        found = next((url for part in ("value", "key") if (url := self.config.originals.get(f"{part}.{key}"))), None)
        if found == "embedded" or found is None and self.config.embedded:
            return self.schemas.embedded_url()
        return found

    @property
    def listeners(self):
        return self.config["listeners"]

    @property
    def graceful_seconds(self):
        return self.config["task.shutdown.graceful.timeout.ms"] / 1000

    @property
    def _flush_seconds(self):
        return self.config["offset.flush.timeout.ms"] / 1000

    def _start_embedded_log(self):
        if not self.config.embedded:
            return
        from standalone.log.broker.server import EmbeddedLog

        options = {name: value for name, value in self.config.items() if name.startswith("embedded.log.")}
        self._embedded = EmbeddedLog(self.config.log_dir(), self.config["embedded.log.listener"], options, self.clock)
        self._embedded.start()

    @property
    def bootstrap(self):
        return self._embedded.bootstrap if self._embedded is not None else self.config.bootstrap()

    def log_settings(self, properties):
        """Where clients of this process find the log, and how they are let in: by the embedded one with all rights, unless they say who they are."""
        if self._embedded is None:
            return {"bootstrap.servers": self.config.bootstrap()}
        if not any(name.startswith(("security.protocol", "sasl.", "ssl.")) for name in properties):
            return self._embedded.own_settings
        found = self._embedded.bootstrap_of(properties.get("security.protocol", "PLAINTEXT").upper())
        return {"bootstrap.servers": found or self._embedded.bootstrap}

    def _before_offsets(self):
        if self._embedded is not None:
            self._embedded.sync()

    def _reach_cluster(self):
        """Wait for the log's first answer: without it no connector could do anything."""
        config = AdminConfig.of(self._clients.properties("admin"))
        cluster = self._clusters.get(config)
        try:
            self._cluster_id = cluster.cluster_id(timeout=config.seconds("default.api.timeout.ms"))
        except LogError as error:
            raise StartError(f"{error} Is Kafka running there? bootstrap.servers=embedded starts a log of the worker's own.") from error

    def _flush_offsets(self):
        seconds = self.config["offset.flush.interval.ms"] / 1000
        while not self.clock.wait(self._closing, seconds):
            try:
                begun = self.clock.monotonic()
                self.offsets.sync()
                self._offsets_trouble = None
                took = self.clock.monotonic() - begun
                for runner in self._herder.runners():
                    runner.offsets_synced(took)
            except Exception as error:  # whatever it is: without this thread no offset would be durable any more
                self._offsets_trouble = f"Source offsets could not be made durable: {error}"
                log.error("Source offsets could not be synced; retrying in %.0f s: %s", seconds, error)

    def _give_memory_back(self):
        memory = resident.Resident()
        while not self.clock.wait(self._closing, resident.SECONDS):
            memory.look()

    # ---------------------------------------------------------------- connectors and tasks
    def plan(self, props):
        """A connector's configuration, checked. Raises ConfigError with all that is wrong."""
        config = ConnectorConfig.of(props, self.config.plugins, self.config)
        for message in config.warnings:
            log.warning("%s", message)
        return config

    def version(self, plan):
        return self.config.plugins.version(plan.connector_class)

    def task_configs(self, plan, connector):
        """What the connector says, as each task gets it."""
        most = plan["tasks.max"]
        configs = connector.task_configs(most)
        if len(configs) > most:
            said = f"The connector '{plan['name']}' made {len(configs)} task configurations, but tasks.max is {most}"
            if plan["tasks.max.enforce"]:
                raise ConnectError(f"{said}. Raise tasks.max, or let it pass with tasks.max.enforce=false.")
            log.warning("%s, allowed by tasks.max.enforce=false", said)
        task_class = plan.connector_class.task_class
        shown = f"{getattr(task_class, 'java_name', None) or f'{task_class.__module__}.{task_class.__qualname__}'}"
        return [{**plan.originals, **config, "task.class": shown} for config in configs]

    def new_runner(self, plan, number, task_config, listen, paused):
        tasks = self._cluster if runs_on_cluster(plan, self.config) else self._tasks
        return tasks.new_runner(plan, number, task_config, listen, paused)

    def offsets_of(self, plan):
        """What operators ask of a connector's offsets."""
        if plan.kind == "source":
            return SourceOffsets(plan["name"], plan, self.source_offsets(plan))
        return SinkOffsets(plan, self._clients.properties("consumer", plan.originals)["group.id"], self._clients.admin(plan.originals))

    def source_offsets(self, plan):
        """Where the offsets of a source are: in the worker's file or, with exactly-once, in a topic."""
        return self._tasks.source_offsets(plan)

    def log_writer(self):
        """Who writes single records for people, as the worker's own clients may."""
        producer = ProducerConfig.of({"acks": "all", **self._clients.properties("producer")})
        return LogWriter(self._clusters.get(producer), producer, self.clock)

    def client_properties(self):
        """{kind: Java-named properties} of the worker's own clients."""
        return {kind: self._clients.properties(kind) for kind in ("admin", "producer", "consumer")}

    def log_keeper(self):
        """What people change of topics, and see of groups, as the worker's own clients may."""
        admin = AdminConfig.of(self._clients.properties("admin"))
        return LogKeeper(Admin(self._clusters.get(admin), admin, self.clock), self.log_view())

    def log_view(self):
        """What people see of topics and records, as the worker's own clients may."""
        admin, consumer = AdminConfig.of(self._clients.properties("admin")), ConsumerConfig.of(self._clients.properties("consumer"))

        def new_consumer(max_bytes):
            return Consumer(self._clusters.get(consumer), consumer, self.clock, max_bytes=max_bytes)

        return LogView(Admin(self._clusters.get(admin), admin, self.clock), new_consumer, self.clock)
