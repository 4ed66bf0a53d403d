"""/metrics: the series that dashboards and alerts for Connect ask for, with the values that were counted."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from standalone.rest.metric_names import each
from standalone.runtime.metrics import Sampled, SinkMeter, SourceMeter, Starts
from tests.rest.conftest import SINK
from tests.runtime.local import wait_for


class Series:
    """What one look at /metrics told."""

    def __init__(self, text):
        self.samples = {}
        self.kinds = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"twice: {sample}"
                self.samples[key] = sample.value
                self.kinds[sample.name] = family.type

    def __getitem__(self, key):
        name, labels = key if isinstance(key, tuple) else (key, {})
        return self.samples[name, frozenset(labels.items())]

    def named(self, name):
        return [dict(labels) for sample, labels in self.samples if sample == name]


@pytest.fixture
def look(api):
    def look():
        answer = api("GET", "/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        return Series(answer.text)

    return look


@pytest.fixture
def both(api, config, tmp_path):
    """A source of three lines, and a sink that has written them."""
    api.create("src", {**config, "transforms": "h", "transforms.h.type": "HoistField$Value", "transforms.h.field": "line"})
    api.create("snk", {"connector.class": SINK, "topics": config["topic"], "file": str(tmp_path / "out.txt")})
    wait_for(lambda: (tmp_path / "out.txt").exists() and len((tmp_path / "out.txt").read_text().splitlines()) == 3)


def test_records_are_counted_by_source_and_sink(api, both, look, config):
    source, sink = {"connector": "src", "task": "0"}, {"connector": "snk", "task": "0"}
    wait_for(lambda: look()["kafka_connect_sink_task_offset_commit_completion_total", sink] >= 1)
    seen = look()
    assert seen["kafka_connect_source_task_source_record_poll_total", source] == 3
    assert seen["kafka_connect_source_task_source_record_write_total", source] == 3
    assert seen["kafka_connect_source_task_source_record_active_count", source] == 0
    assert seen["kafka_connect_source_task_source_record_poll_rate", source] > 0
    assert seen["kafka_connect_source_task_poll_batch_max_time_ms", source] > 0
    assert seen["kafka_connect_sink_task_sink_record_read_total", sink] == 3
    assert seen["kafka_connect_sink_task_sink_record_send_total", sink] == 3
    assert seen["kafka_connect_sink_task_sink_record_active_count", sink] == 0
    assert seen["kafka_connect_sink_task_partition_count", sink] == 1
    assert seen["kafka_connect_sink_task_sink_record_lag_max", sink] == 0
    assert seen["kafka_connect_connector_task_batch_size_max", sink] >= 1
    assert seen["kafka_connect_connector_task_offset_commit_success_percentage", sink] == 1
    assert 0 < seen["kafka_connect_connector_task_running_ratio", source] <= 1
    assert seen["kafka_producer_record_send_total", {"clientid": "connector-producer-src-0"}] == 3
    place = {"clientid": "connector-consumer-snk-0", "topic": config["topic"], "partition": "0"}
    assert seen["kafka_consumer_fetch_manager_records_lag", place] == 0
    assert seen["kafka_connect_pipeline_records_total", {**source, "engine": "rows"}] == 3
    assert seen["connect_standalone_embedded_log_records", {"topic": config["topic"], "partition": "0"}] == 3
    assert seen["connect_standalone_embedded_log_bytes", {"topic": config["topic"], "partition": "0"}] > 0
    assert seen["process_resident_memory_bytes"] > 0


def test_states_are_series_of_their_own(api, both, look):
    wait_for(lambda: {"connector": "snk", "task": "0", "status": "running"} in look().named("kafka_connect_connector_task_status"))
    seen = look()
    assert seen["kafka_connect_connector_status", {"connector": "src", "status": "running"}] == 1
    assert len(seen.named("kafka_connect_connector_status")) == 2
    assert seen["kafka_connect_worker_connector_count"] == 2
    assert seen["kafka_connect_worker_task_count"] == 2
    assert seen["kafka_connect_worker_connector_running_task_count", {"connector": "src"}] == 1
    api.json("PUT", "/connectors/src/pause", status=202)
    wait_for(lambda: {"connector": "src", "task": "0", "status": "paused"} in look().named("kafka_connect_connector_task_status"))
    seen = look()
    assert seen["kafka_connect_worker_connector_paused_task_count", {"connector": "src"}] == 1
    assert seen["kafka_connect_connector_task_pause_ratio", {"connector": "src", "task": "0"}] > 0


def test_what_fails_is_counted(api, config, look):
    before = look()["kafka_connect_worker_task_startup_attempts_total"]
    extract = {"transforms": "x", "transforms.x.type": "ExtractField$Value", "transforms.x.field": "no"}
    api.create("bad", {**config, **extract, "errors.tolerance": "all", "errors.log.enable": "true"})
    task = {"connector": "bad", "task": "0"}
    wait_for(lambda: look()["kafka_connect_task_error_total_records_skipped", task] == 3)
    seen = look()
    assert seen["kafka_connect_task_error_total_record_failures", task] == 3
    assert seen["kafka_connect_task_error_total_record_errors", task] == 3
    assert seen["kafka_connect_task_error_total_errors_logged", task] == 3
    assert seen["kafka_connect_task_error_last_error_timestamp", task] > 1.6e12
    assert seen["kafka_connect_source_task_source_record_write_total", task] == 0
    assert seen["kafka_connect_source_task_source_record_active_count", task] == 0
    assert seen["kafka_connect_worker_task_startup_attempts_total"] == before + 1


def test_only_names_that_end_in_total_are_counters(api, both, look):
    kinds = look().kinds
    assert kinds["kafka_connect_source_task_source_record_poll_total"] == "counter"
    assert kinds["kafka_connect_task_error_total_record_failures"] == "gauge"
    assert not [name for name in kinds if name.endswith("_total_total")]


def test_every_series_is_one_of_the_documented_and_has_its_labels(api, both, look, config):
    """And the other way round: what is documented is there."""
    task = {"connector": "snk", "task": "0"}
    wait_for(lambda: look()["kafka_connect_sink_task_offset_commit_completion_total", task] >= 1)
    found = {}
    for name, labels in look().samples:
        found.setdefault(name, set()).add(frozenset(label for label, _ in labels))
    # Of sinks that count themselves: tests/connectors/elasticsearch/test_real.py. Of queries of SQL: tests/streams/test_doors.py.
    own = ("connect_standalone_task_", "connect_standalone_query_")
    documented = {name: {frozenset(labels)} for _, name, labels, _ in each() if not name.startswith(own)}
    assert found == documented


class Hand:
    """A clock moved by hand."""

    now = 0.0

    def monotonic(self):
        return self.now


def test_averages_and_rates_are_of_the_last_minute():
    clock = Hand()
    sampled = Sampled(clock)
    for value in (2, 4):
        sampled.note(value)
    clock.now = 10
    assert (sampled.average, sampled.greatest, sampled.rate) == (3, 4, 0.6)
    clock.now = 35
    sampled.note(9)
    assert (sampled.average, sampled.greatest) == (5, 9)
    clock.now = 70
    sampled.note(1)
    assert (sampled.average, sampled.greatest) == (5, 9)
    clock.now = 200
    assert (sampled.average, sampled.greatest, sampled.rate) == (0, 0, 0)


def test_ratios_are_of_the_time_since_the_start():
    clock = Hand()
    meter = SourceMeter(clock)
    meter.entered("RUNNING")
    clock.now = 30
    meter.entered("PAUSED")
    clock.now = 40
    common = meter.values()["connector-task-metrics"]
    assert (common["running-ratio"], common["pause-ratio"]) == (0.75, 0.25)


def test_a_commit_that_fails_leaves_records_uncommitted():
    meter = SinkMeter(Hand())
    meter.put(5, 0.1)
    meter.committed(0.1, well=False)
    assert meter.values()["sink-task-metrics"]["sink-record-active-count"] == 5
    meter.committed(0.1)
    values = meter.values()
    assert values["sink-task-metrics"]["sink-record-active-count"] == 0
    assert values["sink-task-metrics"]["offset-commit-seq-no"] == 2
    assert values["connector-task-metrics"]["offset-commit-failure-percentage"] == 0.5


def test_starts_that_failed_are_told_apart():
    starts = Starts()
    starts.count(True)
    starts.count(False)
    values = starts.values("task")
    assert (values["task-startup-attempts-total"], values["task-startup-failure-total"], values["task-startup-success-percentage"]) == (2, 1, 0.5)
