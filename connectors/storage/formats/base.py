"""What a format is.

`encode` makes of a batch what is cut up among the files of its partitions, for a whole batch at once: a ByteColumn of encoded records, or an
Arrow array. A `Writer` puts pieces of that into one file.
"""


class Format:
    extension = ""
    takes_nulls = False  # whether a null value can be written
    needs_schema = False  # whether values without a schema are given one

    def __init__(self, settings):
        self.settings = settings

    def encode(self, topic, schema, values, count):
        """(column, {row: error}): rows that are bad hold anything. `values` is an Arrow array as batches have for that schema; where the schema
        is None, the column as it is in the batch."""
        raise NotImplementedError

    def open(self, schema, spool):
        """A Writer of a file of that schema."""
        raise NotImplementedError


class Writer:
    memory = 0  # bytes that it holds beside the spool's

    def append(self, column):
        raise NotImplementedError

    def settle(self):
        """Move what is held in memory into the spool."""

    def finish(self):
        """The file is complete: all of it into the spool."""
        self.settle()
