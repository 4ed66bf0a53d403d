"""Where in the database's changes a record stands: source offsets, and what the server may forget.

A transaction's changes come together, after its commit, and transactions in the order of their commits. So a place is "after that many messages
of the first transaction that ends after this LSN": the server sends whole transactions, and those messages are left out.
"""

from dataclasses import dataclass

from standalone import ConnectError

INITIAL = "INITIAL"


@dataclass(frozen=True)
class Position:
    commit: int  # the LSN after the last transaction that is done
    event: int = 0  # messages of the one that follows that are done
    xid: int | None = None  # that one's
    is_snapshot: bool = False  # in the rows, before any change
    is_complete: bool = True  # of a snapshot: whether its last row was it
    upto_lsn: int | None = None  # in place of `event`, of an offset that Debezium's connector has stored

    @property
    def key(self):
        """Positions in their order."""
        return self.commit, -1 if self.is_snapshot and not self.is_complete else self.event

    def offset(self, lsn=None, micros=None, kind=None):
        """As it is stored; the names are Debezium's, `event` is ours."""
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
        """Of a stored offset, ours or Debezium's. Raises ConnectError where it is none."""
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
    """What the server may forget: all before `lsn`. Nothing of it is asked for again, whatever happens to us.

    An offset that is stored when `commit` is called may have been stored after the sync that is told by it; at the second call behind, it has
    outlived a sync that began later. `lsn` moves by those alone.
    """

    def __init__(self, position, lsn):
        self.lsn = lsn
        self.begin = position
        self._last = position.key if position is not None else None
        self._ends = []  # [(key of the last record before, LSN up to which nothing else is there)], in order
        self._seen = [None, None]  # offsets stored at the last two commits

    def emitted(self, position):
        self._last = position.key

    def done(self, lsn):
        """Nothing comes before that LSN but what was emitted."""
        if self._ends and self._ends[-1][0] == self._last:
            self._ends[-1] = (self._last, lsn)
        else:
            self._ends.append((self._last, lsn))

    def commit(self, stored):
        """`stored` is the Position that the worker has stored, or None."""
        older, self._seen = self._seen[0], [self._seen[1], stored]
        if older is not None:
            self.reached(older)

    def reached(self, stored):
        """That position is stored for good."""
        at = 0
        for key, lsn in self._ends:
            if key is None or key > stored.key:
                break
            self.lsn = max(self.lsn, lsn)
            at += 1
        del self._ends[:at]
