"""Converts lines to records: topic, key, headers and timestamp, for a batch at once."""

import os
import re
import socket
import time

import numpy as np

from connectors.logs.compressed_file import first_bytes
from connectors.logs.encodings import to_utf8
from standalone import ByteColumn, ConfigError, ConnectError, Header, Schema, SourceBatch

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9._-]")
_PLACEHOLDER = re.compile(r"\$\{(file|folder|\d+)\}")


class Records:
    def __init__(self, settings, discovery, host=None):
        config = settings.config
        self._settings = settings
        self._discovery = discovery
        self._topic = config["topic"]
        self._has_key = config["key"] == "file"
        self._headers = config["headers"]
        self._unparsed = config["format.unparsed"]
        self._from_record = config["timestamp.from"] == "record"
        self._host = host or socket.gethostname()
        self.skipped = 0

    def batch(self, file, lines, more_follows):
        """A SourceBatch of these lines; None if it would be empty."""
        facts = file.facts or self._facts(file)
        first_line = file.line
        offset_of = file.offsets_of(lines)
        is_begin = lines.begins_file
        column = to_utf8(lines.data, lines.starts, lines.lengths, self._settings.encoding, is_begin)
        parsed = facts.reader.parse(column, is_begin)
        rows = parsed.rows
        if parsed.unparsed is not None and parsed.unparsed.any():
            rows = self._without_unparsed(file, column, parsed)
        count = len(column) if rows is None else len(rows)
        value, times = parsed.value, parsed.times
        now = time.time_ns() // 1_000_000
        stamps = np.full(count, now, np.int64)
        if self._from_record and times is not None:
            stamps = np.where(times >= 0, times, now).astype(np.int64)
        if not count:
            return None
        return SourceBatch(
            count,
            facts.topic,
            value,
            parsed.schema,
            key=ByteColumn.repeat(facts.key, count) if self._has_key else None,
            key_schema=Schema.STRING if self._has_key else None,
            source_partition=file.partition,
            offset_of=offset_of if rows is None else lambda row: offset_of(int(rows[row])),
            timestamps=stamps,
            headers=self._headers_of(facts, lines, first_line, rows, count) if self._headers else None,
            more_follows=more_follows,
        )

    def _without_unparsed(self, file, column, parsed):
        """Handle lines that do not match the format; return the numbers of the remaining lines, None for all."""
        at = int(np.flatnonzero(parsed.unparsed)[0])
        if self._unparsed == "keep":
            return parsed.rows
        text = column[at if parsed.rows is None else int(parsed.rows[at])].decode("utf-8", "replace")[:200]
        if self._unparsed == "fail":
            raise ConnectError(
                f"A line of '{file.path}' does not match the format '{self._settings.config['format']}': {text!r}. "
                "Set 'format.unparsed' to 'keep' or 'skip', or another 'format'."
            )
        keep = np.flatnonzero(~parsed.unparsed)
        self.skipped += len(parsed.unparsed) - len(keep)
        rows = keep if parsed.rows is None else parsed.rows[keep]
        value = parsed.value
        parsed.value = [value[row] for row in keep.tolist()] if isinstance(value, list) else value.take(keep)
        parsed.times = None if parsed.times is None else parsed.times[keep]
        return rows

    def _headers_of(self, facts, lines, first_line, rows, count):
        wanted = self._headers
        fixed = [Header(f"log.{name}", facts.header[name], Schema.STRING) for name in wanted if name in facts.header]
        if "offset" not in wanted and "line" not in wanted:
            return [tuple(fixed)] * count
        numbers = range(len(lines)) if rows is None else rows.tolist()
        columns = [[header] * count for header in fixed]
        if "offset" in wanted:
            starts = lines.positions()
            columns.append([Header("log.offset", starts[row], Schema.INT64) for row in numbers])
        if "line" in wanted:
            columns.append([Header("log.line", first_line + row + 1, Schema.INT64) for row in numbers])
        return list(zip(*columns))

    def _facts(self, file):
        file.facts = _Facts(
            self._topic_of(file.home),
            file.home.encode(errors="surrogateescape") if self._has_key else None,
            {"file": file.home.encode(errors="replace").decode(), "host": self._host} if self._headers else {},
            self._settings.format.reader(lambda: _first_line(file, self._settings)),
        )
        return file.facts

    def _topic_of(self, path):
        captures = self._discovery.captures(path)

        def stands_for(match):
            name = match[1]
            if name == "file":
                text = os.path.basename(path)
            elif name == "folder":
                text = os.path.basename(os.path.dirname(path))
            else:
                number = int(name)
                if not 1 <= number <= len(captures):
                    why = f"${{{name}}} is undefined for '{path}': the matching glob has {len(captures)} wildcards"
                    raise ConfigError.of({"topic": why})
                text = captures[number - 1]
            return _FORBIDDEN.sub("_", text)

        return _PLACEHOLDER.sub(stands_for, self._topic)[:249]


class _Facts:
    __slots__ = ("topic", "key", "header", "reader")

    def __init__(self, topic, key, header, reader):
        self.topic, self.key, self.header, self.reader = topic, key, header, reader


def _first_line(file, settings):
    """The first line of a file that is not read from its beginning, as UTF-8; for formats that need it."""
    limits = settings.limits()
    data = np.frombuffer(first_bytes(file.path, limits.line_bytes) or b"", np.uint8)
    starts, lengths, _ = limits.lines.split(data, 0, True)
    column = to_utf8(data, starts[:1], lengths[:1], settings.encoding, True)
    return column[0] if len(column) else b""
