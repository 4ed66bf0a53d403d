"""csv: separated values, quoted if they contain a separator. Column names are configured, or taken from a file's first line."""

import csv

import numpy as np
import pyarrow as pa

from connectors.logs.formats.structs import TEXT, UNPARSED, Fields
from standalone import ConfigError


class Csv:
    rule = None

    def __init__(self, config):
        self.separator = config["csv.separator"]
        self.columns = config["csv.columns"]
        if len(self.separator) != 1:
            raise ConfigError.of({"csv.separator": f"must be one character, not '{self.separator}'"})
        if UNPARSED in self.columns or len(set(self.columns)) < len(self.columns):
            raise ConfigError.of({"csv.columns": f"must be distinct, and none may be '{UNPARSED}'"})

    def reader(self, head):
        return _Reader(self, head)


class _Reader:
    """Of one file."""

    def __init__(self, format, head):
        self._format = format
        self._head = head
        self._fields = _fields(format.columns) if format.columns else None

    def parse(self, column, is_begin=False):
        lines = [item.decode("utf-8", "replace") for item in column]
        has_header = is_begin and not self._format.columns
        if self._fields is None:
            first = lines[0] if has_header else self._head().decode("utf-8", "replace")
            self._fields = _fields(_values(first, self._format.separator))
        rows = [_values(line, self._format.separator) for line in lines[has_header:]]
        count = len(self._fields.kinds)
        is_parsed = np.array([len(row) == count for row in rows], bool)
        empty = [None] * count
        columns = list(zip(*(row if good else empty for row, good in zip(rows, is_parsed)))) or [()] * count
        arrays = [pa.array(values, pa.string()) for values in columns]
        parsed = self._fields.parsed(lambda: pa.array(lines[has_header:], pa.string()), arrays, is_parsed)
        if has_header:
            parsed.rows = np.arange(1, len(lines))
        return parsed


def _fields(names):
    unique = {}
    for at, name in enumerate(names, 1):
        name = name.strip() or f"column{at}"
        unique[name if name not in unique and name != UNPARSED else f"{name}{at}"] = TEXT
    return Fields("CsvLine", **unique)


def _values(line, separator):
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []
