"""docker: Docker's json-file logs. A message in parts becomes one record.

{"log":"message\\n","stream":"stdout","time":"2026-11-22T13:35:02.123456789Z"}
"""

import numpy as np
import orjson
import pyarrow as pa

from connectors.logs.formats import times
from connectors.logs.formats.format import Format
from connectors.logs.formats.slices import valid
from connectors.logs.formats.structs import TEXT, TIME, Fields, time_column
from connectors.logs.multiline import Rule

_FIELDS = Fields("ContainerLog", time=TIME, stream=TEXT, message=TEXT)


class Docker(Format):
    rule = Rule(ends=r'\\n",')  # the last part of a message ends with its line end

    def parse(self, column, is_begin=False):
        column = valid(column)
        rows = [_message(item) for item in column]
        is_parsed = np.array([row is not None for row in rows], bool)
        stamp, stream, message = ([None if row is None else row[at] for row in rows] for at in range(3))
        stamps = times.each_once(pa.array(stamp, pa.string()), times.iso)
        columns = [time_column(stamps), pa.array(stream, pa.string()), pa.array(message, pa.string())]
        return _FIELDS.parsed(lambda: column.to_arrow(text=True), columns, is_parsed, stamps)


def _message(item):
    """(time, stream, message) of a message in one or more lines; None if it is not valid."""
    try:
        parts = [orjson.loads(line) for line in item.split(b"\n")]
        text = "".join(part["log"] for part in parts)
        return parts[0].get("time"), parts[0].get("stream"), text.removesuffix("\n").removesuffix("\r")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
