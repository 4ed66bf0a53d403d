"""Encodings of log files: how to find lines, and how to convert them to UTF-8. Invalid bytes are preserved where possible."""

import numpy as np

from connectors.logs.lines import DelimitedLines, FeedLines, WideLines
from standalone import ByteColumn

UTF8, UTF16, UTF16_LE, UTF16_BE, LATIN1 = "utf-8", "utf-16", "utf-16le", "utf-16be", "latin-1"
ENCODINGS = (UTF8, LATIN1, "windows-1252", "iso-8859-15", "ascii", UTF16_LE, UTF16_BE)

_BOM = {UTF8: b"\xef\xbb\xbf", UTF16_LE: b"\xff\xfe", UTF16_BE: b"\xfe\xff"}
_CODECS = {UTF16_LE: "utf-16-le", UTF16_BE: "utf-16-be"}


def lines_of(encoding, delimiter):
    """The line splitter of an encoding. The delimiter is a string, or None for LF and CR LF."""
    if delimiter is not None:
        return DelimitedLines(delimiter.encode(_CODECS.get(encoding, encoding)))
    return WideLines(encoding == UTF16_BE) if encoding in _CODECS else FeedLines


def to_utf8(data, starts, lengths, encoding, is_begin):
    """Lines as a ByteColumn of UTF-8, without a byte order mark at the beginning of the file and without NUL bytes before a line.

    A line begins with NUL bytes if the file was truncated while its writer kept its old position."""
    starts, lengths = _without_bom(data, starts, lengths, encoding) if is_begin else (starts, lengths)
    if encoding == UTF8:
        if len(starts) and not data[np.minimum(starts, len(data) - 1)].all():
            starts, lengths = _without_zeros(data, starts, lengths)
        return ByteColumn(data, starts, lengths)
    codec = _CODECS.get(encoding, encoding)
    column = ByteColumn(data, starts, lengths)
    if codec == LATIN1 and not (data & 0x80).any():
        return column
    return ByteColumn.of([item.decode(codec, "replace").lstrip("\0").encode("utf-8", "replace") for item in column])


def _without_bom(data, starts, lengths, encoding):
    mark = _BOM.get(encoding)
    if mark and len(starts) and data[int(starts[0]) : int(starts[0]) + len(mark)].tobytes() == mark and lengths[0] >= len(mark):
        starts, lengths = starts.copy(), lengths.copy()
        starts[0] += len(mark)
        lengths[0] -= len(mark)
    return starts, lengths


def _without_zeros(data, starts, lengths):
    starts, lengths = starts.copy(), lengths.copy()
    for row in np.flatnonzero((data[np.minimum(starts, len(data) - 1)] == 0) & (lengths > 0)).tolist():
        line = data[starts[row] : starts[row] + lengths[row]]
        text = np.flatnonzero(line)
        zeros = int(text[0]) if len(text) else len(line)
        starts[row] += zeros
        lengths[row] -= zeros
    return starts, lengths
