"""What the converters with a schema registry share: which schema a value is written with, under which subject, and what its bytes say."""

import time
import uuid
from collections import OrderedDict

import numpy as np

from standalone import ConnectError, Converter, DataError, SerializationError
from standalone.converters.registry_options import DUAL_ID, HEADER_ID, tell_of_unused
from standalone.converters.subject_names import by_topic, subject_of
from standalone.schema_registry.client import RegistrySchema, SchemaRegistryClient
from standalone.schema_registry.framing import KEY_HEADER, VALUE_HEADER, mark_in, put_mark, take_indexes, take_mark

_MOST_HEAD = 1024  # bytes before a value: more name no schema
_FORMATS = {"AVRO": "Avro", "PROTOBUF": "Protobuf", "JSON": "JSON Schema"}


class Cache(OrderedDict):
    """The last `most` things that were computed, the oldest going first; with `seconds` none is kept longer."""

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
    """The client is made at the first value: `configure` also runs to validate a configuration, and asks nobody.

    A *mark* is what bytes in the log name a schema by: its id, or its GUID (a UUID).
    """

    kind = None  # AVRO, PROTOBUF or JSON, as the registry calls it
    unused = {}  # more keys without effect, and why
    names_messages = False  # whether the way to the message within its file is after the mark

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
        # What is written with the newest schema asks for it again, where the configuration says when.
        asks_again = config["use.latest.version"] and not config["auto.register.schemas"] and config["latest.cache.ttl.sec"] >= 0
        self.encoders = Cache(most, config["latest.cache.ttl.sec"] if asks_again else None)  # (topic, Schema) -> what writes values of it
        self.decoders = Cache(most)  # (topic, mark) -> what reads values of that schema
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
        """(the bytes that name the schema, what writes whole columns or None): `encode(column, count)` gives what that of a Converter does."""
        return None, None

    def column_reader(self, topic, mark, path):
        """A function (column, the bytes before each message) that gives what `decode` does, or None. `path` is as of `unframed`."""

    def encode(self, topic, schema, column, count, headers=None):
        if schema is None or column is None or self.writes_headers and headers is None:
            return None
        try:
            named, plan = self.column_writer(topic, schema)
        except ConnectError:
            return None  # for the row form to say
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

    # --- To the log ---

    def written_with(self, topic, schema, record_name):
        """(mark, RegistrySchema) that values of a schema are written with: its own, or the one that the configuration says."""
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
        """(mark, RegistrySchema) where the configuration names what values without a schema are written with; else None."""
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
        """("of the id 7", mark, RegistrySchema) where the configuration names a schema by its id or its GUID; else None."""
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
        """The bytes of a value, after those that name its schema; or alone, and these in the list of headers."""
        if not self.writes_headers:
            return head + value
        if headers is None:
            raise SerializationError(f"The schema's GUID belongs in the header {self.header}, but what is written here has no headers.")
        put_mark(headers, self.header, head)
        return value

    def _must_be_compatible(self, subject, schema, found, which, key):
        if schema == found:
            return
        if messages := self.client.compatible(subject, schema):
            raise SerializationError(
                f"The schema of the value is not compatible with the schema {which} of the subject '{subject}': {' '.join(messages)} "
                f"Set {key}=false to write with that schema all the same."
            )

    def before_each(self, head):
        """What the messages of a batch begin with."""
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
                f"The registry has no GUID of the schema with the id {answer['id']}, which belongs in the header {self.header}: registries have "
                "GUIDs from Confluent's 8.0 on. Write ids: schema.id.serializer=PrefixSchemaIdSerializer."
            )
        return uuid.UUID(answer["guid"])

    # --- From the log ---

    def unframed(self, data, headers=None):
        """(mark, the way to the message within its file or None, the value's bytes)"""
        named = mark_in(headers, self.header) if headers and self.reads_headers else None
        source, path = bytes(data) if named is None else bytes(named), None
        mark, at = take_mark(source)
        if self.names_messages:
            path, at = take_indexes(source, at)
        return mark, path, source[at:] if named is None else bytes(data)

    def _common_mark(self, column, headers):
        """(the mark of the schema of a batch of messages, the way to the message, the bytes before each that name it); None where none is seen."""
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
            return None  # for the row form to say
        return mark, path, bytes(source[:at]) if begins else b""

    def schema_of(self, topic, mark):
        """The RegistrySchema that a message names."""
        if isinstance(mark, uuid.UUID):
            found = self.client.schema_by_guid(str(mark))
        else:
            found = self.client.schema_by_id(mark, subject_of(self.strategy, topic, self.is_key, None) if by_topic(self.strategy) else None)
        if found.kind != self.kind:
            raise self._another_kind(mark, found.kind)
        return found

    def version_of(self, topic, schema, record_name):
        """Which version of its subject a schema is: the version of structs that say none themselves. None where it is under none."""
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

def _pairs(text):
    return dict(pair.strip().partition("=")[::2] for pair in text.split(",") if pair.strip())
