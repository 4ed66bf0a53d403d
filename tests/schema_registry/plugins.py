"""A converter that asks a schema registry, as small as it can be: values are Avro records of numbers and strings."""

import io
import json

import fastavro

from standalone import Converter, Schema, SchemaBuilder, Struct
from standalone.schema_registry.client import RegistrySchema, SchemaRegistryClient
from standalone.schema_registry.framing import head, take_mark
from standalone.schema_registry.keys import CLIENT

TYPES = {"int": Schema.INT32, "string": Schema.STRING}


class RegistryConverter(Converter):
    config_def = CLIENT

    def configure(self, config):
        self.client = SchemaRegistryClient.from_config(config)
        self._known = {}

    def from_connect(self, topic, schema, value):
        text = json.dumps({"type": "record", "name": "Line", "fields": [{"name": "text", "type": "string"}]})
        id = self.client.register(f"{topic}-value", RegistrySchema(text))
        data = io.BytesIO()
        fastavro.schemaless_writer(data, json.loads(text), {"text": value})
        return head(id) + data.getvalue()

    def to_connect(self, topic, data):
        id, at = take_mark(data)
        avro = json.loads(self.client.schema_by_id(id).text)
        if id not in self._known:
            builder = SchemaBuilder.struct().name(avro["name"])
            for field in avro["fields"]:
                builder = builder.field(field["name"], TYPES[field["type"]])
            self._known[id] = builder.build()
        found = fastavro.schemaless_reader(io.BytesIO(data[at:]), avro, None)
        struct = Struct(self._known[id])
        for name, each in found.items():
            struct.put(name, each)
        return self._known[id], struct
