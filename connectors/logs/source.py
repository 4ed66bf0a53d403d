"""LogSource: follows the log files of a host, through any kind of rotation, and publishes their lines."""

import dataclasses
import logging
import time

from connectors.logs.discovery import Discovery, check_paths
from connectors.logs.events import Events
from connectors.logs.follower import Follower
from connectors.logs.log_file import check_offset
from connectors.logs.options import AUTO, CONFIG, EXIT, Settings, errors_of
from connectors.logs.records import Records
from standalone import ConnectError, ExactlyOnceSupport, SourceConnector, SourceTask

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0  # poll returns after this long, even with nothing
GATHER_SECONDS = 0.002  # between polls that find little, so that a busy writer's lines are batched
GATHER_BYTES = 1 << 16
BATCH_BYTES = 4 << 20  # maximum size of a poll, from many small files together
MOST_BATCHES = 500


class LogSourceConnector(SourceConnector):
    """Follow all files that match globs, through every kind of rotation, and publish their lines, raw or parsed.

    A line is complete once its line end is written; a partly written last line waits. Offsets are stored for each file, under a number
    (`slot`) that is reused after the file is deleted.
    """

    java_name = "LogSource"
    config_def = CONFIG

    def validate(self, config):
        return errors_of(CONFIG, config, _check)

    def exactly_once_support(self, config):
        return ExactlyOnceSupport.SUPPORTED

    def has_end(self, config):
        return config.get("on.eof") == EXIT

    def task_configs(self, max_tasks):
        return [dict(self.config)]  # one task decides the order in which files are read

    def alter_offsets(self, config, offsets):
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True


def _check(config):
    Settings(config)
    check_paths(config)


class LogSourceTask(SourceTask):
    """Reads all files."""

    java_name = "LogSourceTask"

    def __init__(self, idle_seconds=IDLE_SECONDS, chunk_bytes=None):
        self._idle_seconds = idle_seconds
        self._chunk_bytes = chunk_bytes
        self._events = self._follower = None
        self._stopped = False
        self._handed_on_at = 0.0
        self._polled = 0
        self._trouble = None

    def start(self, config):
        self.config = config
        parsed = CONFIG.parse(config)
        settings = Settings(parsed)
        limits = settings.limits()
        if self._chunk_bytes:
            limits = dataclasses.replace(limits, chunk_bytes=self._chunk_bytes)
        discovery = Discovery(parsed["paths"], parsed["exclude"])
        self._events = Events(polls_only=parsed["watch"] != AUTO)
        self._follower = Follower(discovery, limits, settings.rules(), self._events, self.context.offset_reader)
        self._records = Records(settings, discovery)
        self._pace = _Pace(parsed["rate.limit.bytes"], parsed["rate.limit.records"])
        self._exits = parsed["on.eof"] == EXIT

    def poll(self):
        if self._trouble is not None:
            raise self._trouble
        deadline = time.monotonic() + self._idle_seconds
        self._gather()
        while not self._stopped:
            wait = self._pace.seconds()
            if wait <= 0:
                batches = self._read()
                if batches:
                    return batches
                if self._exits and self._follower.is_at_end:
                    log.info("Read all files to their end (on.eof=exit): %d records.", self._polled)
                    self.context.end()
                    return None
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            if wait > 0:
                self._events.pause(min(left, wait))
            else:
                self._follower.wait(left)
        return None

    def stop(self):
        self._stopped = True
        if self._events is not None:
            self._events.wake()

    def close(self):
        for part in (self._follower, self._events):
            if part is not None:
                part.close()
        self._follower = self._events = None

    def _read(self):
        """Batches of available lines, each of one file, up to the size of a poll."""
        batches, size = [], 0
        while size < BATCH_BYTES and len(batches) < MOST_BATCHES:
            try:
                found = self._follower.read()
                if found is None:
                    break
                file, lines = found
                batch = self._records.batch(file, lines, more_follows=len(lines.data) >= BATCH_BYTES)
            except ConnectError as error:
                if not batches:
                    raise
                self._trouble = error  # return the lines read before first
                break
            size += len(lines.data)
            self._pace.spent(len(lines.data), len(lines))
            if batch is not None:
                batches.append(batch)
                self._polled += batch.count
            if self._pace.seconds() > 0:
                break
        self._handed_on_at = time.monotonic() if size < GATHER_BYTES else 0.0
        return batches

    def _gather(self):
        left = self._handed_on_at + GATHER_SECONDS - time.monotonic()
        if left > 0:
            self._events.pause(left)


class _Pace:
    """The rate limit."""

    def __init__(self, bytes_a_second, records_a_second):
        self._rates = (bytes_a_second, records_a_second)
        self._free_at = 0.0

    def seconds(self):
        return self._free_at - time.monotonic() if self._free_at else 0.0

    def spent(self, size, count):
        costs = [amount / rate for amount, rate in zip((size, count), self._rates) if rate]
        if costs:
            self._free_at = max(self._free_at, time.monotonic() - 0.1) + max(costs)


LogSourceConnector.task_class = LogSourceTask
