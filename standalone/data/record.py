"""One record: topic and partition, key and value with schemas, timestamp, headers. Records are immutable; `with_` makes a changed copy."""

from standalone.wire import NO_TIMESTAMP_TYPE

_new = object.__new__


class Header:
    """A name, a value and the value's schema."""

    __slots__ = ("name", "value", "schema")

    def __init__(self, name, value, schema=None):
        self.name = name
        self.value = value
        self.schema = schema

    def __eq__(self, other):
        return isinstance(other, Header) and (self.name, self.value, self.schema) == (other.name, other.value, other.schema)

    def __repr__(self):
        return f"Header({self.name!r}, {self.value!r})"


class Record:
    """The base of source and sink records."""

    __slots__ = ("topic", "partition", "key_schema", "key", "value_schema", "value", "timestamp", "headers")

    def __init__(self, topic, partition=None, key_schema=None, key=None, value_schema=None, value=None, timestamp=None, headers=()):
        self.topic = topic
        self.partition = partition
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        self.timestamp = timestamp
        self.headers = tuple(headers)

    def with_(self, **changes):
        """Return a copy with these attributes changed."""
        other = self._copy()
        for name, value in changes.items():
            setattr(other, name, value)  # an unknown name raises AttributeError
        return other

    def with_key(self, schema, key):
        """Return a copy with another key."""
        other = self._copy()
        other.key_schema = schema
        other.key = key
        return other

    def with_value(self, schema, value):
        """Return a copy with another value."""
        other = self._copy()
        other.value_schema = schema
        other.value = value
        return other

    def _copy(self):
        # Spelled out, here and below: transforms call this once per record, and a loop takes three times as long.
        other = _new(self.__class__)
        other.topic = self.topic
        other.partition = self.partition
        other.key_schema = self.key_schema
        other.key = self.key
        other.value_schema = self.value_schema
        other.value = self.value
        other.timestamp = self.timestamp
        other.headers = self.headers
        return other

    @classmethod
    def _names(cls):
        return [name for each in reversed(cls.__mro__) for name in getattr(each, "__slots__", ())]

    def __eq__(self, other):
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self._names())

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._names())})"


class SourceRecord(Record):
    """A record that a source task polled, with its source partition and offset.

    `source_partition` identifies the input (a dict, such as {"filename": "app.log"}), `source_offset` where the *next* record begins
    (such as {"position": 1234}); after a restart the task continues from there.
    """

    __slots__ = ("source_partition", "source_offset")

    def __init__(
        self,
        topic,
        value=None,
        source_partition=None,
        source_offset=None,
        *,
        partition=None,
        key_schema=None,
        key=None,
        value_schema=None,
        timestamp=None,
        headers=(),
    ):
        self.topic = topic
        self.partition = partition
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        self.timestamp = timestamp
        self.headers = tuple(headers)
        self.source_partition = source_partition
        self.source_offset = source_offset

    def _copy(self):
        other = _new(self.__class__)
        other.topic = self.topic
        other.partition = self.partition
        other.key_schema = self.key_schema
        other.key = self.key
        other.value_schema = self.value_schema
        other.value = self.value
        other.timestamp = self.timestamp
        other.headers = self.headers
        other.source_partition = self.source_partition
        other.source_offset = self.source_offset
        return other


class SinkRecord(Record):
    """A record for a sink task, with its position in the log.

    The `original_*` are its topic, partition and offset in the log, before transforms.
    """

    __slots__ = ("offset", "timestamp_type", "original_topic", "original_partition", "original_offset")

    def __init__(
        self,
        topic,
        partition=None,
        offset=None,
        timestamp_type=NO_TIMESTAMP_TYPE,
        original=None,
        *,
        key_schema=None,
        key=None,
        value_schema=None,
        value=None,
        timestamp=None,
        headers=(),
    ):
        self.topic = topic
        self.partition = partition
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        self.timestamp = timestamp
        self.headers = tuple(headers)
        self.offset = offset
        self.timestamp_type = timestamp_type
        self.original_topic, self.original_partition, self.original_offset = original or (topic, partition, offset)

    @classmethod
    def fetched(cls, origin, offset, timestamp_type, topic, partition, key_schema, key, value_schema, value, timestamp, headers):
        """Build a record fetched from (topic, partition) `origin`; twice as fast as the constructor."""
        record = _new(cls)
        record.topic = topic
        record.partition = partition
        record.key_schema = key_schema
        record.key = key
        record.value_schema = value_schema
        record.value = value
        record.timestamp = timestamp
        record.headers = headers
        record.offset = record.original_offset = offset
        record.timestamp_type = timestamp_type
        record.original_topic, record.original_partition = origin
        return record

    @property
    def origin(self):
        """Its (topic, partition) in the log."""
        return self.original_topic, self.original_partition

    def _copy(self):
        other = _new(self.__class__)
        other.topic = self.topic
        other.partition = self.partition
        other.key_schema = self.key_schema
        other.key = self.key
        other.value_schema = self.value_schema
        other.value = self.value
        other.timestamp = self.timestamp
        other.headers = self.headers
        other.offset = self.offset
        other.timestamp_type = self.timestamp_type
        other.original_topic = self.original_topic
        other.original_partition = self.original_partition
        other.original_offset = self.original_offset
        return other
