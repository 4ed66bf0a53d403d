"""The interface of file formats.

`encode` converts a whole batch to a ByteColumn of encoded records, or to an Arrow array, which is then split among the files. A `Writer` writes
the pieces to one file.
"""


class Format:
    extension = ""
    takes_nulls = False  # whether null values can be written
    needs_schema = False  # whether a schema is inferred for schemaless values

    def __init__(self, settings):
        self.settings = settings

    def encode(self, topic, schema, values, count):
        """Return (column, {row: error}); bad rows have undefined content. `values` is the batch's Arrow array for the schema; without a
        schema it is the batch's column."""
        raise NotImplementedError

    def open(self, schema, spool):
        """Return a Writer for a file of that schema."""
        raise NotImplementedError


class Writer:
    memory = 0  # bytes buffered besides the spool's

    def append(self, column):
        raise NotImplementedError

    def settle(self):
        """Move buffered data to the spool."""

    def finish(self):
        """Complete the file: write everything to the spool."""
        self.settle()
