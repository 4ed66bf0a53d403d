"""A bulk request: lines of several batches, and the server's result for each line."""

import numpy as np
import orjson

from connectors.elasticsearch.server import reason_of

PATH = "/_bulk?filter_path=errors,items.*.status,items.*.error"
_FINE = b'"errors":false'
DONE, CONFLICT, LATER, BAD, FATAL = "done", "conflict", "later", "bad", "fatal"
_LATER = (429, 502, 503, 504)
# Errors caused by the state of the index or server, not by the document, whatever their status. They pass by themselves or after a fix.
_PASSING = {
    "cluster_block_exception",
    "es_rejected_execution_exception",
    "rejected_execution_exception",
    "circuit_breaking_exception",
    "unavailable_shards_exception",
    "no_shard_available_action_exception",
    "process_cluster_event_timeout_exception",
}
_WHOLE_INDEX = {"security_exception", "index_closed_exception", "index_not_found_exception"}


class Piece:
    """Lines of one batch: `rows[n]` is the row of line n, `ids[n]` its id if order depends on ids, else `ids` is None."""

    __slots__ = ("lines", "batch", "rows", "ids", "pair")

    def __init__(self, lines, batch, rows, ids=None):
        self.lines, self.batch, self.rows, self.ids = lines, batch, rows, ids
        self.pair = batch.origin

    def __len__(self):
        return len(self.rows)

    @property
    def first_offset(self):
        return int(self.batch.offsets[self.rows[0]])

    def cut(self, low, high):
        return Piece(self.lines.slice(low, high), self.batch, self.rows[low:high], self.ids and self.ids[low:high])

    def take(self, places):
        return Piece(self.lines.take(places), self.batch, self.rows[places], self.ids and [self.ids[place] for place in places])

    def record(self, place):
        row = int(self.rows[place])
        return self.batch.slice(row, row + 1).records()[0]


class Bulk:
    """Pieces of one request. No other request may contain its `ids` at the same time."""

    def __init__(self, pieces):
        self.pieces = pieces
        self.count = sum(map(len, pieces))
        self.ids = {id_ for piece in pieces if piece.ids for id_ in piece.ids}

    def body(self):
        texts = [_together(piece.lines) for piece in self.pieces]
        return texts[0] if len(texts) == 1 else b"".join(texts)

    def find(self, line):
        """Return (piece, index in it) of a line."""
        for piece in self.pieces:
            if line < len(piece):
                return piece, line
            line -= len(piece)
        raise IndexError(line)

    def take(self, lines):
        """Return a bulk of these lines only, ascending numbers."""
        lines, low, pieces = np.asarray(lines), 0, []
        for piece in self.pieces:
            places = lines[(lines >= low) & (lines < low + len(piece))] - low
            if len(places):
                pieces.append(piece.take(places))
            low += len(piece)
        return Bulk(pieces)

    def halves(self):
        middle = self.count // 2
        return self.take(range(middle)), self.take(range(middle, self.count))

    def with_followers(self, lines):
        """Add to these lines all later lines of the same documents: updates must arrive in order."""
        if not self.ids:
            return lines
        ids = [id_ for piece in self.pieces for id_ in piece.ids]
        first = {}
        for line in lines:
            first.setdefault(ids[line], line)
        return [line for line, id_ in enumerate(ids) if line >= first.get(id_, len(ids))]


def _together(lines):
    """Return the lines as one memoryview, without a copy if they are already contiguous."""
    low, high = int(lines.starts[0]), int(lines.starts[-1] + lines.lengths[-1])
    stands = high - low == lines.nbytes and bool((lines.starts[1:] == lines.starts[:-1] + lines.lengths[:-1]).all())
    return memoryview(lines.data)[low:high] if stands else memoryview(lines.compact().data)


def judged(answer, count):
    """Parse a bulk response: [(line, verdict, error type, reason)] of the lines that are not done."""
    if _FINE in answer[:64]:
        return []
    items = orjson.loads(answer).get("items", ())
    if len(items) != count:
        raise ValueError(f"the answer to a bulk request reports {len(items)} documents, and {count} were sent")
    found = []
    for line, item in enumerate(items):
        ((action, said),) = item.items()
        if said.get("status", 500) >= 300 and (verdict := _verdict(action, said)) != DONE:
            found.append((line, verdict, *reason_of(said)))
    return found


def _verdict(action, said):
    status, error = said["status"], said.get("error") or {}
    kind = error.get("type") if isinstance(error, dict) else None
    if status == 404 and action == "delete" and not kind:
        return DONE  # already absent
    if status == 409:
        return LATER if action == "update" else CONFLICT
    if status in _LATER or kind in _PASSING or status >= 500:
        return LATER
    if status == 401 or kind in _WHOLE_INDEX:
        return FATAL
    return BAD
