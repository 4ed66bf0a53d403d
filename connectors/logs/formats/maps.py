"""Formats in which each line names its fields: json and logfmt. Records are maps without a schema."""

import re

import numpy as np
import orjson

from connectors.logs.formats import times
from connectors.logs.formats.parsed import Parsed
from connectors.logs.formats.structs import UNPARSED
from standalone import ByteColumn

_TIME_FIELDS = ("time", "timestamp", "@timestamp", "ts")
_PAIR = re.compile(r'([^\s="]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?(?:\s+|$)')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class _Maps:
    rule = None

    def __init__(self, config):
        self._needs_times = config["timestamp.from"] == "record"

    def reader(self, head):
        return self

    def parse(self, column, is_begin=False):
        values = [self.one(item) for item in column]
        unparsed = np.array([value is None for value in values], bool)
        if unparsed.any():
            for row in np.flatnonzero(unparsed).tolist():
                values[row] = {UNPARSED: column[row].decode("utf-8", "replace")}
        return Parsed(values, None, _times(values) if self._needs_times else None, None, unparsed)


class Json(_Maps):
    """json: one object per line."""

    @staticmethod
    def one(item):
        try:
            value = orjson.loads(item)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


class Logfmt(_Maps):
    """logfmt: level=info msg="it is so" took=5ms; values are strings, a name alone is true."""

    @staticmethod
    def one(item):
        text = item.decode("utf-8", "replace").strip()
        found, at = {}, 0
        while at < len(text):
            match = _PAIR.match(text, at)
            if match is None:
                return None
            name, quoted, plain = match.groups()
            if quoted is not None:
                found[name] = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted) if "\\" in quoted else quoted
            else:
                found[name] = True if plain is None else plain
            at = match.end()
        return found if any(value is not True for value in found.values()) else None


def _times(values):
    """The usual timestamp fields: a string, or seconds or milliseconds since the epoch."""
    told = [next((value[name] for name in _TIME_FIELDS if name in value), None) for value in values]
    texts = ByteColumn.of([each.encode() if isinstance(each, str) else b"" for each in told])
    stamps = times.iso(texts.data, texts.starts, texts.lengths)
    for row, each in enumerate(told):
        if isinstance(each, (int, float)) and not isinstance(each, bool) and 0 <= each < 1e14:
            stamps[row] = int(each) if each >= 1e11 else int(each * 1000)
    return stamps
