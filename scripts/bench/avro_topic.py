"""The requests of variants.py in Avro: their schema, a registry that has it, and a topic of them, which fastavro writes."""

import contextlib
import io
import json
import subprocess

import compare
import fastavro

SCHEMA = {
    "type": "record",
    "name": "Request",
    "namespace": "bench",
    "fields": [
        *({"name": name, "type": "string"} for name in ("ts", "host", "level", "service", "msg")),
        *({"name": name, "type": kind} for name, kind in (("latency_ms", "int"), ("ok", "boolean"), ("status", "int"), ("retries", "int"))),
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "user",
            "type": {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}, {"name": "region", "type": "string"}]},
        },
        {"name": "trace", "type": "string"},
    ],
}
_END = b"\xff<end>\xff\n"  # of a message: no text has such bytes


@contextlib.contextmanager
def registry(folder):
    """(address, id of the schema) of a registry of ours."""
    from standalone.schema_registry.client import RegistrySchema, SchemaRegistryClient
    from standalone.schema_registry.server.listener import EmbeddedRegistry

    server = EmbeddedRegistry(str(folder / "schemas.db"), "127.0.0.1:0").start()
    try:
        client = SchemaRegistryClient.from_config({"schema.registry.url": server.url})
        yield server.url, client.register("requests-value", RegistrySchema(json.dumps(SCHEMA)))
    finally:
        server.stop()


def fill(broker, sent, schema_id):
    """The topic's name."""
    topic, schema = f"avro-{broker.bootstrap.rpartition(':')[2]}-{sent.count}", fastavro.parse_schema(SCHEMA)
    broker.create(topic)
    head = b"\0" + schema_id.to_bytes(4, "big")
    delimiter = "".join(f"\\x{each:02x}" for each in _END)
    kcat = subprocess.Popen(["kcat", "-b", broker.bootstrap, "-P", "-t", topic, "-p", "0", "-D", delimiter], stdin=subprocess.PIPE)
    with open(sent.path) as lines, kcat.stdin as out:
        for line in lines:
            message = io.BytesIO()
            fastavro.schemaless_writer(message, schema, json.loads(line))
            out.write(head + message.getvalue() + _END)
    if kcat.wait() or broker.count(topic) != sent.count:
        raise compare.Failed(f"kcat cannot fill the topic: {broker.count(topic)} messages of {sent.count}")
    return topic
