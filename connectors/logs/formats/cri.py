"""cri: the logs of container runtimes for Kubernetes. A message in parts (P … F) becomes one record.

2026-11-22T13:35:02.123456789Z stdout F message
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.logs.formats import times
from connectors.logs.formats.format import Format
from connectors.logs.formats.slices import valid
from connectors.logs.formats.structs import TEXT, TIME, Fields, time_column
from connectors.logs.multiline import Rule

_FIELDS = Fields("ContainerLog", time=TIME, stream=TEXT, message=TEXT)
_PART = r"^\S+ \S+ P(?::\S*)? "
_LINE = r"(?s)^(?P<time>\S+) (?P<stream>stdout|stderr) [PF](?::\S*)? ?(?P<message>.*)$"
_NEXT = re.compile(r"\r?\n\S+ \S+ [PF](?::\S*)? ?")


class Cri(Format):
    rule = Rule(carries_on=_PART)

    def parse(self, column, is_begin=False):
        lines = valid(column).to_arrow(text=True).cast(pa.string())
        found = pc.extract_regex(lines, _LINE)
        stamps = times.each_once(pc.struct_field(found, "time"), times.iso)
        message = pc.struct_field(found, "message")
        if pc.any(pc.match_substring(message, "\n")).as_py():
            message = pa.array([None if text is None else _NEXT.sub("", text) for text in message.to_pylist()], pa.string())
        is_parsed = found.is_valid().to_numpy(zero_copy_only=False) & (stamps >= 0)
        columns = [time_column(stamps), pc.struct_field(found, "stream"), message]
        return _FIELDS.parsed(lambda: lines, columns, np.array(is_parsed), stamps)
