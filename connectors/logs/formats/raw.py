"""raw: a line is a text."""

from connectors.logs.formats.parsed import Parsed
from standalone import Schema


class Raw:
    rule = None

    def __init__(self, config):
        pass

    def reader(self, head):
        return self

    def parse(self, column, is_begin=False):
        return Parsed(column, Schema.STRING)
