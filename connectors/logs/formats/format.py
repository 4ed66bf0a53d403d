"""The base of most formats: one line is one record, and a file's first line has no special meaning."""


class Format:
    """One per configuration; `reader` returns the format itself for each file."""

    rule = None

    def __init__(self, config):
        pass

    def reader(self, head):
        return self

    def parse(self, column, is_begin=False):
        raise NotImplementedError(f"{type(self).__name__} must define parse")
