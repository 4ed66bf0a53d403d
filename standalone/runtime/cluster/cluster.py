"""Tasks on the executors of a Spark cluster (tasks.run.on=cluster), the worker's side: create and start them, and receive their messages.

    remote_runner.py     a task, on the worker          executor_task.py     the same task, on the executor
    payload.py           what the executor gets        control_channel.py   messages between the two
    shares.py            partitions of a sink          worker_proxies.py    the worker's offsets and state, on the executor
    modules.py           what executors import         options.py           keys, and secrets
"""

import threading

from standalone.errors import ConfigError
from standalone.log.client_config import ConsumerConfig
from standalone.log.consumer import Consumer
from standalone.pipeline.spark.executors import LongJobs
from standalone.runtime.cluster.control_channel import HEARTBEAT_SECONDS, ChannelServer
from standalone.runtime.cluster.options import CONTROL_PORT, RUN_ON, check_protection
from standalone.runtime.cluster.payload import TaskPayload, secrets_within
from standalone.runtime.cluster.remote_runner import RemoteRunner
from standalone.runtime.cluster.shares import Shares
from standalone.stage import QueryTransform


class Cluster:
    """One for the worker. `worker` provides what tasks need; everything starts with the first task."""

    def __init__(self, worker, clients, heartbeats, offsets, state, topics, session, modules):
        self.clock = worker.clock
        self._worker = worker
        self._config = worker.config
        self._clients = clients
        self._heartbeats = heartbeats
        self._offsets = offsets
        self._state = state
        self._topics = topics
        self._session = session
        self._lock = threading.Lock()
        self._server = None
        self._runners = {}  # (connector, number) -> its running RemoteRunner
        self._shares = {}  # connector -> Shares
        self._users = {}  # Shares -> the runners that use it
        self._closing = threading.Event()
        self._modules = modules
        self.jobs = LongJobs(session, modules.send)
        self._address = None

    # ---------------------------------------------------------------- creating tasks
    def new_runner(self, plan, number, task_config, listen, paused):
        """Create a RemoteRunner. Raises ConfigError if the connector cannot run on a cluster."""
        self._check(plan)
        payload = TaskPayload.of(plan, number, task_config, worker=self._worker, state=self._state, plugins=self._modules.plugins())
        return RemoteRunner(self, plan, payload, connector=plan["name"], number=number, listener=listen, paused=paused)

    def _check(self, plan):
        queries = [link.alias for link in plan.links() if issubclass(link.transform, QueryTransform)]
        if queries:
            raise ConfigError.of({
                RUN_ON: f"the transform '{queries[0]}' (Sql) needs a Spark session, which executors do not have: run this connector in the worker "
                "(tasks.run.on=worker in its configuration), where Sql runs on the same cluster"
            })  # fmt: skip
        check_protection(secrets_within(plan, self._worker), self._config.spark())

    def _join_shares(self, runner):
        with self._lock:
            shares = self._shares.get(runner.connector)
            if shares is None:
                shares = self._shares[runner.connector] = self._new_shares(runner.plan)
            self._users.setdefault(shares, set()).add(runner)
            runner.shares = shares
        shares.expect(runner.number)

    def _new_shares(self, plan):
        name = plan["name"]
        properties = self._clients.properties("consumer", plan.originals, {"client.id": f"connector-consumer-{name}"})
        config = ConsumerConfig.of(properties)
        instance = properties.get("group.instance.id") or f"{self._state.worker_uuid()}-{name}"

        def new_consumer(listener):
            return Consumer(self._clients.cluster(config), config, self.clock, config["group.id"], instance, listener, self._heartbeats)

        def failed(shares, error):
            with self._lock:
                if self._shares.get(name) is shares:
                    del self._shares[name]
                users = list(self._users.get(shares, ()))
            for runner in users:
                runner.fail(error)

        return Shares(name, new_consumer, plan.subscription, self.clock, self._config["offset.flush.timeout.ms"] / 1000, failed)

    # ---------------------------------------------------------------- running tasks
    def expect(self, runner):
        if runner.plan.kind == "sink":
            self._join_shares(runner)
        with self._lock:
            self._runners[runner.connector, runner.number] = runner

    def forget(self, runner):
        """The runner has ended."""
        name, shares = runner.connector, runner.shares
        with self._lock:
            if self._runners.get((name, runner.number)) is runner:
                del self._runners[name, runner.number]
            users = self._users.get(shares, set())
            users.discard(runner)
            is_over = shares is not None and not users
            if is_over:
                self._users.pop(shares, None)
                if self._shares.get(name) is shares:
                    del self._shares[name]
        if is_over:
            shares.close(self._worker.graceful_seconds)
        elif shares is not None:
            shares.forget(runner.number)

    def close(self):
        self._closing.set()
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def listening(self, stopping):
        """Address and key of the control channel, once there is a Spark session, in the form that TaskPayload.for_job takes."""
        host, listens_at = self.jobs.driver(stopping)
        with self._lock:
            if self._server is None:
                self._server = ChannelServer(listens_at, self._config[CONTROL_PORT], self._attend)
                threading.Thread(target=self._tick, name="cluster-heartbeat", daemon=True).start()
            return {"address": (host, self._server.port), "key": self._server.key}

    def _attend(self, channel):
        kind, _, hello = channel.receive()
        runner = self._runners.get((hello["connector"], hello["task"])) if kind == "hello" else None
        if runner is None or hello["run"] != runner.run_id:
            return  # its task has ended
        runner.attend(channel, hello)

    def _tick(self):
        while not self.clock.wait(self._closing, HEARTBEAT_SECONDS):
            for runner in list(self._runners.values()):
                runner.tick()

    # ---------------------------------------------------------------- requests of tasks
    def store(self, connector, entries):
        self._offsets.append(connector, entries)

    def offset(self, connector, partition):
        return self._offsets.get(connector, partition)

    def all_offsets(self, connector):
        return self._offsets.all(connector)

    def sync(self):
        return self._offsets.sync()

    def note_topic(self, connector, topic):
        self._topics.note(connector, topic)

    def note_first_schema(self, connector, topic, text):
        self._state.put_first_schema(connector, topic, text)

    def note_end(self):
        self._worker.note_end()

    def note_event(self, connector, number, state, text, worker_id):
        self._state.note_event(connector, number, state, text, worker_id)
