"""syslog: RFC 5424 and RFC 3164, line by line, in files (without a priority) and on the wire.

<34>1 2026-11-22T13:35:02.003Z host su 201 ID47 [x@1 a="b"] message        Nov 22 13:35:02 host su[201]: message
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.logs.formats import times
from connectors.logs.formats.format import Format
from connectors.logs.formats.slices import given, numbers, valid
from connectors.logs.formats.structs import INT, TEXT, TIME, Fields, time_column

_FIELDS = Fields(
    "Syslog", facility=INT, severity=INT, time=TIME, host=TEXT, app=TEXT, process=TEXT, message_id=TEXT, data=TEXT, message=TEXT
)  # fmt: skip
_NEW = (
    r"(?s)^(?:<(?P<pri>\d{1,3})>)?1 (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<process>\S+) (?P<id>\S+) "
    r'(?P<data>-|(?:\[[^\]"]*(?:"(?:[^"\\]|\\.)*"[^\]"]*)*\])+)(?: (?:\x{FEFF})?(?P<message>.*))?$'
)
_OLD = (
    r"(?s)^(?:<(?P<pri>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*) "
    r"(?P<host>[^\s:]+) (?:(?P<app>[^\s:\[]+)(?:\[(?P<process>[^\]]*)\])?: ?)?(?P<message>.*)$"
)


class Syslog(Format):
    def parse(self, column, is_begin=False):
        lines = valid(column).to_arrow(text=True).cast(pa.string())
        new, old = pc.extract_regex(lines, _NEW), pc.extract_regex(lines, _OLD)
        is_new = new.is_valid()
        count = len(lines)
        nothing = pa.nulls(count, pa.string())
        pri = _number(pc.if_else(is_new, _group(new, "pri"), _group(old, "pri")))
        priority = pri.to_numpy(zero_copy_only=False) if not pri.null_count else pri.fill_null(-1).to_numpy()
        known = (priority >= 0) & (priority <= 191)
        facility = pa.array(np.where(known, priority >> 3, 0).astype(np.int32), mask=~known)
        severity = pa.array(np.where(known, priority & 7, 0).astype(np.int32), mask=~known)
        stamps = times.each_once(pc.if_else(is_new, _group(new, "time"), _group(old, "time")), times.iso)
        if (stamps < 0).any():
            stamps = np.where(stamps < 0, times.bsd(pc.if_else(is_new, nothing, _group(old, "time"))), stamps)
        both = [pc.if_else(is_new, given(_group(new, name)), _group(old, name)) for name in ("host", "app", "process")]
        both = [given(each, "") for each in both]
        only_new = [given(pc.if_else(is_new, _group(new, name), nothing)) for name in ("id", "data")]
        message = pc.if_else(is_new, _group(new, "message"), _group(old, "message"))
        is_parsed = pc.or_(is_new, old.is_valid()).to_numpy(zero_copy_only=False)
        columns = [facility, severity, time_column(stamps), *both, *only_new, message]
        return _FIELDS.parsed(lambda: lines, columns, np.array(is_parsed), stamps)


def _group(found, name):
    return pc.struct_field(found, name)


def _number(texts):
    return numbers(given(texts, ""), pa.int32())
