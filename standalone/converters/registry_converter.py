"""The base of converters with a schema registry: choice of schema, subjects, and message framing."""

import time
import uuid
from collections import OrderedDict

import numpy as np

from standalone import ConnectError, Converter, DataError, SerializationError
from standalone.converters.registry_options import DUAL_ID, HEADER_ID, tell_of_unused
from standalone.converters.subject_names import by_topic, subject_of
from standalone.schema_registry.client import RegistrySchema, SchemaRegistryClient
from standalone.schema_registry.framing import KEY_HEADER, VALUE_HEADER, mark_in, put_mark, take_indexes, take_mark

_MOST_HEAD = 1024  # longer prefixes do not name a schema
_FORMATS = {"AVRO": "Avro", "PROTOBUF": "Protobuf", "JSON": "JSON Schema"}


class Cache(OrderedDict):
    """An LRU cache of `most` entries; with `seconds` entries also expire."""

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
    """The registry client is created for the first value: `configure` also runs for validation, without requests.

    A *mark* identifies a message's schema: its id, or its GUID (a UUID).
    """

    kind = None  # AVRO, PROTOBUF or JSON, the registry's schema type
    unused = {}  # further options without effect, with the reason
    names_messages = False  # whether the message's index path follows the mark

    def configure(self, config):
        self.is_key = config["converter.type"] == "key"
        self.config = config
        part = "key" if self.is_key else "value"
        self.strategy = config[f"{part}.subject.name.strategy"]
        self.header = KEY_HEADER if self.is_key else VALUE_HEADER
        self.writes_headers = config[f"{part}.schema.id.serializer"] == HEADER_ID
        self.reads_headers = config[f"{part}.schema.id.deserializer"] == DUAL_ID
        self._client = None
        most = config["schemas.cache.config"]
        # With the newest schema, the cache expires if configured, to fetch it again.
        asks_again = config["use.latest.version"] and not config["auto.register.schemas"] and config["latest.cache.ttl.sec"] >= 0
        self.encoders = Cache(most, config["latest.cache.ttl.sec"] if asks_again else None)  # (topic, Schema) -> encoder
        self.decoders = Cache(most)  # (topic, mark) -> decoder
        tell_of_unused(type(self).__name__, config, self.unused)

    @property
    def client(self):
        if self._client is None:
            self._client = SchemaRegistryClient.from_config(self.config)
        return self._client

    @client.setter
    def client(self, client):
        self._client = client

    # --- Columnar form ---

    def column_writer(self, topic, schema):
        """Return (prefix bytes, columnar encoder or None): `encode(column, count)` returns the same as a Converter's."""
        return None, None

    def column_reader(self, topic, mark, path):
        """Return a function (column, prefix bytes) with the result of `decode`, or None. `path` is as in `unframed`."""

    def encode(self, topic, schema, column, count, headers=None):
        if schema is None or column is None or self.writes_headers and headers is None:
            return None
        try:
            named, plan = self.column_writer(topic, schema)
        except ConnectError:
            return None  # the row form reports the error
        encoded = plan and plan.encode(column, count)
        if encoded and self.writes_headers:
            for row in np.flatnonzero(encoded[0].lengths >= 0).tolist():
                put_mark(headers[row], self.header, named)
        return encoded

    def decode(self, topic, column, headers=None):
        found = self._common_mark(column, headers)
        if found is None:
            return None
        mark, path, before = found
        try:
            read = self.column_reader(topic, mark, path)
        except ConnectError:
            return None
        return read and read(column, before)

    # --- Writing ---

    def written_with(self, topic, schema, record_name):
        """Return (mark, RegistrySchema) to write values of a schema with: its own, or the configured one."""
        config, client = self.config, self.client
        subject = subject_of(self.strategy, topic, self.is_key, record_name)
        if config["auto.register.schemas"]:
            return self._mark(client.registered(subject, schema, config["normalize.schemas"])), schema
        if named := self._named_schema(subject):
            which, mark, found = named
            if config["id.compatibility.strict"]:
                self._must_be_compatible(subject, schema, found, which, "id.compatibility.strict")
            return mark, found
        if config["use.latest.with.metadata"]:
            return self._of_our_kind(client.with_metadata(subject, _pairs(config["use.latest.with.metadata"]))[1:], subject)
        if config["use.latest.version"]:
            version, schema_id, found = client.latest(subject)
            if config["latest.compatibility.strict"]:
                self._must_be_compatible(subject, schema, found, f"of version {version}, its newest,", "latest.compatibility.strict")
            return self._of_our_kind((schema_id, found), subject)
        return self._mark(client.lookup(subject, schema, config["normalize.schemas"])), schema

    def fixed_schema(self, topic):
        """Return (mark, RegistrySchema) if the configuration names the schema of schemaless values; else None."""
        config = self.config
        if config["auto.register.schemas"] or not by_topic(self.strategy):
            return None
        subject = subject_of(self.strategy, topic, self.is_key, None)
        if named := self._named_schema(subject):
            return named[1:]
        if config["use.latest.version"]:
            return self._of_our_kind(self.client.latest(subject)[1:], subject)
        return None

    def _named_schema(self, subject):
        """Return ("of the id 7", mark, RegistrySchema) if the configuration names a schema by id or GUID; else None."""
        id, guid = self.config["use.schema.id"], self.config["use.schema.guid"]
        if id >= 0:
            return f"of the id {id}", *self._of_our_kind((id, self.client.schema_by_id(id, subject)), subject)
        if guid is None:
            return None
        mark = uuid.UUID(guid)
        schema = self.client.schema_by_guid(str(mark))
        if schema.kind != self.kind:
            raise self._another_kind(mark, schema.kind)
        return f"of the GUID {guid}", mark if self.writes_headers else self.client.id_of_guid(str(mark), subject), schema

    def framed(self, head, value, headers):
        """Return the value's bytes with the schema prefix; or without it, which then goes into the headers."""
        if not self.writes_headers:
            return head + value
        if headers is None:
            raise SerializationError(f"The schema's GUID goes into the header {self.header}, but this record has no headers.")
        put_mark(headers, self.header, head)
        return value

    def _must_be_compatible(self, subject, schema, found, which, key):
        if schema == found:
            return
        if messages := self.client.compatible(subject, schema):
            raise SerializationError(
                f"The schema of the value is not compatible with the schema {which} of subject '{subject}': {' '.join(messages)} "
                f"Set {key}=false to write with that schema anyway."
            )

    def before_each(self, head):
        """Return the prefix of a batch's messages."""
        return b"" if self.writes_headers else head

    def _of_our_kind(self, found, subject):
        schema_id, schema = found
        if schema.kind != self.kind:
            raise self._another_kind(schema_id, schema.kind)
        return self._mark({"id": schema_id, "guid": self.client.guid_of(schema_id, subject) if self.writes_headers else None}), schema

    def _mark(self, answer):
        if not self.writes_headers:
            return answer["id"]
        if not answer.get("guid"):
            raise SerializationError(
                f"The registry returned no GUID for schema id {answer['id']}, which the header {self.header} needs: registries support "
                "GUIDs since Confluent 8.0. Write ids instead: schema.id.serializer=PrefixSchemaIdSerializer."
            )
        return uuid.UUID(answer["guid"])

    # --- Reading ---

    def unframed(self, data, headers=None):
        """Return (mark, message index path or None, the value's bytes)."""
        named = mark_in(headers, self.header) if headers and self.reads_headers else None
        source, path = bytes(data) if named is None else bytes(named), None
        mark, at = take_mark(source)
        if self.names_messages:
            path, at = take_indexes(source, at)
        return mark, path, source[at:] if named is None else bytes(data)

    def _common_mark(self, column, headers):
        """Return (mark, message index path, prefix bytes) shared by a batch of messages; None if they differ."""
        rows = np.flatnonzero(column.lengths >= 0).tolist()
        if not rows:
            return None
        named = {mark_in(headers[row], self.header) for row in rows} if headers else {None}
        if len(named) > 1:
            return None
        (source,) = named
        begins = source is None
        if begins:
            start, length = int(column.starts[rows[0]]), int(column.lengths[rows[0]])
            source = column.data[start : start + min(length, _MOST_HEAD)].tobytes()
        path = None
        try:
            mark, at = take_mark(source)
            if self.names_messages:
                path, at = take_indexes(source, at)
        except SerializationError:
            return None  # the row form reports the error
        return mark, path, bytes(source[:at]) if begins else b""

    def schema_of(self, topic, mark):
        """Return a message's RegistrySchema."""
        if isinstance(mark, uuid.UUID):
            found = self.client.schema_by_guid(str(mark))
        else:
            found = self.client.schema_by_id(mark, subject_of(self.strategy, topic, self.is_key, None) if by_topic(self.strategy) else None)
        if found.kind != self.kind:
            raise self._another_kind(mark, found.kind)
        return found

    def version_of(self, topic, schema, record_name):
        """Return the schema's version in its subject, used for structs without a version. None if it is not registered there."""
        try:
            subject = subject_of(self.strategy, topic, self.is_key, record_name)
            return self.client.lookup(subject, schema).get("version")
        except (DataError, SerializationError):
            return None

    def _another_kind(self, mark, kind):
        other = {"AVRO": "AvroConverter", "PROTOBUF": "ProtobufConverter", "JSON": "JsonSchemaConverter"}.get(kind, "another converter")
        named = f"{'GUID' if isinstance(mark, uuid.UUID) else 'id'} {mark}"
        return SerializationError(
            f"The schema with the {named} is {_FORMATS.get(kind, kind)}, but {type(self).__name__} takes {_FORMATS[self.kind]}: use {other}."
        )

    def references_of(self, schema):
        """Return {name: text} of the schema's references."""
        return {name: each.text for name, each in self.client.resolve(schema).items()} if schema.references else {}

    def registry_schema(self, text, references=()):
        return RegistrySchema(text, self.kind, tuple(references))

    def unreadable(self, topic, error):
        """Return the DataError that Java's converter raises, with the original error as its cause."""
        failed = DataError(f"Failed to deserialize data for topic {topic} to {_FORMATS[self.kind]}: {error}")
        failed.__cause__ = error
        return failed

    def unwritable(self, topic, error):
        failed = DataError(f"Failed to serialize {_FORMATS[self.kind]} data from topic {topic}: {error}")
        failed.__cause__ = error
        return failed

def _pairs(text):
    return dict(pair.strip().partition("=")[::2] for pair in text.split(",") if pair.strip())
