"""Assemble a text per row from parts with separators, and lists from their items' texts."""

import numpy as np

from standalone.kernels import BYTES, FLAG, FLAGS, INTS, LONG, LONGS, compiled, copy, readonly, written
from standalone.wire import ByteColumn

BLOCK = 1024  # rows per block: about what fits the CPU cache
NOTHING = readonly(np.empty(0, np.uint8))


class Part:
    """A text per row: data[start : start + length], or side[~start : ...] if start is negative (a rewritten text), or none if length
    is -1. With `is_quoted` it is put in quotes.
    """

    __slots__ = ("data", "side", "starts", "lengths", "is_quoted")

    def __init__(self, data, side, starts, lengths, is_quoted=False):
        self.data, self.side = readonly(data), readonly(side)
        self.starts, self.lengths = readonly(starts), readonly(lengths)
        self.is_quoted = is_quoted


def assembled(count, absent, before, parts, behind):
    """Build rows of `before`, each part preceded by its text, and `behind`; no text where `absent`."""
    sizes = np.where(absent, -1, len(before) + len(behind)).astype(np.int64)
    for text, part, null in parts:
        _add_lengths(part.lengths, len(text), 2 * part.is_quoted, len(null), sizes)
    lengths = sizes.astype(np.int32)
    ends = np.cumsum(np.maximum(sizes, 0))
    starts = ends - np.maximum(sizes, 0)
    out = np.empty(int(ends[-1]) if count else 0, np.uint8)
    cursors = np.where(absent, -1, starts)
    texts = [(_frozen(text), part, _frozen(null)) for text, part, null in parts]
    before, behind = _frozen(before), _frozen(behind)
    for low in range(0, count, BLOCK):
        high = min(count, low + BLOCK)
        if len(before):
            _put_text(out, cursors, low, high, before)
        for text, part, null in texts:
            _put_part(out, cursors, low, high, text, part.data, part.side, part.starts, part.lengths, part.is_quoted, null)
        if len(behind):
            _put_text(out, cursors, low, high, behind)
    return ByteColumn(out, starts, lengths)


def joined(ends, valid, texts, inside, brackets, between, failed):
    """Build lists from their items' texts; a list with a failed item is marked."""
    count = len(ends) - 1
    if inside.any():
        bad = np.concatenate([[0], np.cumsum(inside)])
        failed |= valid & (bad[ends[1:]] > bad[ends[:-1]])
        valid = valid & ~failed
        texts = ByteColumn(texts.data, texts.starts, np.maximum(texts.lengths, 0))
    out = np.empty(texts.nbytes + len(texts) * len(between) + 2 * count, np.uint8)
    starts, lengths = np.empty(count, np.int64), np.empty(count, np.int32)
    arrays = (readonly(texts.data), readonly(texts.starts), readonly(texts.lengths))
    _join_items(readonly(ends), readonly(valid), *arrays, brackets[0], _frozen(between), brackets[1], out, starts, lengths)
    return Part(out, NOTHING, starts, lengths)


def _frozen(text):
    return readonly(np.frombuffer(text, np.uint8))


# --- Kernels -------------------------------------------------------------------------------------------------------


@compiled
def _add_lengths(lengths: INTS, before: LONG, quotes: LONG, null: LONG, sizes: written(LONGS)):
    """Add the size of a part and its preceding text to `sizes`; rows with negative size have no text."""
    for row in range(len(sizes)):
        if sizes[row] >= 0:
            sizes[row] += before + (null if lengths[row] < 0 else lengths[row] + quotes)


@compiled
def _put_part(
    out: written(BYTES), cursors: written(LONGS), low: LONG, high: LONG, before: BYTES, data: BYTES, side: BYTES, starts: LONGS,
    lengths: INTS, is_quoted: FLAG, null: BYTES,
):  # fmt: skip
    """Write `before` and the row's text at its cursor, for rows low to high."""
    for row in range(low, high):
        at = cursors[row]
        if at < 0:
            continue
        copy(out, at, before, 0, len(before))
        at += len(before)
        length = np.int64(lengths[row])
        if length < 0:
            copy(out, at, null, 0, len(null))
            at += len(null)
        else:
            if is_quoted:
                out[at] = 34
                at += 1
            if starts[row] >= 0:
                copy(out, at, data, starts[row], length)
            else:
                copy(out, at, side, ~starts[row], length)
            at += length
            if is_quoted:
                out[at] = 34
                at += 1
        cursors[row] = at


@compiled
def _put_text(out: written(BYTES), cursors: written(LONGS), low: LONG, high: LONG, text: BYTES):
    for row in range(low, high):
        if cursors[row] >= 0:
            copy(out, cursors[row], text, 0, len(text))
            cursors[row] += len(text)


@compiled
def _join_items(
    ends: LONGS, valid: FLAGS, data: BYTES, starts: LONGS, lengths: INTS, opening: LONG, between: BYTES, closing: LONG,
    out: written(BYTES), new_starts: written(LONGS), new_lengths: written(INTS),
):  # fmt: skip
    """Join items' texts to lists: item n is data[starts[n] : ...], list r has the items ends[r] to ends[r + 1]."""
    at = 0
    for row in range(len(ends) - 1):
        new_starts[row] = at
        new_lengths[row] = -1
        if not valid[row]:
            continue
        out[at] = opening
        at += 1
        for item in range(ends[row], ends[row + 1]):
            if item > ends[row]:
                copy(out, at, between, 0, len(between))
                at += len(between)
            length = np.int64(lengths[item])
            copy(out, at, data, starts[item], length)
            at += length
        out[at] = closing
        at += 1
        new_lengths[row] = at - new_starts[row]
    return at
