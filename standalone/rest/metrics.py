"""/metrics: metrics of worker, connectors and tasks for Prometheus.

Names are those that Connect dashboards expect from the JMX exporter, in lower case: `source-record-poll-total` of the group
`source-task-metrics` is `kafka_connect_source_task_source_record_poll_total`, with the labels connector and task. A status is a
series of the value 1 with a label `status`. Metrics that Connect lacks begin with `connect_standalone_`. metric_names.py lists
all of them.
"""

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from starlette.routing import Route

from standalone import __version__
from standalone.rest.metric_names import MEANINGS, STATES

_PREFIXES = {
    "connector-task-metrics": "kafka_connect_connector_task_",
    "source-task-metrics": "kafka_connect_source_task_",
    "sink-task-metrics": "kafka_connect_sink_task_",
    "task-error-metrics": "kafka_connect_task_error_",
    "producer-metrics": "kafka_producer_",
}


def routes(herder, worker):
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(herder, worker))
    ProcessCollector(registry=registry)

    def metrics(request):
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return [Route("/metrics", metrics, methods=["GET"])]


class _Collector:
    """Reads herder and worker at each scrape."""

    def __init__(self, herder, worker):
        self._herder = herder
        self._worker = worker

    def collect(self):
        families = _Families()
        about = self._worker.about()
        families.info("kafka_connect_app", "The worker.", {"version": about["version"], "commit_id": about["commit"]})
        families.info("connect_standalone_build", "The program.", {"version": __version__})
        counted = self._herder.count_connectors()
        self._worker_counts(families, counted)
        for connector in counted:
            self._connector(families, connector)
        self._engines(families)
        self._queries(families)
        return families

    def _worker_counts(self, families, counted):
        counts = {"connector-count": len(counted), "task-count": sum(len(connector.tasks) for connector in counted)}
        for what, starts in self._herder.starts.items():
            counts.update(starts.values(what))
        for name, value in counts.items():
            families.add("kafka_connect_worker_" + name, {}, value)

    def _connector(self, families, connector):
        name = {"connector": connector.name}
        families.add("kafka_connect_connector_status", {**name, "status": connector.state.lower()}, 1)
        described = {"class": connector.java_class, "type": connector.kind, "version": str(connector.version)}
        families.add("kafka_connect_connector_info", {**name, **described}, 1)
        states = [task.state.lower() for task in connector.tasks]
        families.add("kafka_connect_worker_connector_total_task_count", name, len(states))
        for state in STATES:
            families.add(f"kafka_connect_worker_connector_{state}_task_count", name, states.count(state))
        for task in connector.tasks:
            labels = {**name, "task": str(task.number)}
            families.add("kafka_connect_connector_task_status", {**labels, "status": task.state.lower()}, 1)
            if task.runner is not None:
                self._task(families, connector, labels, task.runner.metrics())

    def _task(self, families, connector, labels, groups):
        client = f"connector-{'producer' if connector.kind == 'source' else 'consumer'}-{labels['connector']}-{labels['task']}"
        for group, values in groups.items():
            if group == "lag":
                for (topic, partition), records in values.items():
                    place = {"clientid": client, "topic": topic, "partition": str(partition)}
                    families.add("kafka_consumer_fetch_manager_records_lag", place, records)
                families.add("kafka_consumer_fetch_manager_records_lag_max", {"clientid": client}, max(values.values(), default=0))
            elif group == "pipeline":
                for engine, records in values.items():
                    families.add("kafka_connect_pipeline_records-total", {**labels, "engine": engine}, records)
            elif group == "task":
                for name, value in values.items():
                    name, *label = (name,) if isinstance(name, str) else name
                    families.add(f"connect_standalone_task_{name}", {**labels, **({label[0]: label[1]} if label else {})}, value)
            else:
                own = {"clientid": client} if group == "producer-metrics" else labels
                for name, value in values.items():
                    families.add(_PREFIXES[group] + name, own, value)

    def _engines(self, families):
        figures = self._worker.figures()
        for name, value in figures["worker"].items():
            families.add("connect_standalone_" + name, {}, value)
        for topic, partition, size, start, end in figures["log"]:
            place = {"topic": topic, "partition": str(partition)}
            families.add("connect_standalone_embedded_log_bytes", place, size)
            families.add("connect_standalone_embedded_log_records", place, end - start)

    def _queries(self, families):
        streams = self._worker.streaming.opened
        for query in streams.queries.count_connectors() if streams is not None else ():
            name = {"query": query.name}
            state = query.tasks[0].state if query.tasks else query.state
            families.add("connect_standalone_query_status", {**name, "status": state.lower()}, 1)
            for figures in (task.runner.metrics()["query"] for task in query.tasks if task.runner is not None):
                for figure, value in figures.items():
                    families.add(f"connect_standalone_query_{figure}", name, value)


class _Families:
    """Metric families by name, created with their first value."""

    def __init__(self):
        self._families = {}

    def __iter__(self):
        return iter(self._families.values())

    def add(self, name, labels, value):
        """Add a value. Names ending in `-total` are counters; all others, including `total-record-failures`, are gauges."""
        family = self._families.get(name)
        if family is None:
            kind = CounterMetricFamily if name.endswith("-total") else GaugeMetricFamily
            text = name.replace("-", "_")
            family = self._families[name] = kind(text, MEANINGS.get(text, ""), labels=list(labels))
        family.add_metric(list(labels.values()), value)

    def info(self, name, help_text, labels):
        family = self._families[name] = InfoMetricFamily(name, help_text)
        family.add_metric([], labels)
