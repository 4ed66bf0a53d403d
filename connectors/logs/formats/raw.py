"""raw: a line is a string."""

from connectors.logs.formats.format import Format
from connectors.logs.formats.parsed import Parsed
from standalone import Schema


class Raw(Format):
    def parse(self, column, is_begin=False):
        return Parsed(column, Schema.STRING)
