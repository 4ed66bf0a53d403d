"""Build records from changes, snapshot rows, truncations, messages and heartbeats, in Debezium's envelopes."""

import json
import time

from connectors.postgres_cdc.pgoutput import DELETE, INSERT, UNCHANGED, UPDATE
from connectors.postgres_cdc.shapes import BLOCK, SOURCE, NullInRequired, Reader, struct_of
from standalone import Header, Schema, SourceRecord, Struct, __version__

READ, TRUNCATE, MESSAGE = "r", "t", "m"
OPERATIONS = {INSERT: "c", UPDATE: "u", DELETE: "d"}

_MESSAGE_KEY = struct_of("io.debezium.connector.postgresql.MessageKey", ("prefix", Schema.OPTIONAL_STRING), version=1)
_HEARTBEAT_KEY = struct_of("io.debezium.connector.common.ServerNameKey", ("serverName", Schema.STRING), version=1)
_HEARTBEAT = struct_of("io.debezium.connector.common.Heartbeat", ("ts_ms", Schema.INT64), version=1)
_TRANSACTION_KEY = struct_of("io.debezium.connector.common.TransactionMetadataKey", ("id", Schema.STRING), version=1)
_COLLECTION = struct_of("event.collection", ("data_collection", Schema.STRING), ("event_count", Schema.INT64), version=1, optional=True)
_TRANSACTION = struct_of(
    "io.debezium.connector.common.TransactionMetadataValue",
    ("status", Schema.STRING), ("id", Schema.STRING), ("event_count", Schema.OPTIONAL_INT64),
    ("data_collections", Schema("array", True, value_schema=_COLLECTION)), ("ts_ms", Schema.INT64), version=1,
)  # fmt: skip


def _no_block(table):
    return None


class Place:
    """The content of `source`: where a record comes from."""

    __slots__ = ("micros", "snapshot", "commit", "xid", "lsn", "xmin")

    def __init__(self, micros, lsn, xid, commit=None, snapshot="false", xmin=None):
        self.micros, self.lsn, self.xid, self.commit, self.snapshot, self.xmin = micros, lsn, xid, commit, snapshot, xmin


class Records:
    def __init__(self, config, shapes, task):
        self.partition = {"server": config["topic.prefix"]}
        self._prefix, self._database = config["topic.prefix"], config["database.dbname"]
        self._shapes = shapes
        self._tombstones = config["tombstones.on.delete"]
        self._skips_unchanged = config["skip.messages.without.change"]
        self._reader = Reader(config["event.converting.failure.handling.mode"].lower())
        self._heartbeats = f"{config['heartbeat.topics.prefix']}.{self._prefix}"
        self._headers = tuple(
            Header(f"__debezium.context.{name}", value, Schema.STRING)
            for name, value in (("connectorLogicalName", self._prefix), ("taskId", str(task)), ("connectorName", "postgresql"))
        )
        form = config["binary.handling.mode"].lower()
        content = Schema.OPTIONAL_BYTES if form == "bytes" else Schema.OPTIONAL_STRING
        message = struct_of("io.debezium.connector.postgresql.Message", ("prefix", Schema.OPTIONAL_STRING), ("content", content), version=1)
        self._message = struct_of(
            "io.debezium.connector.postgresql.MessageValue",
            ("op", Schema.STRING), ("ts_ms", Schema.OPTIONAL_INT64), ("source", SOURCE), ("transaction", BLOCK), ("message", message), version=1,
        )  # fmt: skip
        from connectors.postgres_cdc.kinds import BINARY_FORMS

        self._content = BINARY_FORMS[form] or bytes

    # Each returns (topic, key schema, key, value schema, value, headers); the offset is added later.
    def read(self, shape, row, place):
        """A row of the snapshot."""
        key, after = shape.key(row, self._reader), shape.value(row, self._reader)
        return [self._enveloped(shape, key, None, after, place, _no_block, READ)]

    def changed(self, shape, change, place, block):
        """A change: a changed key becomes a deletion and a creation; a tombstone follows deletions. Raises NullInRequired."""
        old = change.old
        if old is not None and change.old_is_key:
            old = shape.only_key(old)
        if change.kind == INSERT:
            key, after = shape.key(change.new, self._reader), shape.value(change.new, self._reader)
            return [self._enveloped(shape, key, None, after, place, block, "c")]
        if change.kind == DELETE:
            return self._deleted(shape, shape.key(old, self._reader), shape.value(old, self._reader), place, block)
        reader, new = self._reader, change.new
        key, after = shape.key(new, reader, old), shape.value(new, reader, old)
        before = shape.value(old, reader) if old is not None else None
        if old is not None and key is not None and self._has_other_key(shape, old, new):
            old_key = shape.key(old, reader)
            deleted = self._deleted(shape, old_key, before, place, block, (Header("__debezium.newkey", key, shape.key_schema),))
            made = self._enveloped(shape, key, None, after, place, block, "c", (Header("__debezium.oldkey", old_key, shape.key_schema),))
            return [*deleted, made]
        if self._skips_unchanged and before is not None and not change.old_is_key and before.values == after.values:
            return []
        return [self._enveloped(shape, key, before if not change.old_is_key else None, after, place, block, "u")]

    def _has_other_key(self, shape, old, new):
        return any(was != now and now is not UNCHANGED and isinstance(was, str) for was, now in zip(shape.key_part(old), shape.key_part(new)))

    def _deleted(self, shape, key, before, place, block, headers=()):
        records = [self._enveloped(shape, key, before, None, place, block, "d", headers)]
        if self._tombstones:
            records.append((shape.topic, shape.key_schema, key, None, None, (*headers, *self._headers)))
        return records

    def truncated(self, shape, place, block):
        return [(shape.topic, None, None, *self._enveloped(shape, None, None, None, place, block, TRUNCATE)[3:])]

    def _enveloped(self, shape, key, before, after, place, block, operation, headers=()):
        nanos = time.time_ns()
        source = self._source(place, shape.schema, shape.table)
        told = block(f"{shape.schema}.{shape.table}")
        value = Struct.trusted(shape.envelope, [before, after, source, told, operation, nanos // 1_000_000, nanos // 1000, nanos])
        return shape.topic, shape.key_schema, key, shape.envelope, value, (*headers, *self._headers)

    def _source(self, place, schema, table):
        micros = place.micros
        sequence = json.dumps([None if place.commit is None else str(place.commit), str(place.lsn)], separators=(",", ":"))
        return Struct.trusted(
            SOURCE,
            [
                __version__, "postgresql", self._prefix, micros // 1000, place.snapshot, self._database, sequence, micros, micros * 1000, schema,
                table, place.xid, place.lsn, place.xmin,
            ],
        )  # fmt: skip

    def message(self, told, place, block):
        key = Struct.trusted(_MESSAGE_KEY, [told.prefix])
        message = Struct.trusted(self._message["message"], [told.prefix, self._content(told.content)])
        value = Struct.trusted(self._message, [MESSAGE, time.time_ns() // 1_000_000, self._source(place, "", ""), block(""), message])
        return [(self._shapes.topic("message"), _MESSAGE_KEY, key, self._message, value, ())]

    def block(self, identity, total, of_table):
        return Struct.trusted(BLOCK, [identity, total, of_table])

    def transaction(self, status, identity, micros, counts=None):
        """The begin of a transaction, or its end with {table: number of changes}."""
        listed = None if counts is None else [Struct.trusted(_COLLECTION, [name, count]) for name, count in counts.items()]
        total = None if counts is None else sum(counts.values())
        value = Struct.trusted(_TRANSACTION, [status, identity, total, listed, micros // 1000])
        return [(self._shapes.topic("transaction"), _TRANSACTION_KEY, Struct.trusted(_TRANSACTION_KEY, [identity]), _TRANSACTION, value, ())]

    def heartbeat(self):
        key = Struct.trusted(_HEARTBEAT_KEY, [self._prefix])
        return [(self._heartbeats, _HEARTBEAT_KEY, key, _HEARTBEAT, Struct.trusted(_HEARTBEAT, [time.time_ns() // 1_000_000]), ())]

    def made(self, parts, before, behind):
        """Build SourceRecords; only the last one's offset covers all of them, so that a partly delivered list is repeated."""
        last = len(parts) - 1
        return [
            SourceRecord(
                topic, value, self.partition, behind if at == last else before, key_schema=key_schema, key=key, value_schema=value_schema,
                headers=headers,
            )
            for at, (topic, key_schema, key, value_schema, value, headers) in enumerate(parts)
        ]  # fmt: skip


__all__ = ["NullInRequired", "OPERATIONS", "Place", "Records"]
