"""What the converters with a schema registry share: which schema a value is written with, under which subject, and what its bytes say."""

import time
from collections import OrderedDict

from standalone import Converter, DataError, SerializationError
from standalone.converters import wire_format
from standalone.converters.registry_options import tell_of_unused
from standalone.converters.subject_names import by_topic, subject_of
from standalone.schema_registry.client import RegistrySchema, SchemaRegistryClient

_FORMATS = {"AVRO": "Avro", "PROTOBUF": "Protobuf", "JSON": "JSON Schema"}


class Cache(OrderedDict):
    """The last `most` things that were worked out, the oldest going first; with `seconds` none is kept longer."""

    def __init__(self, most, seconds=None):
        super().__init__()
        self._most = most
        self._seconds = seconds
        self._begun = time.monotonic()

    def of(self, key, make):
        if self._seconds is not None and time.monotonic() - self._begun >= self._seconds:
            self.clear()
            self._begun = time.monotonic()
        found = self.get(key)
        if found is None:
            found = self[key] = make()
            if len(self) > self._most:
                self.popitem(last=False)
        return found


class RegistryConverter(Converter):
    """The client is made at the first value: `configure` also runs to validate a configuration, and asks nobody."""

    kind = None  # AVRO, PROTOBUF or JSON, as the registry calls it
    unused = {}  # more keys without effect, and why

    def configure(self, config):
        self.is_key = config["converter.type"] == "key"
        self.config = config
        self.strategy = config["key.subject.name.strategy" if self.is_key else "value.subject.name.strategy"]
        self._client = None
        most = config["schemas.cache.config"]
        # What is written with the newest schema asks for it again, where the configuration says when.
        asks_again = config["use.latest.version"] and not config["auto.register.schemas"] and config["latest.cache.ttl.sec"] >= 0
        self.encoders = Cache(most, config["latest.cache.ttl.sec"] if asks_again else None)  # (topic, Schema) -> what writes values of it
        self.decoders = Cache(most)  # (topic, id) -> what reads values of that schema
        tell_of_unused(type(self).__name__, config, self.unused)

    @property
    def client(self):
        if self._client is None:
            self._client = SchemaRegistryClient.from_config(self.config)
        return self._client

    @client.setter
    def client(self, client):
        self._client = client

    # --- To the log ---

    def written_with(self, topic, schema, record_name):
        """(id, RegistrySchema) that values of a schema are written with: its own, or the one that the configuration says."""
        config, client = self.config, self.client
        subject = subject_of(self.strategy, topic, self.is_key, record_name)
        if config["auto.register.schemas"]:
            return client.register(subject, schema, config["normalize.schemas"]), schema
        if config["use.schema.id"] >= 0:
            found = config["use.schema.id"], client.schema_by_id(config["use.schema.id"], subject)
            if config["id.compatibility.strict"]:
                self._must_be_compatible(subject, schema, found[1], f"of the id {found[0]}", "id.compatibility.strict")
            return self._of_our_kind(found)
        if config["use.latest.with.metadata"]:
            return self._of_our_kind(client.with_metadata(subject, _pairs(config["use.latest.with.metadata"]))[1:])
        if config["use.latest.version"]:
            version, schema_id, found = client.latest(subject)
            if config["latest.compatibility.strict"]:
                self._must_be_compatible(subject, schema, found, f"of version {version}, its newest,", "latest.compatibility.strict")
            return self._of_our_kind((schema_id, found))
        return client.id_of(subject, schema, config["normalize.schemas"]), schema

    def fixed_schema(self, topic):
        """(id, RegistrySchema) where the configuration names what values without a schema are written with; else None."""
        config = self.config
        if config["auto.register.schemas"] or not by_topic(self.strategy):
            return None
        subject = subject_of(self.strategy, topic, self.is_key, None)
        if config["use.schema.id"] >= 0:
            return self._of_our_kind((config["use.schema.id"], self.client.schema_by_id(config["use.schema.id"], subject)))
        if config["use.latest.version"]:
            return self._of_our_kind(self.client.latest(subject)[1:])
        return None

    def _must_be_compatible(self, subject, schema, found, which, key):
        if schema == found:
            return
        if messages := self.client.compatible(subject, schema):
            raise SerializationError(
                f"The schema of the value is not compatible with the schema {which} of the subject '{subject}': {' '.join(messages)} "
                f"Set {key}=false to write with that schema all the same."
            )

    def _of_our_kind(self, found):
        if found[1].kind != self.kind:
            raise self._another_kind(found[0], found[1].kind)
        return tuple(found)

    # --- From the log ---

    def schema_of(self, topic, schema_id):
        """The RegistrySchema of an id that a message names."""
        subject = subject_of(self.strategy, topic, self.is_key, None) if by_topic(self.strategy) else None
        found = self.client.schema_by_id(schema_id, subject)
        if found.kind != self.kind:
            raise self._another_kind(schema_id, found.kind)
        return found

    def version_of(self, topic, schema, record_name):
        """Which version of its subject a schema is: the version of structs that say none themselves. None where it is under none."""
        try:
            subject = subject_of(self.strategy, topic, self.is_key, record_name)
            return self.client.lookup(subject, schema).get("version")
        except (DataError, SerializationError):
            return None

    def _another_kind(self, schema_id, kind):
        other = {"AVRO": "AvroConverter", "PROTOBUF": "ProtobufConverter", "JSON": "JsonSchemaConverter"}.get(kind, "another converter")
        return SerializationError(
            f"The schema with the id {schema_id} is {_FORMATS.get(kind, kind)}, but {type(self).__name__} takes {_FORMATS[self.kind]}: use {other}."
        )

    def references_of(self, schema):
        """{name: text} of what a schema refers to."""
        return {name: each.text for name, each in self.client.resolve(schema).items()} if schema.references else {}

    def registry_schema(self, text, references=()):
        return RegistrySchema(text, self.kind, tuple(references))

    def unreadable(self, topic, error):
        """The DataError that Java's converter raises, with what was wrong as its cause."""
        failed = DataError(f"Failed to deserialize data for topic {topic} to {_FORMATS[self.kind]}: {error}")
        failed.__cause__ = error
        return failed

    def unwritable(self, topic, error):
        failed = DataError(f"Failed to serialize {_FORMATS[self.kind]} data from topic {topic}: {error}")
        failed.__cause__ = error
        return failed

    @staticmethod
    def schema_id_in(data):
        return wire_format.schema_id_of(data)


def _pairs(text):
    return dict(pair.strip().partition("=")[::2] for pair in text.split(",") if pair.strip())
