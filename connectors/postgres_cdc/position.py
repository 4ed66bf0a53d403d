"""Positions in the database's log: source offsets, and the LSN to confirm to the server.

The server sends a transaction's changes together after its commit, in commit order. So a position is "after n messages of the first transaction
that ends after this LSN": the server sends whole transactions again, and those n messages are skipped.
"""

from dataclasses import dataclass

from standalone import ConnectError

INITIAL = "INITIAL"


@dataclass(frozen=True)
class Position:
    commit: int  # LSN after the last complete transaction
    event: int = 0  # messages processed of the following transaction
    xid: int | None = None  # its transaction id
    is_snapshot: bool = False  # in the snapshot, before any change
    is_complete: bool = True  # for a snapshot: whether this is its last row
    upto_lsn: int | None = None  # replaces `event` in offsets stored by Debezium's connector

    @property
    def key(self):
        """Sort key of positions."""
        return self.commit, -1 if self.is_snapshot and not self.is_complete else self.event

    def offset(self, lsn=None, micros=None, kind=None):
        """Return the source offset; names are Debezium's, except `event`."""
        if self.is_snapshot:
            return {
                "snapshot": INITIAL, "snapshot_completed": self.is_complete, "last_snapshot_record": self.is_complete, "lsn": self.commit,
                "txId": self.xid, "ts_usec": micros, "event": 0,
            }  # fmt: skip
        lsn = self.commit if lsn is None else lsn
        return {
            "lsn_proc": lsn, "lsn_commit": self.commit, "lsn": lsn, "txId": self.xid, "ts_usec": micros, "messageType": kind, "event": self.event,
        }  # fmt: skip

    @classmethod
    def of(cls, offset):
        """Parse a stored offset, ours or Debezium's. Raise ConnectError if invalid."""
        try:
            lsn, commit, xid = (None if offset.get(name) is None else int(offset[name]) for name in ("lsn", "lsn_commit", "txId"))
            if lsn is None and commit is None:
                raise ValueError("it has neither lsn nor lsn_commit")
            if offset.get("snapshot") not in (None, False, "false"):
                is_complete = bool(offset.get("snapshot_completed") or offset.get("last_snapshot_record"))
                return cls(lsn, xid=xid, is_snapshot=True, is_complete=is_complete)
            if offset.get("event") is not None:
                return cls(commit, int(offset["event"]), xid)
            done = offset.get("lsn_proc")
            return cls(lsn if commit is None else commit, xid=xid, upto_lsn=None if done is None else int(done))
        except (TypeError, ValueError, AttributeError) as error:
            raise ConnectError(f'{offset!r} is not an offset of this connector: it needs "lsn" and "lsn_commit", whole numbers ({error}).') from None


class Confirmed:
    """Computes the LSN to confirm: the server may discard everything before `lsn`, and it will never be requested again.

    When `commit` is called, an offset may have been stored after the last fsync; two commits later it has survived a later fsync. Only such
    offsets advance `lsn`.
    """

    def __init__(self, position, lsn):
        self.lsn = lsn
        self.begin = position
        self._last = position.key if position is not None else None
        self._ends = []  # [(key of the last record before, LSN up to which nothing else exists)], in order
        self._seen = [None, None]  # offsets stored at the last two commits

    def emitted(self, position):
        self._last = position.key

    def done(self, lsn):
        """Nothing but emitted records precedes that LSN."""
        if self._ends and self._ends[-1][0] == self._last:
            self._ends[-1] = (self._last, lsn)
        else:
            self._ends.append((self._last, lsn))

    def commit(self, stored):
        """Handle a commit; `stored` is the Position stored by the worker, or None."""
        older, self._seen = self._seen[0], [self._seen[1], stored]
        if older is not None:
            self.reached(older)

    def reached(self, stored):
        """Advance `lsn`: that position is durable."""
        at = 0
        for key, lsn in self._ends:
            if key is None or key > stored.key:
                break
            self.lsn = max(self.lsn, lsn)
            at += 1
        del self._ends[:at]
