"""connectctl from-distributed, on the three storage topics as a genuine distributed worker of Kafka 4.3.1 left them (tests/golden): a source that
runs, one that was paused, a sink that runs, one that was stopped (its first `state` says PAUSED for workers that know no better), one deleted."""

import json
import pathlib

import pytest

from standalone import properties
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.runtime.offsets.journal import OffsetsFile
from standalone.tools.log_access import LogAccess
from standalone.wire import ByteColumn, Records

RECORDED = pathlib.Path(__file__).parent.parent / "golden" / "distributed_topics.jsonl"
NAMES = ("lines in", "lines-out", "paused-in", "stopped")


@pytest.fixture(scope="module")
def theirs(worker, tmp_path_factory):
    """The properties of that worker, whose topics are in the log."""
    by_topic = {}
    for line in RECORDED.read_text().splitlines():
        record = json.loads(line)
        by_topic.setdefault(record["topic"], []).append((record["key"].encode(), record["value"] and record["value"].encode()))
    with LogAccess.at(worker.bootstrap) as log:
        for topic, records in by_topic.items():
            log.admin.create_topics(topic, 1 if topic.endswith("configs") else 3, configs={"cleanup.policy": "compact"})
            keys, values = (ByteColumn.of([record[at] for record in records]) for at in (0, 1))
            log.write(topic, None, Records(len(records), keys=keys, values=values))
    path = tmp_path_factory.mktemp("theirs") / "connect-distributed.properties"
    string = "org.apache.kafka.connect.storage.StringConverter"
    path.write_text(properties.dump({
        "bootstrap.servers": worker.bootstrap, "group.id": "movers", "key.converter": string, "value.converter": string,
        "config.storage.topic": "movers-configs", "offset.storage.topic": "movers-offsets", "status.storage.topic": "movers-statuses",
        "offset.storage.replication.factor": "1", "offset.flush.interval.ms": "500", "session.timeout.ms": "10000",
        "inter.worker.key.ttl.ms": "3600000", "plugin.path": "/usr/share/java", "consumer.max.poll.records": "100",
    }))  # fmt: skip
    return path


def test_properties_connectors_states_and_offsets_move_over(local, theirs, tmp_path):
    folder = tmp_path / "ours"
    said = local.json("from-distributed", theirs, folder)
    assert [(each["name"], each["target"], each["offsets"]) for each in said["connectors"]] == [
        ("lines in", "STARTED", 1), ("lines-out", "STARTED", 0), ("paused-in", "PAUSED", 1), ("stopped", "STOPPED", 0)
    ]  # fmt: skip
    found = [properties.load_connector(folder / each["file"]) for each in said["connectors"]]
    assert [(each.name, each.initial_state) for each in found] == list(zip(NAMES, ("RUNNING", "RUNNING", "PAUSED", "STOPPED")))
    assert found[0].config == {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "/srv/in.txt", "topic": "moved", "tasks.max": "1",
        "name": "lines in",
    }  # fmt: skip
    worker = properties.load(folder / "worker.properties")
    config = WorkerConfig.of(worker)
    assert not any("distributed" in warning for warning in config.warnings)
    assert (config["offset.flush.interval.ms"], worker["consumer.max.poll.records"]) == (500, "100")
    assert worker.keys() & {"group.id", "config.storage.topic", "session.timeout.ms", "inter.worker.key.ttl.ms"} == set()
    offsets = OffsetsFile(config["offset.storage.file.filename"]).load()
    assert offsets.get("lines in", {"filename": "/srv/in.txt"}) == {"position": 14}
    assert offsets.get("paused-in", {"filename": "/srv/in2.txt"}) == {"position": 2}
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir() if path.is_file())  # a configuration may hold passwords


def test_every_key_that_is_not_taken_says_what_became_of_it(local, theirs, tmp_path):
    said = local.json("from-distributed", theirs, tmp_path / "ours", "--spark-master", "spark://m:7077", "--dry-run")
    told = {each["key"]: each["said"] for each in said["keys"]}
    kept, _ = {**properties.load(theirs)}, None
    assert {"group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic", "session.timeout.ms"} <= told.keys() & kept.keys()
    assert "connect-NAME" in told["group.id"] and "spark://m:7077" in told["tasks.run.on"]
    assert not (tmp_path / "ours").exists()


def test_tasks_on_a_cluster_are_asked_for(local, theirs, tmp_path):
    local("from-distributed", theirs, tmp_path, "--spark-master", "spark://m:7077")
    worker = properties.load(tmp_path / "worker.properties")
    assert (worker["tasks.run.on"], worker["spark.master"]) == ("cluster", "spark://m:7077")


def test_nothing_is_overwritten_unasked(local, theirs, tmp_path):
    local("from-distributed", theirs, tmp_path)
    assert "--force to overwrite" in local("from-distributed", theirs, tmp_path, code=1)
    local("from-distributed", theirs, tmp_path, "--force")


def test_properties_of_another_kind_of_worker_are_refused(local, worker, tmp_path):
    path = tmp_path / "worker.properties"
    string = "org.apache.kafka.connect.storage.StringConverter"
    path.write_text(f"bootstrap.servers={worker.bootstrap}\nkey.converter={string}\nvalue.converter={string}\n")
    assert "config.storage.topic" in local("from-distributed", path, tmp_path / "ours", code=1)
