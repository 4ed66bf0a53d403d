"""Lines through a worker as Avro, Protobuf and JSON Schema: into a topic and out of it, and what happens to a message that cannot be read."""

import pytest

from standalone.schema_registry.client import RegistryRetriableError, SchemaRegistryClient
from tests.converters.fake_registry import FakeRegistry
from tests.runtime.local import LocalWorker, wait_for

HOIST = {
    **{"transforms": "hoist,out", "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value", "transforms.hoist.field": "line"},
    **{"transforms.out.type": "org.apache.kafka.connect.transforms.SetSchemaMetadata$Value", "transforms.out.schema.name": "logs.Line"},
}
EXTRACT = {
    "transforms": "extract",
    "transforms.extract.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
    "transforms.extract.field": "line",
}
CLASSES = ["io.confluent.connect.avro.AvroConverter", "io.confluent.connect.protobuf.ProtobufConverter", "io.confluent.connect.json.JsonSchemaConverter"]


@pytest.fixture
def registry(monkeypatch):
    made = FakeRegistry()
    monkeypatch.setattr(SchemaRegistryClient, "from_config", classmethod(lambda cls, config: made))
    return made


def converter(name):
    return {"value.converter": name, "value.converter.schema.registry.url": "http://registry:8081"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_lines_go_through_a_topic(tmp_path, registry, name):
    lines = [f"line {at} é" for at in range(300)]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    with LocalWorker(tmp_path) as worker:
        worker.source("in", str(tmp_path / "in"), "lines", **HOIST, **converter(name))
        worker.sink("out", str(tmp_path / "out"), "lines", **EXTRACT, **converter(name))
        wait_for(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text().count("\n") == len(lines))
        assert (tmp_path / "out").read_text().splitlines() == lines
        assert all(message.startswith(b"\0\0\0\0\1") for message in worker.values("lines", len(lines)))
    assert list(registry.subjects) == ["lines-value"]


@pytest.mark.slow
def test_a_registry_that_is_away_for_a_while_loses_nothing(tmp_path, registry):
    away = [3]
    register = registry.register

    def refused(*arguments):
        if away[0]:
            away[0] -= 1
            raise RegistryRetriableError("the registry is away")
        return register(*arguments)

    registry.register = refused
    (tmp_path / "in").write_text("a\nb\n")
    with LocalWorker(tmp_path) as worker:
        worker.source("in", str(tmp_path / "in"), "lines", **{"errors.retry.timeout": "60000"}, **HOIST, **converter(CLASSES[0]))
        assert worker.values("lines", 2) == [b"\0\0\0\0\1\x02a", b"\0\0\0\0\1\x02b"] and not away[0]


@pytest.mark.slow
def test_a_poisoned_message_is_a_dead_letter_with_its_reason(tmp_path, registry):
    props = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead", "errors.deadletterqueue.context.headers.enable": "true"}
    props["errors.deadletterqueue.topic.replication.factor"] = "1"
    (tmp_path / "in").write_text("a\nb\n")
    with LocalWorker(tmp_path) as worker:
        worker.source("in", str(tmp_path / "in"), "lines", **HOIST, **converter(CLASSES[0]))
        worker.values("lines", 2)
        worker.send("lines", [b"poison"])
        worker.sink("out", str(tmp_path / "out"), "lines", **EXTRACT, **props, **converter(CLASSES[0]))
        (letter,) = worker.records("dead", 1)
        headers = {name: value for name, value in letter.headers}
        assert letter.value == b"poison" and b"Unknown magic byte" in headers["__connect.errors.exception.message"]
        wait_for(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text() == "a\nb\n")
