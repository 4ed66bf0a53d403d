"""What most formats have in common: no lines that belong together, and nothing to learn from a file's first line."""


class Format:
    """One of a configuration; of a file that is read it gives the reader, which is itself."""

    rule = None

    def __init__(self, config):
        pass

    def reader(self, head):
        return self

    def parse(self, column, is_begin=False):
        raise NotImplementedError(f"{type(self).__name__} must define parse")
