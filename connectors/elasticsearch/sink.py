"""ElasticsearchSink: records as documents of Elasticsearch or OpenSearch.

    targets.py    which index, and that it is there with the right mapping      mapping.py   mappings of schemas
    documents.py  values as JSON                                                lines.py     batches as lines of bulk requests
    sender.py     requests in flight, answers, what is sent again               server.py    addresses, logins, one request

Records are taken in columns and sent in parallel. Of a document with a key the record's offset is its version: whatever comes late or
twice, the index ends with the last record of each key.
"""

import collections
import logging
import time

import numpy as np

from connectors.elasticsearch.bulk import Bulk, Piece
from connectors.elasticsearch.counts import Counts
from connectors.elasticsearch.keys import HTTPS, KEYS, contradictions
from connectors.elasticsearch.lines import Lines, Malformed
from connectors.elasticsearch.sender import Sender
from connectors.elasticsearch.server import Refused, Server, Unreachable
from connectors.elasticsearch.targets import Targets
from standalone import ConfigError, ConnectError, DataError, RetriableError, SinkConnector, SinkTask

log = logging.getLogger(__name__)

PORTION_BYTES = 8 << 20  # about what is made into lines at a time
LEAST_PORTION = 500
ROOM_SECONDS = 2.0  # a put that finds no room for this long is to come again
COMMIT_SECONDS = 1.0  # what is on its way may arrive before a commit, where it need not
BUSY_MS = 20  # until the next look, where a request that is not full waits for a free place


class ElasticsearchSinkConnector(SinkConnector):
    """Index each record's value as a document of Elasticsearch (7 and later) or OpenSearch, by its key."""

    java_name = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
    config_def = KEYS
    passing = (HTTPS,)

    def validate(self, config):
        parsed = _parsed(config)
        return contradictions(parsed) if parsed is not None else {}

    def try_out(self, config):
        """Who the server is, and whether this user may write."""
        parsed = _parsed(config)
        return _asked(parsed) if parsed is not None else {}

    def task_configs(self, max_tasks):
        return [{**self.config, "taskId": str(number)} for number in range(max_tasks)]

    def alter_offsets(self, config, offsets):
        return True  # what is indexed stays


def _parsed(config):
    try:
        return KEYS.parse(config)
    except ConfigError:
        return None  # told key by key


def _asked(config):
    try:
        server = Server(config)
    except ConfigError as error:
        return error.errors or {"connection.url": str(error)}
    try:
        server.who()
        topics = [topic.strip() for topic in config.originals.get("topics", "").split(",") if topic.strip()]
        return _lacking_rights(config, server, topics)
    except (ConnectError, ConfigError) as error:
        return {"connection.url": str(error)}
    finally:
        server.close()


def _lacking_rights(config, server, topics):
    """Of servers that can be asked: those with X-Pack's security."""
    try:
        names = [Targets(config, server).name(topic) for topic in topics]
        wanted = ["write", "create_index"] if config["external.resource.usage"].upper() == "DISABLED" else ["write"]
        asked = {"index": [{"names": names, "privileges": wanted}]}
        answer = server.ask("POST", "/_security/user/_has_privileges", asked, absent=True) if names else None
    except (Refused, Unreachable, DataError):
        return {}  # it has no such question, or the names are not to be known yet
    lacking = sorted(
        f"{right} on '{name}'" for name, rights in (answer or {}).get("index", {}).items() for right, has in rights.items() if not has
    )
    if not lacking:
        return {}
    return {"connection.username": f"this user lacks rights: {', '.join(lacking)}"}


class ElasticsearchSinkTask(SinkTask):
    java_name = "io.confluent.connect.elasticsearch.ElasticsearchSinkTask"
    takes_batches = True

    def __init__(self):
        self.counts = Counts()
        self._server = self._sender = None

    def start(self, config):
        self.config = KEYS.parse(config)
        wrong = contradictions(self.config)
        if wrong:
            raise ConfigError.of(wrong)
        self._malformed = self.config["behavior.on.malformed.documents"].upper()
        tolerates = config.get("errors.tolerance", "none").strip().lower() == "all"
        self._reporter = self.context.errant_record_reporter() if tolerates else None
        self._server = Server(self.config)
        version, kind = self._server.who()
        log.info("Writes to %s %s", "OpenSearch" if kind == "opensearch" else "Elasticsearch", version)
        self._lines = Lines(self.config)
        self._targets = Targets(self.config, self._server)
        self._sender = Sender(self.config, self._server, self.counts, self._refused)
        self._batch_size = self.config["batch.size"]
        self._bulk_bytes = self.config["bulk.size.bytes"]
        self._linger_seconds = self.config["linger.ms"] / 1000
        self._flush_seconds = self.config["flush.timeout.ms"] / 1000
        self._pending = collections.deque()  # Pieces that are not in a request yet
        self._pending_since = None
        self._row_bytes = 0  # of the last lines, about
        self._parts = {}  # of a put that is to come again: id of a batch -> (the batch, what is left of it by topics)

    def open(self, partitions):
        self._let_go(partitions)

    def put(self, records):
        self._sender.raise_failure()
        for batch in records:
            parts = self._parts.get(id(batch))
            if parts is None:
                parts = self._parts[id(batch)] = batch, _by_topic(batch)
            while parts[1]:
                self._take(parts[1])
        self._parts.clear()
        self._send_what_is_due()

    def flush(self, offsets):
        """Wait until all is stored, as long as that may take."""
        is_sync = self.config["flush.synchronously"]
        try:
            self._send(everything=True)
        except RetriableError:  # later, with what else is to be stored
            if is_sync:
                raise
        if not self._sender.wait(self._flush_seconds if is_sync else COMMIT_SECONDS) and is_sync:
            self._sender.raise_failure()
            raise RetriableError(f"Not all documents are stored after flush.timeout.ms={self.config['flush.timeout.ms']}. {self._trouble()}")

    def pre_commit(self, offsets):
        """Up to the first record that is not stored."""
        try:
            self.flush(offsets)
        except RetriableError:
            raise
        except ConnectError as error:  # the next put fails by it; what is stored is stored
            log.warning("Offsets are committed up to what could not be stored: %s", error)
        first = self._sender.first_offsets()
        for piece in self._pending:
            first[piece.pair] = min(piece.first_offset, first.get(piece.pair, piece.first_offset))
        return {pair: min(offset, first.get(pair, offset)) for pair, offset in offsets.items()}

    def close(self, partitions):
        self._let_go(partitions)

    def stop(self):
        if self._sender is not None:
            self._sender.close()
            log.info("Wrote %s", self.counts.shown())
        if self._server is not None:
            self._server.close()

    def metrics(self):
        return self.counts.metrics()

    def _let_go(self, pairs):
        gone = set(pairs)
        self._pending = collections.deque(piece for piece in self._pending if piece.pair not in gone)
        self._sender.disown(gone)
        self._parts = {each: parts for each, parts in self._parts.items() if parts[0].origin not in gone}

    # --- From batches to lines ---------------------------------------------------------------------------------------

    def _take(self, parts):
        """Make lines of the first of these batches, a portion at a time, and send what fills a request. What is pending is taken off."""
        while parts[0] is not None:
            self._send()
            batch = parts[0]
            size = self._portion(batch)
            portion = batch.slice(0, size)
            self._make_lines(portion)
            parts[0] = batch.slice(size, len(batch)) if size < len(batch) else None
        parts.pop(0)
        self._send()

    def _portion(self, batch):
        size = batch.nbytes / max(1, len(batch)) or self._row_bytes
        most = max(self._batch_size, LEAST_PORTION)
        return max(1, min(most, int(PORTION_BYTES / size))) if size else most

    def _make_lines(self, batch):
        try:
            name = self._targets.name(batch.topic)
        except DataError as error:
            for row in range(len(batch)):
                self._bad(batch, row, error)
            return
        try:
            schema = self._lines.schema(batch)
        except DataError as error:  # what has no value needs no schema
            schema, nulls = None, batch.nulls()
            for row in np.flatnonzero(~nulls).tolist():
                self._bad(batch, row, error)
            batch = batch.take(np.flatnonzero(nulls))
        self._targets.prepare(name, schema)
        lines, rows, ids, errors = self._lines.of(batch, name)
        for row in sorted(errors):
            self._bad(batch, row, errors[row])
        if len(rows):
            self._row_bytes = lines.nbytes / len(rows)
            self._pending_since = self._pending_since or time.monotonic()
            self._pending.append(Piece(lines, batch, rows, ids))

    # --- From lines to requests --------------------------------------------------------------------------------------

    def _send_what_is_due(self):
        if not self._pending:
            return
        left = self._pending_since + self._linger_seconds - time.monotonic()
        if left > 0.001:
            self.context.timeout(1000 * left)
        elif self._sender.has_room:
            self._send(everything=True)
        else:
            self.context.timeout(BUSY_MS)

    def _send(self, everything=False):
        """Send requests that are full, or all of it. RetriableError where there is no room for too long."""
        while bulk := self._next_bulk(everything):
            if not self._sender.send(bulk, ROOM_SECONDS):
                self._pending.extendleft(reversed(bulk.pieces))
                self._pending_since = self._pending_since or time.monotonic()
                waited = time.monotonic() - self._sender.progress_at
                if waited > self._flush_seconds:
                    raise ConnectError(f"Nothing was stored for {waited:.0f} s (flush.timeout.ms). {self._trouble()}")
                self.context.timeout(BUSY_MS)
                raise RetriableError(f"All {self.config['max.in.flight.requests']} requests are under way. {self._trouble()}")

    def _trouble(self):
        return self._sender.trouble or "The server has not answered them yet."

    def _next_bulk(self, everything):
        """The next request's worth of what is pending, or None if there is not enough for a full one."""
        count = size = 0
        taken, full = [], False
        while self._pending and not full:
            piece = self._pending.popleft()
            fit = self._fitting(piece, count, size)
            full = fit < len(piece)
            if full:
                self._pending.appendleft(piece.cut(fit, len(piece)))
                piece = piece.cut(0, fit)
            if fit:
                taken.append(piece)
                count, size = count + fit, size + piece.lines.nbytes
            full = full or count >= self._batch_size or 0 <= self._bulk_bytes <= size
        if not taken or not (full or everything):
            self._pending.extendleft(reversed(taken))
            return None
        self._pending_since = time.monotonic() if self._pending else None
        return Bulk(taken)

    def _fitting(self, piece, count, size):
        """How many lines of it still go into a request; of an empty one, one at least."""
        fit = min(len(piece), self._batch_size - count)
        if self._bulk_bytes >= 0:
            ends = size + np.cumsum(piece.lines.lengths[:fit], dtype=np.int64)
            fit = int(np.searchsorted(ends, self._bulk_bytes, "right"))
        return max(fit, 0 if count else 1)

    # --- Records that are not documents -------------------------------------------------------------------------------

    def _refused(self, piece, place, error):
        """The server refuses a document; called on any thread."""
        self._judge_malformed(piece.record(place), error)

    def _bad(self, batch, row, error):
        """A record that cannot be made a document."""
        record = batch.slice(row, row + 1).records()[0]
        if isinstance(error, Malformed):
            self.counts.refused("no_document")
            self._judge_malformed(record, error)
        elif self._reporter is not None:
            self._reporter.report(record, error)
        elif self.config["drop.invalid.message"]:
            log.error("Dropped the record %s (drop.invalid.message): %s", _place(record), error)
        else:
            raise DataError(f"The record {_place(record)} is not a document: {error}") from error

    def _judge_malformed(self, record, error):
        if self._malformed == "FAIL":
            raise DataError(f"The record {_place(record)}: {error} See behavior.on.malformed.documents.") from error
        if self._malformed == "WARN":
            log.warning("Skipped the record %s: %s", _place(record), error)
        if self._reporter is not None:
            self._reporter.report(record, error)


def _place(record):
    return f"{record.original_topic}-{record.original_partition} at offset {record.original_offset}"


def _by_topic(batch):
    """A batch by the topics of its records: one of each, in which their order stays."""
    if not isinstance(batch.topic, list):
        return [batch]
    rows = collections.defaultdict(list)
    for row, topic in enumerate(batch.topic):
        rows[topic].append(row)
    parts = []
    for topic, chosen in rows.items():
        part = batch.take(np.array(chosen))
        part.topic = topic
        parts.append(part)
    return parts


ElasticsearchSinkConnector.task_class = ElasticsearchSinkTask
