"""ElasticsearchSink: records as documents of Elasticsearch or OpenSearch.

    targets.py    index names, creation and mappings      mapping.py   mappings of schemas
    documents.py  values to JSON                                                lines.py     batches to lines of bulk requests
    sender.py     requests in flight, retries               server.py    addresses, logins, one request

Records are processed in columns and sent in parallel. For a document with a key the record's offset is its version: despite late or repeated
requests, the index ends with the last record of each key.
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

PORTION_BYTES = 8 << 20  # size of one portion of lines
LEAST_PORTION = 500
ROOM_SECONDS = 2.0  # after so long without a free slot the put is retried later
COMMIT_SECONDS = 1.0  # wait for requests in flight before a commit, if it need not be complete
BUSY_MS = 20  # between attempts to send a partial request


class ElasticsearchSinkConnector(SinkConnector):
    """Index each record's value as a document of Elasticsearch (7 and later) or OpenSearch, by its key."""

    java_name = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
    config_def = KEYS
    passing = (HTTPS,)

    def validate(self, config):
        parsed = _parsed(config)
        return contradictions(parsed) if parsed is not None else {}

    def try_out(self, config):
        """Check the server and the user's permissions."""
        parsed = _parsed(config)
        return _asked(parsed) if parsed is not None else {}

    def task_configs(self, max_tasks):
        return [{**self.config, "taskId": str(number)} for number in range(max_tasks)]

    def alter_offsets(self, config, offsets):
        return True  # indexed documents stay


def _parsed(config):
    try:
        return KEYS.parse(config)
    except ConfigError:
        return None  # reported key by key


def _asked(config):
    try:
        server = Server(config)
    except ConfigError as error:
        return error.errors or {"connection.url": str(error)}
    try:
        server.who()
        topics = [topic.strip() for topic in config.originals.get("topics", "").split(",") if topic.strip()]
        return _missing_permissions(config, server, topics)
    except (ConnectError, ConfigError) as error:
        return {"connection.url": str(error)}
    finally:
        server.close()


def _missing_permissions(config, server, topics):
    """Ask servers with X-Pack security for missing permissions."""
    try:
        names = [Targets(config, server).name(topic) for topic in topics]
        wanted = ["write", "create_index"] if config["external.resource.usage"].upper() == "DISABLED" else ["write"]
        asked = {"index": [{"names": names, "privileges": wanted}]}
        answer = server.ask("POST", "/_security/user/_has_privileges", asked, absent=True) if names else None
    except (Refused, Unreachable, DataError):
        return {}  # not supported, or names not known yet
    lacking = sorted(
        f"{right} on '{name}'" for name, rights in (answer or {}).get("index", {}).items() for right, has in rights.items() if not has
    )
    if not lacking:
        return {}
    return {"connection.username": f"this user lacks permissions: {', '.join(lacking)}"}


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
        self._pending = collections.deque()  # Pieces not in a request yet
        self._pending_since = None
        self._row_bytes = 0  # estimated, from the last lines
        self._parts = {}  # of a put to be retried: id of a batch -> (the batch, its remaining parts by topic)

    def open(self, partitions):
        self._release(partitions)

    def put(self, records):
        self._sender.raise_failure()
        for batch in records:
            parts = self._parts.get(id(batch))
            if parts is None:
                parts = self._parts[id(batch)] = batch, _by_topic(batch)
            while parts[1]:
                self._take(parts[1])
        self._parts.clear()
        self._send_due()

    def flush(self, offsets):
        """Wait until everything is stored, without a limit."""
        is_sync = self.config["flush.synchronously"]
        try:
            self._send(everything=True)
        except RetriableError:  # retried with the rest
            if is_sync:
                raise
        if not self._sender.wait(self._flush_seconds if is_sync else COMMIT_SECONDS) and is_sync:
            self._sender.raise_failure()
            raise RetriableError(f"Not all documents are stored after flush.timeout.ms={self.config['flush.timeout.ms']}. {self._trouble()}")

    def pre_commit(self, offsets):
        """Commit up to the first record that is not stored."""
        try:
            self.flush(offsets)
        except RetriableError:
            raise
        except ConnectError as error:  # the next put raises it; stored records are committed
            log.warning("Committing offsets before the first record that could not be stored: %s", error)
        first = self._sender.first_offsets()
        for piece in self._pending:
            first[piece.pair] = min(piece.first_offset, first.get(piece.pair, piece.first_offset))
        return {pair: min(offset, first.get(pair, offset)) for pair, offset in offsets.items()}

    def close(self, partitions):
        self._release(partitions)

    def stop(self):
        if self._sender is not None:
            self._sender.close()
            log.info("Wrote %s", self.counts.shown())
        if self._server is not None:
            self._server.close()

    def metrics(self):
        return self.counts.metrics()

    def _release(self, pairs):
        gone = set(pairs)
        self._pending = collections.deque(piece for piece in self._pending if piece.pair not in gone)
        self._sender.disown(gone)
        self._parts = {each: parts for each, parts in self._parts.items() if parts[0].origin not in gone}

    # --- From batches to lines ---------------------------------------------------------------------------------------

    def _take(self, parts):
        """Convert the first of these batches to lines, portion by portion, and send full requests. Processed parts are removed."""
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
        except DataError as error:  # a null value needs no schema
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

    def _send_due(self):
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
        """Send full requests, or everything. Raise RetriableError if there is no free slot for too long."""
        while bulk := self._next_bulk(everything):
            if not self._sender.send(bulk, ROOM_SECONDS):
                self._pending.extendleft(reversed(bulk.pieces))
                self._pending_since = self._pending_since or time.monotonic()
                waited = time.monotonic() - self._sender.progress_at
                if waited > self._flush_seconds:
                    raise ConnectError(f"Nothing was stored for {waited:.0f} s (flush.timeout.ms). {self._trouble()}")
                self.context.timeout(BUSY_MS)
                raise RetriableError(f"All {self.config['max.in.flight.requests']} requests are in flight. {self._trouble()}")

    def _trouble(self):
        return self._sender.trouble or "The server has not responded yet."

    def _next_bulk(self, everything):
        """Take the next bulk from the pending pieces, or None if there is not enough for a full one."""
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
        """Return how many of its lines still fit the request; at least one for an empty request."""
        fit = min(len(piece), self._batch_size - count)
        if self._bulk_bytes >= 0:
            ends = size + np.cumsum(piece.lines.lengths[:fit], dtype=np.int64)
            fit = int(np.searchsorted(ends, self._bulk_bytes, "right"))
        return max(fit, 0 if count else 1)

    # --- Records that are not documents -------------------------------------------------------------------------------

    def _refused(self, piece, place, error):
        """Handle a rejected document; called on any thread."""
        self._judge_malformed(piece.record(place), error)

    def _bad(self, batch, row, error):
        """Handle a record that cannot become a document."""
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
    """Split a batch by its records' topics; order is kept within each."""
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
