"""Handling of a failed record: it is counted, logged and written to the dead letter queue, as configured; then it is skipped
(errors.tolerance=all) or the task fails (none). As in Java, the queue and the log get it in either case.

In the chain every error is tolerated. Rejections by the broker are tolerated if the record is at fault (too large, invalid); errors of
put() only if they go through the errant record reporter, or the task declares put_is_idempotent.
"""

import concurrent.futures
import dataclasses
import logging
import re

from standalone.errors import ConnectError, shown_class
from standalone.stage import StageFailed
from standalone.wire import NO_TIMESTAMP

log = logging.getLogger(__name__)

TASK_PUT, KAFKA_PRODUCE = "TASK_PUT", "KAFKA_PRODUCE"
SINK_TASK, SOURCE_TASK = "org.apache.kafka.connect.sink.SinkTask", "org.apache.kafka.connect.runtime.WorkerSourceTask"
_SHORTEST_QUOTE = 6  # a match of message and record this long is no coincidence
_TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}


@dataclasses.dataclass
class ErrorCounters:
    """One task's counters, by the names of Connect's task-error-metrics."""

    total_record_failures: int = 0  # failed attempts
    total_record_errors: int = 0  # records that failed permanently
    total_records_skipped: int = 0
    total_retries: int = 0
    total_errors_logged: int = 0
    deadletterqueue_produce_requests: int = 0
    deadletterqueue_produce_failures: int = 0
    last_error_timestamp: int = 0  # milliseconds since the epoch

    def values(self):
        return {name.replace("_", "-"): value for name, value in dataclasses.asdict(self).items()}


class ToleranceExceeded(ConnectError):
    """A record failed, and the configuration does not tolerate errors; the cause is the record's error."""

    def __init__(self, failure, place, task):
        link = f"'{failure.name}', " if failure.name and failure.name != failure.class_name else ""
        super().__init__(
            f"The record of {place} failed in stage {failure.stage} ({link}{failure.class_name}) of {task}, and errors.tolerance is none. "
            "Fix the record, or set errors.tolerance=all to skip it (and configure a dead letter queue to save it)."
        )


class Tolerance:
    """One task's. `dead_letters` is a dead_letter.DeadLetterQueue whose `letters` builds the records, or None."""

    def __init__(self, config, connector, number, counters, clock, dead_letters=None):
        self.all = config["errors.tolerance"].lower() == "all"
        self.counters = counters
        self.dead_letters = dead_letters
        self._logs = config["errors.log.enable"]
        self._shows = config["errors.log.include.messages"]
        self._task = f"task {number} of connector '{connector}'"
        self._clock = clock

    @property
    def reports(self):
        """Whether bad records are logged or saved: then a sink task has an errant record reporter."""
        return self._logs or self.dead_letters is not None

    def sink(self, topic, partition, records, failures):
        """Handle fetched records that failed; row numbers refer to `records`. Raises ToleranceExceeded."""
        failures = failures if self.all else failures[:1]
        self._count(failures)
        for failure in failures if self._logs else ():
            self._log(failure, *_place_of_sink(topic, partition, records, failure.row))
        if self.dead_letters is not None and failures:
            self.dead_letters.write(self.dead_letters.letters.of_sink(topic, partition, records, failures))
        self._judge(failures, lambda failure: _place_of_sink(topic, partition, records, failure.row))

    def errant(self, topic, partition, records, row, error):
        """Handle a record that a sink task reported; return a Future that is done once it is stored. Raises ToleranceExceeded."""
        failure = StageFailed(TASK_PUT, None, row, error, class_name=SINK_TASK)
        self._count([failure])
        if self._logs:
            self._log(failure, *_place_of_sink(topic, partition, records, row))
        stored = concurrent.futures.Future()
        if self.dead_letters is not None:
            letters = self.dead_letters.letters.of_sink(topic, partition, records, [failure])
            self.dead_letters.write(letters, lambda problem: stored.set_exception(problem) if problem else stored.set_result(None))
        else:
            stored.set_result(None)
        self._judge([failure], lambda _: _place_of_sink(topic, partition, records, row))
        return stored

    def source(self, failures, on_stored):
        """Handle records that failed in a source's chain; `on_stored()` is called once their letters are stored. Return whether there are any."""
        failures = failures if self.all else failures[:1]
        self._count(failures)
        for failure in failures if self._logs else ():
            self._log(failure, *_place_of_source(failure.record))
        written = self.dead_letters is not None and bool(failures)
        if written:
            self.dead_letters.write(self.dead_letters.letters.of_source(failures), lambda problem: problem or on_stored())
        self._judge(failures, lambda failure: _place_of_source(failure.record))
        return written

    def produce(self, topic, partition, records, failures, on_stored):
        """Handle records that the broker rejected, with their bytes and the failures' row numbers. Thread-safe."""
        self._count(failures)
        for failure in failures if self._logs else ():
            self._log(failure, *_place_of_source(failure.record, topic, partition))
        if self.dead_letters is not None:
            letters = self.dead_letters.letters.of_refused(topic, partition, records, failures)
            # The offset of a record that is not tolerated is not committed.
            self.dead_letters.write(letters, lambda problem: problem or not self.all or on_stored())
        self._judge(failures, lambda failure: _place_of_source(failure.record, topic, partition))
        if self.dead_letters is None:
            on_stored()

    def _count(self, failures):
        if failures:
            self.counters.total_record_failures += len(failures)
            self.counters.total_record_errors += len(failures)
            self.counters.last_error_timestamp = self._clock.now_ms()

    def _judge(self, failures, place_of):
        if failures and not self.all:
            raise ToleranceExceeded(failures[0], place_of(failures[0])[0], self._task) from failures[0].error
        self.counters.total_records_skipped += len(failures)

    def _log(self, failure, place, hidden):
        message = " ".join(str(failure.error).split())
        for text in hidden:
            message = _without(message, text)
        shown = f", on the record of {place}" if self._shows else ""
        error_class = shown_class(failure.error)
        log.error("Error in stage %s, class %s, %s%s: %s: %s", failure.stage, failure.class_name, self._task, shown, error_class, message)
        self.counters.total_errors_logged += 1


def _place_of_sink(topic, partition, records, row):
    """A record's position in the log, and the strings that must not be logged."""
    timestamp = NO_TIMESTAMP if records.timestamps is None else int(records.timestamps[row])
    kind = _TIMESTAMP_TYPES.get(records.timestamp_type)
    time = f", timestamp {timestamp} ({kind})" if timestamp != NO_TIMESTAMP and kind else ""
    place = f"topic {topic}, partition {partition}, offset {int(records.offsets[row])}{time}"
    return place, [_text(None if column is None else column[row]) for column in (records.values, records.keys)]


def _place_of_source(record, topic=None, partition=None):
    topic, partition = topic or record.topic, record.partition if partition is None else partition
    time = "" if record.timestamp is None else f", timestamp {record.timestamp}"
    place = f"topic {topic}, partition {'unset' if partition is None else partition}{time}, source partition {record.source_partition}, "
    place += f"source offset {record.source_offset}"
    return place, [part if isinstance(part, str) else _text(part) for part in (record.value, record.key)]


def _without(message, text):
    """The message without quotes from that text: converters quote what they cannot parse."""
    size = min(_SHORTEST_QUOTE, len(text))
    if size < _SHORTEST_QUOTE:
        return re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "…", message) if text else message
    quoted = [False] * len(message)
    for at in range(len(message) - size + 1):
        if message[at : at + size] in text:
            quoted[at : at + size] = [True] * size
    shown = "".join("\0" if hide else letter for letter, hide in zip(message, quoted))
    return re.sub("\0+", "…", shown)


def _text(data):
    return " ".join(data.decode(errors="replace").split()) if isinstance(data, bytes) else ""
