"""Cursors for unbounded results, fetched in pieces: push queries, and PRINT. A cursor idle for a minute is closed."""

import collections
import logging
import shutil
import tempfile
import threading
import uuid

from standalone.errors import ConnectError, NotFoundError
from standalone.streams.answers import plain
from standalone.streams.frames import frame_of, register
from standalone.streams.ranges import Ranges
from standalone.streams.sql.catalog import quoted

log = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_MOST_ROWS = 10_000  # that wait to be fetched


class Cursors:
    """Thread-safe."""

    def __init__(self, clock):
        self._clock = clock
        self._lock = threading.Lock()
        self._found = {}  # id -> (cursor, time of the last fetch)
        self._closing = threading.Event()
        self._thread = None

    def add(self, cursor):
        name = uuid.uuid4().hex
        with self._lock:
            self._found[name] = cursor, self._clock.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="cursors", daemon=True)
                self._thread.start()
        return name

    def rows(self, name, seconds):
        """Return {rows, done}: new rows, after waiting at most `seconds`. Raise the error that ended the cursor."""
        with self._lock:
            if name not in self._found:
                raise NotFoundError(f"There is no cursor '{name}': it was closed, or not fetched for {_IDLE_SECONDS:.0f} s.")
            cursor = self._found[name][0]
            self._found[name] = cursor, float("inf")  # not idle while a client waits
        try:
            rows, done = cursor.take(seconds)
        except BaseException:
            self.end(name)
            raise
        if done:
            self.end(name)
        else:
            with self._lock:
                if name in self._found:
                    self._found[name] = cursor, self._clock.monotonic()
        return {"rows": [plain(row) for row in rows], "done": done}

    def end(self, name):
        with self._lock:
            cursor, _ = self._found.pop(name, (None, 0))
        if cursor is not None:
            cursor.close()

    def close(self):
        self._closing.set()
        with self._lock:
            names = list(self._found)
        for name in names:
            self.end(name)

    def _watch(self):
        while not self._clock.wait(self._closing, 5.0):
            now = self._clock.monotonic()
            with self._lock:
                late = [name for name, (_, asked) in self._found.items() if now - asked > _IDLE_SECONDS]
            for name in late:
                self.end(name)


class PushQuery:
    """SELECT … EMIT CHANGES: the rows of a streaming query as they arrive."""

    def __init__(self, streams, plan, config):
        self._plan = plan
        self._rows = collections.deque()
        self._room = threading.Condition()
        self._given = 0
        self._closed = False
        self._folder = tempfile.mkdtemp(prefix="connect-push-")
        place = streams.place

        def options_of(source, is_stream):
            options = place.options(source)
            return {**options, "startingOffsets": config["auto.offset.reset"]} if is_stream else options

        session = register(streams.session(), streams.functions)
        frame = frame_of(session, plan, options_of).select(*[quoted(name) for name in plan.names])
        writer = frame.writeStream.foreachBatch(self._put).outputMode(plan.mode).option("checkpointLocation", self._folder)
        self._query = writer.trigger(processingTime="0 seconds").start()

    def _put(self, batch, number):
        table = batch.toArrow()
        found = list(zip(*(column.to_pylist() for column in table.columns)))
        with self._room:
            while len(self._rows) > _MOST_ROWS and not self._closed:
                self._room.wait(1.0)
            self._rows.extend(found)
            self._room.notify_all()

    def take(self, seconds):
        with self._room:
            self._room.wait_for(lambda: self._rows or not self._query.isActive, seconds)
            rows = list(self._rows)
            self._rows.clear()
            self._room.notify_all()
        limit = self._plan.limit
        if limit is not None:
            rows = rows[: limit - self._given]
        self._given += len(rows)
        if not rows and not self._query.isActive:
            raise ConnectError(f"The query has ended: {self._query.exception() or 'Spark has stopped it'}")
        return rows, limit is not None and self._given >= limit

    def close(self):
        with self._room:
            self._closed = True
            self._room.notify_all()
        try:
            self._query.stop()
        except Exception as error:  # the Java process may have ended
            log.info("A push query ended, but Spark failed to stop it: %s", error)
        shutil.rmtree(self._folder, ignore_errors=True)


class Tail:
    """PRINT: the records of a topic, from the beginning or from now on."""

    columns = ("rowtime", "key", "value", "partition", "offset")

    def __init__(self, clients, statement):
        self._ranges = Ranges(clients)
        self._topic, self._interval, self._limit = statement.topic, statement.interval, statement.limit
        pairs = self._ranges.pairs(topics=[self._topic])
        self._at = self._ranges.begins(pairs) if statement.from_beginning else self._ranges.ends(pairs)
        self._seen = self._given = 0
        self._quiet = threading.Event()

    def take(self, seconds):
        waited = 0.0
        while True:
            rows = self._new_rows()
            done = self._limit is not None and self._given >= self._limit
            if rows or done or waited >= seconds or self._quiet.wait(_LOOK_SECONDS):
                return rows, done
            waited += _LOOK_SECONDS

    def _new_rows(self):
        found = []
        for pair, end in sorted(self._ranges.ends(list(self._at)).items()):
            if end <= self._at[pair]:
                continue
            for records in self._ranges.read(*pair, self._at[pair], end):
                for row in range(len(records)):
                    self._seen += 1
                    if (self._seen - 1) % self._interval or self._limit is not None and self._given >= self._limit:
                        continue
                    self._given += 1
                    key = records.keys[row] if records.keys is not None else None
                    value = records.values[row] if records.values is not None else None
                    found.append((int(records.timestamps[row]), shown(key), shown(value), pair[1], int(records.offsets[row])))
            self._at[pair] = end
        return found

    def close(self):
        self._quiet.set()
        self._ranges.close()


def shown(data):
    """Format bytes for display: text, else a number of 4 or 8 bytes, else hexadecimal."""
    if data is None:
        return None
    try:
        text = data.decode()
        if text.isprintable():
            return text
    except UnicodeDecodeError:
        pass
    if len(data) in (4, 8):
        return str(int.from_bytes(data, "big", signed=True))
    return "0x" + data.hex()
