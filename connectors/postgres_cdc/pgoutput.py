"""Parse pgoutput messages: https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html (protocol version 1).

`decode(data)` returns one of the tuples below, or None for messages without rows (origin, type). Values are strings in PostgreSQL's text
format; an unchanged value stored separately (TOAST) is UNCHANGED.
"""

import struct
from typing import NamedTuple

_EPOCH_MICROS = 946_684_800_000_000  # 2000-01-01, PostgreSQL's epoch


class _Unchanged:
    def __repr__(self):
        return "UNCHANGED"


UNCHANGED = _Unchanged()
INSERT, UPDATE, DELETE = "I", "U", "D"


class Begin(NamedTuple):
    final_lsn: int  # LSN of its commit record
    micros: int  # time of the commit, since 1970
    xid: int


class Commit(NamedTuple):
    commit_lsn: int
    end_lsn: int  # after the whole transaction: the next one begins here


class RelationColumn(NamedTuple):
    name: str
    type_oid: int
    modifier: int
    is_key: bool  # part of the replica identity


class Relation(NamedTuple):
    oid: int
    schema: str
    table: str
    identity: str  # d(efault), n(othing), f(ull), i(ndex)
    columns: tuple


class Change(NamedTuple):
    kind: str  # INSERT, UPDATE, DELETE
    relation: int
    old: list | None
    old_is_key: bool  # whether `old` has only the columns of the replica identity
    new: list | None


class Truncate(NamedTuple):
    relations: tuple


class Message(NamedTuple):
    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


def decode(data):
    """Decode one message."""
    made = _DECODERS.get(data[0])
    return made(data) if made is not None else None


def _begin(data):
    lsn, micros, xid = struct.unpack_from(">QqI", data, 1)
    return Begin(lsn, micros + _EPOCH_MICROS, xid)


def _commit(data):
    _, lsn, end, _ = struct.unpack_from(">BQQq", data, 1)
    return Commit(lsn, end)


def _relation(data):
    (oid,) = struct.unpack_from(">I", data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity, count = struct.unpack_from(">cH", data, at)
    at += 3
    columns = []
    for _ in range(count):
        is_key = data[at] & 1
        name, at = _text(data, at + 1)
        type_oid, modifier = struct.unpack_from(">Ii", data, at)
        columns.append(RelationColumn(name, type_oid, modifier, bool(is_key)))
        at += 8
    return Relation(oid, schema or "pg_catalog", table, identity.decode(), tuple(columns))


def _insert(data):
    new, _ = _row(data, 6)
    return Change(INSERT, int.from_bytes(data[1:5], "big"), None, False, new)


def _update(data):
    old, at, mark = None, 5, data[5]
    if mark in b"KO":
        old, at = _row(data, 6)
    new, _ = _row(data, at + 1)
    return Change(UPDATE, int.from_bytes(data[1:5], "big"), old, mark == ord("K"), new)


def _delete(data):
    old, _ = _row(data, 6)
    return Change(DELETE, int.from_bytes(data[1:5], "big"), old, data[5] == ord("K"), None)


def _truncate(data):
    count, _ = struct.unpack_from(">IB", data, 1)
    return Truncate(struct.unpack_from(f">{count}I", data, 6))


def _message(data):
    flags, lsn = struct.unpack_from(">BQ", data, 1)
    prefix, at = _text(data, 10)
    (size,) = struct.unpack_from(">I", data, at)
    return Message(bool(flags & 1), lsn, prefix, data[at + 4 : at + 4 + size])


_DECODERS = {
    ord("B"): _begin, ord("C"): _commit, ord("R"): _relation, ord("I"): _insert, ord("U"): _update, ord("D"): _delete, ord("T"): _truncate,
    ord("M"): _message,
}  # fmt: skip


def _text(data, at):
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _row(data, at):
    """Return (strings, end position)."""
    count = int.from_bytes(data[at : at + 2], "big")
    at += 2
    values = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 0x74:  # t: text
            size = int.from_bytes(data[at : at + 4], "big")
            at += 4
            values.append(data[at : at + size].decode())
            at += size
        else:
            values.append(None if kind == 0x6E else UNCHANGED)
    return values, at
