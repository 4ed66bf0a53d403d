"""Builds a task's runner from its connector's configuration: task, chain, Kafka clients, error handling."""

import functools

from standalone.log.client_config import ConsumerConfig, ProducerConfig, TransactionalConfig
from standalone.log.consumer import Consumer
from standalone.log.producer import Producer, TransactionalProducer
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.runtime.configuration.exactly_once import transactional_id
from standalone.runtime.failures.dead_letter import DeadLetterQueue, Letters, SourceWriter
from standalone.runtime.failures.retries import Retries
from standalone.runtime.failures.schema_drift import FirstSchemas
from standalone.runtime.failures.tolerance import ErrorCounters, Tolerance
from standalone.runtime.offsets.topic import OffsetsTopic
from standalone.runtime.tasks.exactly_once import ExactlyOnceRunner
from standalone.runtime.tasks.sink_runner import SinkRunner
from standalone.runtime.tasks.source_runner import SourceRunner
from standalone.runtime.tasks.topic_creation import TopicCreation


class TaskFactory:
    """`uuid` is the worker's: it makes the member id of a sink task stable across restarts. `relayed` creates the group of a sink task whose
    partitions come from the worker (log/relayed_group.py)."""

    def __init__(
        self, config, clock, clients, *, heartbeats, memory, session, topics, offsets, uuid, state, note_event, note_end, relayed=None
    ):
        self._config = config
        self._clock = clock
        self._clients = clients
        self._heartbeats = heartbeats
        self._memory = memory
        self._session = session
        self._topics = topics
        self._offsets = offsets
        self._uuid = uuid
        self._first_schemas = FirstSchemas(state, self._json_converter)
        self._relayed = relayed
        self._note_event = note_event  # called with (connector, task, state, text)
        self._note_end = note_end  # called when a source task has finished
        self._graceful_seconds = config["task.shutdown.graceful.timeout.ms"] / 1000
        self._flush_seconds = config["offset.flush.timeout.ms"] / 1000

    def new_runner(self, plan, number, task_config, listen, paused):
        base = {"connector": plan["name"], "number": number, "listener": listen, "paused": paused}
        build = self._source_runner if plan.kind == "source" else self._sink_runner
        return build(plan, number, task_config, base)

    def _source_runner(self, plan, number, task_config, base):
        task = plan.connector_class.task_class()
        properties = self._clients.properties("producer", plan.originals, {"client.id": f"connector-producer-{plan['name']}-{number}"})
        in_transactions = self._config.exactly_once
        if in_transactions:
            config = TransactionalConfig.of({**properties, "transactional.id": transactional_id(self._config, plan["name"], number)})
        else:
            config = ProducerConfig.of(properties)
        tolerance, retries = self._tolerance(plan, number)
        pipeline = self._pipeline(plan, retries)  # first, because a plugin of it may fail and nothing needs closing yet
        groups = plan.topic_groups() if self._config["topic.creation.enable"] else []
        kind: type[Producer] = TransactionalProducer if in_transactions else Producer
        build = functools.partial(ExactlyOnceRunner, **self._boundary(plan)) if in_transactions else SourceRunner
        return build(
            task,
            task_config,
            pipeline=pipeline,
            producer=kind(self._clients.cluster(config), config, self._clock, halts=in_transactions or not tolerance.all),
            topics=self._topics.creation(plan["name"], TopicCreation(groups, lambda: self._clients.admin(plan.originals))),
            offsets=self.source_offsets(plan),
            tolerance=tolerance,
            retries=retries,
            memory=self._memory.share(),
            clock=self._clock,
            stop_seconds=min(self._graceful_seconds, self._flush_seconds),
            note_end=self._note_end,
            **base,
        )

    def source_offsets(self, plan):
        """Where the offsets of a source are stored."""
        if not self._config.exactly_once:
            return self._offsets
        topic = plan["offsets.storage.topic"] or self._config["offset.storage.topic"]
        shape = self._config["offset.storage.partitions"], self._config["offset.storage.replication.factor"]
        return OffsetsTopic(topic, plan.originals, self._clients, self._offsets, self._clock, *shape)

    def _boundary(self, plan):
        interval_ms = plan["transaction.boundary.interval.ms"]
        if interval_ms is None:
            interval_ms = self._config["offset.flush.interval.ms"]
        return {"boundary": plan["transaction.boundary"].lower(), "interval_seconds": interval_ms / 1000}

    def _sink_runner(self, plan, number, task_config, base):
        task = plan.connector_class.task_class()
        properties = self._clients.properties(
            "consumer", plan.originals, {"client.id": f"connector-consumer-{plan['name']}-{number}"}
        )
        config = ConsumerConfig.of(properties)
        instance = properties.get("group.instance.id") or f"{self._uuid}-{plan['name']}-{number}"

        def new_consumer(listener):
            if self._relayed is not None:
                return Consumer(self._clients.cluster(config), config, self._clock, listener=listener, relayed=self._relayed)
            return Consumer(
                self._clients.cluster(config), config, self._clock, config["group.id"], instance, listener, self._heartbeats
            )

        tolerance, retries = self._tolerance(plan, number)
        return SinkRunner(
            task,
            task_config,
            pipeline=self._pipeline(plan, retries),
            note_topic=lambda topic: self._topics.note(plan["name"], topic),
            new_consumer=new_consumer,
            subscription=plan.subscription,
            tolerance=tolerance,
            retries=retries,
            clock=self._clock,
            max_poll_records=config["max.poll.records"],
            commit_seconds=self._config["offset.flush.interval.ms"] / 1000,
            flush_seconds=self._flush_seconds,
            stop_seconds=self._graceful_seconds,
            drift=(plan["schema.drift"], self._first_schemas.of(plan["name"], plan.originals)),
            note_event=lambda state, text: self._note_event(plan["name"], number, state, text),
            **base,
        )

    def _tolerance(self, plan, number):
        """How one task handles failed records: (Tolerance, Retries)."""
        counters = ErrorCounters()
        letters = self._dead_letters(plan, number, counters)
        return Tolerance(plan, plan["name"], number, counters, self._clock, letters), Retries(plan, counters, self._clock)

    def _dead_letters(self, plan, number, counters):
        """The task's DeadLetterQueue, or None if none is configured."""
        prefix = "errors.deadletterqueue." if plan.kind == "sink" else "errors.source.deadletterqueue."
        topic = plan[f"{prefix}topic.name"]
        if not topic:
            return None

        def new_producer():
            name = f"connector-dlq-producer-{plan['name']}-{number}"
            config = ProducerConfig.of(self._clients.properties("producer", plan.originals, {"client.id": name}))
            return Producer(self._clients.cluster(config), config, self._clock)

        write = SourceWriter(self._converters(plan), self._json_converter) if plan.kind == "source" else None
        letters = Letters(plan["name"], number, plan[f"{prefix}context.headers.enable"], write)
        factor, context = plan[f"{prefix}topic.replication.factor"], f"{plan['name']}|task-{number}"
        return DeadLetterQueue(topic, factor, letters, lambda: self._clients.admin(plan.originals), new_producer, counters, context)

    def _json_converter(self, is_key):
        found = self._config.plugins.find("converter", "org.apache.kafka.connect.json.JsonConverter")
        return found.of({"schemas.enable": "true"}, is_key=is_key)

    def _converters(self, plan):
        return [plan.converter(part, self._config) for part in ("key", "value", "header")]

    def _pipeline(self, plan, retries=None):
        """The connector's chain, in the configured engine."""
        converters = self._converters(plan)
        links = [Link(*link.build()) for link in plan.links()]
        chain = Chain(plan.kind, *converters, links)
        engine = plan.originals.get("pipeline.engine") or self._config["pipeline.engine"]
        stopping = None if retries is None else retries.stopping
        return Pipeline(chain, engine, self._session, self._config["pipeline.columns.min.records"], retries, stopping)
