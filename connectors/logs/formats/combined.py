"""combined: access logs of nginx and Apache; also the common format, which lacks the last two fields.

10.0.0.1 - ann [22/Nov/2026:13:35:02 +0000] "GET /a?b=1 HTTP/1.1" 200 512 "http://example.com/" "curl/8"
"""

import re

import numpy as np
import pyarrow as pa

from connectors.logs.formats import times
from connectors.logs.formats.format import Format
from connectors.logs.formats.slices import Places, given, numbers, texts, valid
from connectors.logs.formats.structs import INT, LONG, TEXT, TIME, Fields, time_column

_FIELDS = Fields(
    "AccessLog", remote=TEXT, ident=TEXT, user=TEXT, time=TIME, method=TEXT, path=TEXT, protocol=TEXT, status=INT, bytes=LONG,
    referer=TEXT, agent=TEXT,
)  # fmt: skip

# The same for lines that hold quotes within quotes, one by one.
_LINE = re.compile(
    rb'(\S+) (\S+) (.*?) \[([^\]]*)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?(?: .*)?', re.DOTALL
)


class Combined(Format):
    def parse(self, column, is_begin=False):
        column = valid(column)
        data, starts, lengths = column.data, column.starts, column.lengths
        ends = starts + lengths
        quotes, blanks = Places(column, '"'), Places(column, " ")
        first, second, third, fourth, fifth, sixth = (quotes.nth(number) for number in range(6))
        opened = Places(column, "[").behind(starts)
        closed = Places(column, "]").behind(opened)
        host_end = blanks.nth(0)
        ident_end = blanks.nth(1)
        bytes_begin = blanks.behind(second + 2) + 1
        is_full = quotes.count == 6
        bytes_end = np.where(is_full, third - 1, ends)
        plain = (is_full | (quotes.count == 2)) & (ident_end >= 0) & (opened > ident_end) & (closed > opened) & (first == closed + 2)
        plain &= (bytes_begin > 0) & (bytes_end > bytes_begin) & (~is_full | (fifth == fourth + 2))
        odd = np.flatnonzero(~plain)
        slices = {
            "remote": (starts, host_end), "ident": (host_end + 1, ident_end), "user": (ident_end + 1, opened - 1), "time": (opened + 1, closed),
            "request": (first + 1, second), "status": (second + 2, bytes_begin - 1), "bytes": (bytes_begin, bytes_end),
            "referer": (third + 1, fourth), "agent": (fifth + 1, sixth),
        }  # fmt: skip
        slices = {name: [np.array(low), np.array(high)] for name, (low, high) in slices.items()}
        is_parsed, has_agent = plain.copy(), plain & is_full
        for row in odd.tolist():
            match = _LINE.fullmatch(column[row])
            if match is not None:
                is_parsed[row], has_agent[row] = True, match[8] is not None
                for number, name in enumerate(slices, 1):
                    slices[name][0][row], slices[name][1][row] = starts[row] + match.start(number), starts[row] + match.end(number)
        low, high = slices["time"]
        stamps = times.each_once(texts(data, low, high, is_parsed), times.of_access_logs)
        is_parsed &= stamps >= 0
        has_agent &= is_parsed
        columns = {name: texts(data, *slices[name], is_parsed) for name in ("remote", "ident", "user", "status", "bytes")}
        columns |= {name: texts(data, *slices[name], has_agent) for name in ("referer", "agent")}
        method, path, protocol = self._request(data, *slices["request"], blanks, is_parsed)
        values = [
            columns["remote"], given(columns["ident"]), given(columns["user"]), time_column(np.where(is_parsed, stamps, -1)), method, path, protocol,
            numbers(columns["status"], pa.int32()), numbers(columns["bytes"], pa.int64()), given(columns["referer"]), given(columns["agent"]),
        ]  # fmt: skip
        return _FIELDS.parsed(lambda: column.to_arrow(text=True), values, is_parsed, np.where(is_parsed, stamps, -1))

    def _request(self, data, low, high, blanks, is_parsed):
        """Method, path and protocol; any other request is stored in path."""
        one = blanks.behind(np.where(is_parsed, low, -1))
        two = blanks.before(np.where(is_parsed, high, -1))
        has_method = is_parsed & (one > low) & (one < high)
        has_protocol = has_method & (two > one)
        path_low = np.where(has_method, one + 1, low)
        path_high = np.where(has_protocol, two, high)
        return texts(data, low, one, has_method), texts(data, path_low, path_high, is_parsed), texts(data, two + 1, high, has_protocol)
