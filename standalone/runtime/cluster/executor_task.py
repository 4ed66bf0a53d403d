"""On an executor: runs one connector task, with the same runners as in a worker.

    run(payload, place)    called by Spark (pipeline/spark/executors.py); `payload` is the dict of TaskPayload.for_job

Transforms and converters run here, by rows or by columns in this process; an executor has no Spark session. A task that loses its channel
stops: it must not commit any more, as its successor may already run elsewhere.
"""

import gc
import logging
import os
import sys
import threading

from standalone import secrets
from standalone.clock import SYSTEM
from standalone.errors import ConnectError, trace_of
from standalone.log.client import Clusters
from standalone.log.heartbeats import Heartbeats
from standalone.log.relayed_group import RelayedGroup
from standalone.runtime.cluster.control_channel import HEARTBEAT_SECONDS, ChannelLost, open_channel
from standalone.runtime.cluster.payload import TaskPayload
from standalone.runtime.cluster.start_times import Steps
from standalone.runtime.cluster.worker_proxies import Forwarder, GroupProxy, OffsetsProxy, StateProxy
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.runtime.log_clients import LogClients
from standalone.runtime.tasks.active_topics import ActiveTopics
from standalone.runtime.tasks.factory import TaskFactory
from standalone.runtime.tasks.lifecycle import FAILED, UNASSIGNED, ContextFilter
from standalone.runtime.tasks.memory import MemoryBudget

log = logging.getLogger(__name__)

ENTRY = f"{__name__}:run"
_LOOPBACK = ("127.", "localhost", "[::1]", "::1")
_FORMAT = logging.Formatter()
_ABANDONED = 70  # exit code of a process whose task does not stop


def run(payload, place):
    """How it ended: {"state", "trace"}; the worker already knows if its channel was still up."""
    payload = TaskPayload(**payload)
    for value in payload.hidden:
        secrets.hide(value)
    sys.setswitchinterval(0.0005)
    gc.set_threshold(10_000, 10, 10)
    try:
        return _ExecutorTask(payload, place).run()
    except ChannelLost as error:
        return {"state": UNASSIGNED, "trace": str(error)}


class _ExecutorTask:
    def __init__(self, payload, place):
        self._payload = payload
        self._place = place
        self._steps = Steps({"imports": place["import_seconds"]})
        self._channel = open_channel(payload.address, payload.key)
        self._steps.done("control channel")
        self._lock = threading.Lock()
        self._runner = None
        self._group = None
        self._offsets = OffsetsProxy(self._channel)
        self._over = threading.Event()
        self._done = threading.Event()
        self._waiting = []  # requests that arrived before the runner was created
        self._ended = UNASSIGNED, None
        self._handler = _ToWorker(Forwarder(self._channel))

    def run(self):
        payload, place = self._payload, self._place
        self._channel.send("hello", {
            "connector": payload.connector["name"], "task": payload.number, "run": payload.run, "job": payload.job,
            "attempt": place["attempt"], "host": place["host"], "process": os.getpid(),
        })  # fmt: skip
        root = logging.getLogger()
        level, root.level = root.level, logging.INFO
        root.addHandler(self._handler)
        try:
            threading.Thread(target=self._listen, name="channel", daemon=True).start()
            threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
            self._work()
        finally:
            self._done.set()
            root.removeHandler(self._handler)
            root.setLevel(level)
            self._channel.close()
        state, trace = self._ended
        return {"state": state, "trace": trace}

    def _work(self):
        try:
            runner = self._new_runner()
        except Exception as error:
            log.error("The task cannot be started: %s", trace_of(error))
            self._say(FAILED, trace_of(error))
            self._channel.send("ended")
            return
        with self._lock:
            self._runner = runner
            waiting, self._waiting = self._waiting, []
        self._steps.done("configuration")
        runner.start()
        for act in waiting:
            act(runner)
        while not runner.join(HEARTBEAT_SECONDS):
            self._tell_counts()
            if self._over.is_set() and not runner.join(self._payload.graceful_seconds):
                runner.cancel()
                if not runner.join(1.0):
                    os._exit(_ABANDONED)  # it has lost its channel, or must stop, and a hanging call must not continue
        self._tell_counts()
        self._channel.send("ended")

    def _do(self, act):
        """Run `act` on the runner, or once it is created."""
        with self._lock:
            runner = self._runner
            if runner is None:
                self._waiting.append(act)
                return
        act(runner)

    # ---------------------------------------------------------------- creating the task
    def _new_runner(self):
        payload, channel = self._payload, self._channel
        self._check_log()
        clock, clusters = SYSTEM, Clusters(SYSTEM)
        folder = self._place["folder"]
        texts = {**payload.worker, "plugin.path": ",".join(os.path.join(folder, each) for each in payload.plugins)}
        config = WorkerConfig.of(texts)
        config.embedded_registry = lambda: payload.registry
        plan = ConnectorConfig.of(payload.connector, config.plugins, config)
        state = StateProxy(channel, payload.first_schemas)
        memory = MemoryBudget(config["pipeline.memory.bytes"], config["pipeline.task.memory.bytes"])
        flush_seconds = config["offset.flush.timeout.ms"] / 1000

        def relayed(waker):
            self._group = RelayedGroup(GroupProxy(channel, flush_seconds), waker)
            return self._group

        factory = TaskFactory(
            *(config, clock, LogClients(config, clusters, clock, self._bootstrap)), heartbeats=Heartbeats(clock), memory=memory, session=None,
            topics=ActiveTopics(state, config["topic.tracking.enable"]), offsets=self._offsets, uuid=payload.uuid, state=state,
            note_event=state.note_event, note_end=lambda: channel.send("source_ended"), relayed=relayed,
        )  # fmt: skip
        return factory.new_runner(plan, payload.number, payload.task, self._say, payload.paused)

    def _bootstrap(self, properties):
        by_protocol = self._payload.bootstrap
        if any(name.startswith(("security.protocol", "sasl.", "ssl.")) for name in properties):
            return by_protocol.get(properties.get("security.protocol", "PLAINTEXT").upper(), {})
        return by_protocol[""]

    def _check_log(self):
        """Refuse a loopback address: on the executor it is not the worker's machine."""
        said = self._payload.bootstrap[""]["bootstrap.servers"]
        if said.startswith(_LOOPBACK) and self._place["host"] != self._payload.host:
            raise ConnectError(
                f"The brokers are at {said}, which is a loopback address, and this executor runs on {self._place['host']}, not on "
                f"{self._payload['host']} with the worker. Set bootstrap.servers, or embedded.log.listener, to an address that executors can reach."
            )

    # ---------------------------------------------------------------- the control channel
    def _say(self, state, trace=None):
        self._ended = state, trace
        try:
            if self._steps is not None and state != UNASSIGNED:
                steps, self._steps = self._steps, None
                steps.done("start")
                self._channel.send("started", steps.told())
            self._channel.send("state", [state, trace])
        except ChannelLost:
            self._over.set()

    def _tell_counts(self):
        counts = self._runner.metrics()
        lag = counts.pop("lag", None)
        task = counts.pop("task", None)
        body = {"counts": counts, "records": self._runner.meter.records, "pipeline": self._runner.pipeline.shown()}
        if lag is not None:
            body["lag"] = [[*pair, count] for pair, count in lag.items()]
        if task is not None:
            body["task"] = [[list(name) if isinstance(name, tuple) else name, count] for name, count in task.items()]
        try:
            self._channel.send("counts", body)
        except ChannelLost:
            self._over.set()
            self._runner.stop()

    def _beat(self):
        """Send heartbeats even while the task is configured and started: on a busy machine that takes longer than a channel may be silent."""
        while not self._done.wait(HEARTBEAT_SECONDS):
            self._channel.heartbeat()

    def _listen(self):
        try:
            while True:
                kind, number, body = self._channel.receive()
                self._handle(kind, body)
        except ChannelLost as error:
            log.warning("The task stops because it has lost its channel to the worker: %s", error)
        finally:
            self._over.set()
            self._do(lambda runner: runner.stop())

    def _handle(self, kind, body):
        if kind in ("pause", "resume"):
            self._do(lambda runner: getattr(runner, kind)())
        elif kind == "stop":
            self._over.set()
            self._do(lambda runner: runner.stop())
        elif kind == "synced":
            self._do(lambda runner: runner.offsets_synced(body))
        elif kind == "trouble":
            self._offsets.refused(body)
        elif kind == "give":
            self._do(lambda _: self._group.give({(topic, index): mark and tuple(mark) for topic, index, mark in body}))
        elif kind in ("take_back", "lose"):
            self._do(lambda _: getattr(self._group, kind)([(topic, index) for topic, index in body]))


class _ToWorker(logging.Handler):
    """Sends log records to the worker's log, too."""

    def __init__(self, sent):
        super().__init__(logging.INFO)
        self._forwarder = sent
        self.addFilter(ContextFilter())

    def emit(self, record):
        if record.name.startswith("py4j"):
            return
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{_FORMAT.formatException(record.exc_info)}"
        self._forwarder("log", [record.name, record.levelno, record.context, text])
