"""The dead letter queue: a topic for failed records, so that they can be inspected, fixed and sent again.

For a sink (errors.deadletterqueue.*) a letter is the original record in the log: its key, value, timestamp and headers, unchanged. With
errors.deadletterqueue.context.headers.enable these headers follow the record's own, as in Java, all of them strings:

    __connect.errors.topic, .partition, .offset           the record's position in the log
    __connect.errors.connector.name, .task.id
    __connect.errors.stage                                KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER, TRANSFORMATION or TASK_PUT
    __connect.errors.class.name                           the converter or transform that failed; for TASK_PUT Java's SinkTask
    __connect.errors.exception.class.name, .exception.message, .exception.stacktrace

For a source (errors.source.deadletterqueue.*, not in Java) the record was never in the log. Its letter has

    key, value, headers   of a record that the broker rejected (stage KAFKA_PRODUCE): the serialized bytes
                          of one that failed in a transform or converter: the polled record, with key and value each serialized
                          by the connector's own converter; if that fails, by JsonConverter with its schema; else as text
    timestamp             the record's own

and, with errors.source.deadletterqueue.context.headers.enable (default: true), after its own headers

    __connect.errors.topic, .partition                    the target topic; no .partition if the key determines it
    __connect.errors.source.partition, .source.offset     the source partition and offset, as JSON; null if the task sets none
    __connect.errors.connector.name, .task.id, .stage, .class.name, .exception.class.name, .exception.message, .exception.stacktrace
    __connect.errors.key.format, .value.format            `bytes` (as rejected), `converter`, `json`, `text`, or `omitted N bytes`: too
                                                          large for one request even here, so that the letter has null instead

There is no .offset header, which distinguishes a source's letter from a sink's.

A letter counts as stored once it is acknowledged; the record's offset is not committed before. A letter that cannot be stored fails the
task.
"""

import json
import logging
import threading

import numpy as np

from standalone.data.java_text import java_text
from standalone.errors import ConnectError, LogError, shown_class, trace_of
from standalone.runtime.tasks.lifecycle import log_context
from standalone.wire import NO_TIMESTAMP, ByteColumn, Records

log = logging.getLogger(__name__)

PREFIX = "__connect.errors."
_TOPIC, _PARTITION, _OFFSET = (f"{PREFIX}{name}" for name in ("topic", "partition", "offset"))
_MESSAGE, _TRACE = f"{PREFIX}exception.message", f"{PREFIX}exception.stacktrace"
_ROOM_BYTES = 512  # of a request, besides its one record
_ERROR_BYTES = 300  # of the error headers, without their strings
_LONGEST_TEXT = 1000  # maximum length of a message and of a stack trace if the letter would be too large


class DeadLetterQueue:
    """Writes letters to the topic, on its own sender thread."""

    def __init__(self, topic, replication_factor, letters, new_admin, new_producer, counters, context):
        """`context` is the prefix of the sender thread's log lines."""
        self.topic = topic
        self.letters = letters
        self._replication_factor = replication_factor
        self._new_admin = new_admin
        self._new_producer = new_producer
        self._producer = None
        self._counters = counters
        self._failure = None
        self._on_failure = None
        self._sender = threading.Thread(target=self._send, args=(context,), name=f"dead-letters-{topic}", daemon=True)

    def open(self, replication_key, on_failure=lambda: None):
        """Create the topic if it does not exist, and start the sender. `on_failure` is called, on any thread, if a letter cannot be stored."""
        self._on_failure = on_failure
        self._make_topic(replication_key)
        self._producer = self._new_producer()
        self.letters.most_bytes = self._producer.config["max.request.size"] - _ROOM_BYTES
        self._sender.start()

    def write(self, letters, on_done=lambda problem: None):
        """Send these (wire.Records); `on_done(None or the ConnectError)` is called on the sender's thread. Thread-safe."""
        self.check()
        self._counters.deadletterqueue_produce_requests += len(letters)

        def done(delivered):
            problem = None
            if delivered.error is not None:
                self._counters.deadletterqueue_produce_failures += sum(len(np.arange(len(letters))[rows]) for rows, _ in delivered.failed)
                problem = ConnectError(f"A bad record could not be written to the dead letter queue '{self.topic}': {delivered.error}")
                problem.__cause__ = delivered.error
                self._failure = self._failure or problem
            try:
                on_done(problem)
            except Exception as error:  # else the task would continue without committing offsets
                problem = ConnectError(f"The callback after writing a bad record to the dead letter queue '{self.topic}' failed: {error}")
                problem.__cause__ = error
                self._failure = self._failure or problem
            if problem is not None:
                self._on_failure()

        self._producer.send(self.topic, None, letters, done)

    def stored(self, seconds):
        """Wait until all letters are stored; return whether they are. Raises ConnectError if one cannot be."""
        done = self._producer.flush(seconds)
        self.check()
        return done

    def check(self):
        """Raise ConnectError if a letter could not be stored."""
        if self._failure is not None:
            raise self._failure

    def close(self, seconds=0):
        """Wait so many seconds for letters in flight; stop the sender thread."""
        if self._producer is None:
            return
        if not self._producer.close(seconds):
            log.warning("Not all bad records were written to the dead letter queue '%s': they fail again after a restart", self.topic)
        if threading.current_thread() is not self._sender:
            self._sender.join()

    def abort(self):
        """Wake threads that wait in `write` or `stored`; send nothing more. Thread-safe."""
        if self._producer is not None:
            self._producer.close(0)

    def _send(self, context):
        with log_context(context):
            try:
                self._producer.run()
            except BaseException as error:
                self._failure = self._failure or ConnectError(f"The dead letter queue's producer failed: {error}")
                self._on_failure()

    def _make_topic(self, replication_key):
        admin = self._new_admin()
        try:
            if self.topic not in admin.list_topics(internal=True) and admin.create_topics(self.topic, 1, self._replication_factor):
                log.info("Created topic %s for dead letters, with 1 partition and replication factor %d", self.topic, self._replication_factor)
        except LogError as error:
            failed = _TopicNotMade(str(error))
            failed.__cause__ = error
            raise ConnectError(
                f"The topic '{self.topic}' of the dead letter queue could not be created with replication factor {self._replication_factor} "
                f"({replication_key}): {error} A single broker allows a replication factor of 1 only; an existing topic is used unchanged."
            ) from failed
        finally:
            admin.close()


class _TopicNotMade(ConnectError):
    java_class = "java.util.concurrent.ExecutionException"  # Java's traces have it between the two, too


class Letters:
    """Builds letters of failed records. `write(record)` returns ((key, format), (value, format), headers) of a record not serialized yet."""

    most_bytes = float("inf")

    def __init__(self, connector, number, with_context, write=None):
        self._with_context = with_context
        self._write = write
        self._whose = ((f"{PREFIX}connector.name", connector.encode()), (f"{PREFIX}task.id", b"%d" % number))
        self._kinds = {}  # (stage, class, class of the error) -> their headers

    def of_sink(self, topic, partition, records, failures):
        """wire.Records of fetched rows that failed."""
        letters = records.take(np.array([failure.row for failure in failures], np.int64))
        headers = letters.headers
        if self._with_context:
            place = ((_TOPIC, topic.encode()), (_PARTITION, b"%d" % partition))
            more = _header_bytes((*place, (_OFFSET, b"%d" % (1 << 62)), *self._whose))
            own = letters.headers if letters.headers is not None else [()] * len(letters)
            rows = zip(own, letters.offsets.tolist(), failures, _sizes(letters))
            headers = [
                self._fitting([*(each or ()), *place, (_OFFSET, b"%d" % offset), *self._whose], failure, size + more + _header_bytes(each or ()))
                for each, offset, failure, size in rows
            ]
        return Records(len(letters), letters.keys, letters.values, letters.timestamps, headers)

    def of_refused(self, topic, partition, records, failures):
        """wire.Records of rows that the broker rejected; each failure has the polled record, or one of the same source partition."""
        rows = []
        for failure in failures:
            key, value = (None if column is None else column[failure.row] for column in (records.keys, records.values))
            own = list(records.headers[failure.row] or ()) if records.headers is not None else []
            time = NO_TIMESTAMP if records.timestamps is None else int(records.timestamps[failure.row])
            rows.append(self._of_source(failure, topic, partition, (key, "bytes"), (value, "bytes"), own, time))
        return _records(rows)

    def of_source(self, failures):
        """wire.Records of polled records."""
        rows = []
        for failure in failures:
            record = failure.record
            key, value, own = self._write(record)
            time = NO_TIMESTAMP if record.timestamp is None else record.timestamp
            rows.append(self._of_source(failure, record.topic, record.partition, key, value, list(own), time))
        return _records(rows)

    def _of_source(self, failure, topic, partition, key, value, own, time):
        parts, formats, size = [], [], 0
        for data, written in (key, value):
            if size + len(data or b"") + 2 * _LONGEST_TEXT > self.most_bytes:
                data, written = None, f"omitted {len(data)} bytes"
            size += len(data or b"")
            parts.append(data)
            formats.append(written)
        if self._with_context:
            record = failure.record
            own.append((_TOPIC, topic.encode()))
            if partition is not None:
                own.append((_PARTITION, b"%d" % partition))
            own.append((f"{PREFIX}source.partition", _json(record.source_partition)))
            own.append((f"{PREFIX}source.offset", _json(record.source_offset)))
            own += self._whose
            own = self._fitting(own, failure, size + _header_bytes(own))
            own += [(f"{PREFIX}{name}.format", written.encode()) for name, written in zip(("key", "value"), formats)]
        return (*parts, time, own)

    def _fitting(self, headers, failure, size):
        """The headers followed by the error headers, whose strings are truncated if the letter would be too large for a request."""
        error = failure.error
        message, trace = str(error).encode(errors="replace"), trace_of(error).encode(errors="replace")
        if size + len(message) + len(trace) + _ERROR_BYTES > self.most_bytes:
            message, trace = message[:_LONGEST_TEXT], trace[:_LONGEST_TEXT]
        kind = failure.stage, failure.class_name, error.__class__, getattr(error, "java_class", None)
        said = self._kinds.get(kind)
        if said is None:
            texts = failure.stage, failure.class_name, shown_class(error)
            said = self._kinds[kind] = [(PREFIX + name, text.encode()) for name, text in zip(("stage", "class.name", "exception.class.name"), texts)]
        headers += said
        headers += ((_MESSAGE, message if error.args else None), (_TRACE, trace))
        return headers


class SourceWriter:
    """Serializes a polled record as well as possible: `converters` are those of key, value and headers, `new_json` creates JsonConverters."""

    def __init__(self, converters, new_json):
        self._key, self._value, self._header = converters
        self._json = {True: new_json(True), False: new_json(False)}

    def __call__(self, record):
        headers = [(header.name, self._header_bytes(record.topic, header)) for header in record.headers]
        key = self._written(self._key, True, record.topic, record.key_schema, record.key, headers)
        value = self._written(self._value, False, record.topic, record.value_schema, record.value, headers)
        return key, value, headers

    def _written(self, converter, is_key, topic, schema, value, headers):
        for each, written in ((converter, "converter"), (self._json[is_key], "json")):
            try:
                data = each.written(topic, schema, value, headers)
                return None if data is None else bytes(data), written
            except Exception:  # try the next one; a converter may raise anything
                continue
        return _text(value), "text"

    def _header_bytes(self, topic, header):
        try:
            return self._header.from_header(topic, header.name, header.schema, header.value)
        except Exception:
            return _text(header.value)


def _text(value):
    try:
        return java_text(value).encode(errors="replace")
    except Exception:
        return repr(value).encode(errors="replace")


def _records(rows):
    """wire.Records of [(key, value, timestamp, headers)]."""
    keys, values, times, headers = zip(*rows)
    times = np.array(times, np.int64)
    return Records(
        len(rows),
        ByteColumn.of(list(keys)) if any(key is not None for key in keys) else None,
        ByteColumn.of(list(values)),
        times if (times != NO_TIMESTAMP).any() else None,
        list(headers),
    )


def _header_bytes(headers):
    return sum(len(name) + len(data or b"") + 10 for name, data in headers) if headers else 0


def _sizes(records):
    """Sizes of key and value together, per row."""
    sizes = np.zeros(len(records), np.int64)
    for column in (records.keys, records.values):
        if column is not None:
            sizes += np.maximum(column.lengths, 0)
    return sizes.tolist()


def _json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode(errors="replace")
