"""The catalog of streams and tables: topics, formats and columns, stored in a file.

| format | converter |
|---|---|
| KAFKA | String, Short, Integer, Long, Float, Double, Boolean or ByteArray, by the type of the only column |
| JSON | Json, without schemas |
| AVRO, PROTOBUF, JSON_SR | those of the schema registry |
| DELIMITED | String, with a delimiter between the columns |
| NONE | no key or value |
"""

import json
import os
import threading
from typing import NamedTuple

from standalone.private import open_private
from standalone.streams import columns as c
from standalone.streams.sql.parser import SqlError

KAFKA, DELIMITED, NONE = "KAFKA", "DELIMITED", "NONE"
_CONVERTERS = {
    "JSON": ("org.apache.kafka.connect.json.JsonConverter", {"schemas.enable": "false", "decimal.format": "NUMERIC"}),
    "AVRO": ("io.confluent.connect.avro.AvroConverter", {}),
    "PROTOBUF": ("io.confluent.connect.protobuf.ProtobufConverter", {}),
    "JSON_SR": ("io.confluent.connect.json.JsonSchemaConverter", {}),
    DELIMITED: ("org.apache.kafka.connect.storage.StringConverter", {}),
    NONE: ("org.apache.kafka.connect.converters.ByteArrayConverter", {}),
}
REGISTRY = ("AVRO", "PROTOBUF", "JSON_SR")
FORMATS = (KAFKA, *_CONVERTERS)
_OF_TYPES = {
    "STRING": "org.apache.kafka.connect.storage.StringConverter",
    "SMALLINT": "org.apache.kafka.connect.converters.ShortConverter",
    "INT": "org.apache.kafka.connect.converters.IntegerConverter",
    "BIGINT": "org.apache.kafka.connect.converters.LongConverter",
    "FLOAT": "org.apache.kafka.connect.converters.FloatConverter",
    "DOUBLE": "org.apache.kafka.connect.converters.DoubleConverter",
    "BOOLEAN": "org.apache.kafka.connect.converters.BooleanConverter",
    "BINARY": "org.apache.kafka.connect.converters.ByteArrayConverter",
}


class Source(NamedTuple):
    """A stream or table. Types are Spark SQL types."""

    kind: str  # STREAM or TABLE
    name: str
    topic: str
    columns: tuple  # (name, type, is_key)
    key_format: str
    value_format: str
    timestamp: str | None = None
    timestamp_format: str | None = None
    windows: str | None = None  # of windowed keys: time or session
    window_ms: int | None = None
    delimiter: str = ","
    partitions: int | None = None
    statement: str = ""
    query: str | None = None  # the query that writes it
    read_only: bool = False

    @property
    def keys(self):
        return [column for column in self.columns if column[2]]

    @property
    def values(self):
        return [column for column in self.columns if not column[2]]

    @property
    def is_bare(self):
        """Whether the value is the single column itself, not a struct."""
        return self.value_format == KAFKA and len(self.values) == 1

    def converter_keys(self, registry_url):
        """Return the worker properties of its converters. Raise SqlError."""
        found = {}
        for part, kind, columns in (("key", self.key_format, self.keys), ("value", self.value_format, self.values)):
            name, props = _converter(self.name, part, kind, columns)
            found[f"{part}.converter"] = name
            found.update({f"{part}.converter.{key}": value for key, value in props.items()})
            if kind in REGISTRY:
                if registry_url is None:
                    raise SqlError(f"{kind} needs a schema registry: set value.converter.schema.registry.url in the worker's file.")
                found[f"{part}.converter.schema.registry.url"] = registry_url
        return found

    def schema(self):
        """Return the DDL schema for the data source."""
        parts = []
        if self.keys:
            single = len(self.keys) == 1 and self.key_format not in ("AVRO", "PROTOBUF", "JSON_SR")
            fields = ", ".join(f"{quoted(name)}: {kind}" for name, kind, _ in self.keys)
            parts.append(f"{c.KEY} {self.keys[0][1] if single else f'STRUCT<{fields}>'}")
        if self.is_bare:
            parts.append(f"{c.VALUE} {self.values[0][1]}")
        else:
            parts += [f"{quoted(name)} {kind}" for name, kind, _ in self.values]
        parts += [f"{c.TIMESTAMP} TIMESTAMP", f"{c.PARTITION} INT", f"{c.OFFSET} BIGINT", f"{c.TOMBSTONE} BOOLEAN"]
        if self.windows:
            parts += [f"{c.WINDOW_START} BIGINT", f"{c.WINDOW_END} BIGINT"]
        return ", ".join(parts)

    def projection(self):
        """Return SELECT expressions for the declared columns and pseudo columns, from the data source's columns."""
        found = []
        struct = len(self.keys) > 1 or self.key_format in ("AVRO", "PROTOBUF", "JSON_SR")
        for name, _, _ in self.keys:
            found.append(f"{c.KEY}.{quoted(name)} AS {quoted(name)}" if struct else f"{c.KEY} AS {quoted(name)}")
        for name, _, _ in self.values:
            found.append(f"{c.VALUE} AS {quoted(name)}" if self.is_bare else quoted(name))
        moment = self._moment()
        found += [f"{moment} AS __time", f"unix_millis({moment}) AS ROWTIME", f"{c.PARTITION} AS ROWPARTITION", f"{c.OFFSET} AS ROWOFFSET"]
        if self.windows:
            found += [f"{c.WINDOW_START} AS WINDOWSTART", f"{c.WINDOW_END} AS WINDOWEND"]
        return found

    def _moment(self):
        if self.timestamp is None:
            return c.TIMESTAMP
        name, kind, is_key = self.column(self.timestamp)
        column = c.VALUE if self.is_bare and not is_key else c.KEY if is_key else quoted(name)
        if kind == "TIMESTAMP":
            return column
        if self.timestamp_format:
            return f"to_timestamp({column}, '{self.timestamp_format}')"
        return f"timestamp_millis({column})"

    def column(self, name):
        return next((column for column in self.columns if column[0].lower() == name.lower()), None)


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def _converter(source, part, kind, columns):
    if kind == KAFKA:
        if len(columns) > 1:
            raise SqlError(
                f"The {part} of {source} has {len(columns)} columns, KAFKA supports one. Set {part}_format = 'JSON' (or AVRO, PROTOBUF, JSON_SR)."
            )
        if not columns:
            return _OF_TYPES["BINARY"], {}
        found = _OF_TYPES.get(columns[0][1].upper())
        if found is None:
            raise SqlError(f"KAFKA does not support {columns[0][1]} in the {part} of {source}, only {', '.join(_OF_TYPES)}. JSON supports all types.")
        return found, {}
    return _CONVERTERS[kind]


class Catalog:
    """Names are case-insensitive. Thread-safe; `put` returns once the entry is on disk."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "catalog.json")
        self._lock = threading.Lock()
        self._found = {}
        self._next = 1
        if os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                held = json.load(file)
                self._next = held["next"]
                for each in held["sources"]:
                    source = Source(**{**each, "columns": tuple(tuple(column) for column in each["columns"])})
                    self._found[source.name.lower()] = source

    def get(self, name):
        with self._lock:
            return self._found.get(name.lower())

    def all(self, kind=None):
        with self._lock:
            return [source for source in self._found.values() if kind in (None, source.kind)]

    def put(self, source):
        with self._lock:
            self._found[source.name.lower()] = source
            self._store()

    def next_number(self):
        """Return an unused query number."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._store()
            return number

    def remove(self, name):
        with self._lock:
            self._found.pop(name.lower(), None)
            self._store()

    def _store(self):
        fresh = self._path + ".new"
        with open_private(fresh, "w", encoding="utf-8") as file:
            json.dump({"next": self._next, "sources": [source._asdict() for source in self._found.values()]}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._path)
