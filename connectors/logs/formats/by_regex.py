"""regex: a regular expression (RE2) with named groups, which become string fields."""

import re

import numpy as np
import pyarrow.compute as pc

from connectors.logs.formats.format import Format
from connectors.logs.formats.slices import valid
from connectors.logs.formats.structs import TEXT, Fields
from standalone import ConfigError


class ByRegex(Format):
    def __init__(self, config):
        self._pattern = config["format.regex"]
        if not self._pattern:
            raise ConfigError.of({"format.regex": "must be given for format=regex"})
        names = re.findall(r"\(\?P?<(\w+)>", self._pattern)
        if not names:
            raise ConfigError.of({"format.regex": f"'{self._pattern}' has no named group, as in (?P<level>\\w+)"})
        self._fields = Fields("LogLine", **dict.fromkeys(names, TEXT))

    def parse(self, column, is_begin=False):
        column = valid(column)
        return extracted(column, self._pattern, self._fields)


def extracted(column, pattern, fields, change=None):
    """The text of the pattern's groups, as those fields; `change(columns)` returns (columns, times) of the strings."""
    lines = column.to_arrow(text=True)
    found = pc.extract_regex(lines, pattern)
    is_parsed = found.is_valid().to_numpy(zero_copy_only=False)
    columns, times = [pc.struct_field(found, at) for at in range(found.type.num_fields)], None
    if change is not None:
        columns, times = change(columns)
    return fields.parsed(lambda: lines, columns, np.array(is_parsed), times)
