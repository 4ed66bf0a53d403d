"""ORC, by pyarrow's encoder. It has no type for a time of day: that is written as int32, in milliseconds."""

import numpy as np
import pyarrow as pa

from connectors.storage.formats.base import Format
from connectors.storage.formats.parquet import Columns, must_be_structs
from connectors.storage.lake_types import lake_schema, to_lake


class OrcFormat(Format):
    extension = ".orc"
    needs_schema = True

    def encode(self, topic, schema, values, count):
        must_be_structs(schema, "ORC")
        return to_lake(values, schema, has_times=False), {}

    def open(self, schema, spool):
        return OrcFile(lake_schema(schema, has_times=False), spool, self.settings["orc.codec"])


class OrcFile(Columns):
    def __init__(self, schema, spool, codec):
        super().__init__(schema, spool)
        self._codec = codec

    def _opened(self):
        from pyarrow import orc

        return orc.ORCWriter(pa.PythonFile(self._spool, mode="w"), compression=self._codec)

    def _write(self, table):
        # Copied: of a slice of structs within structs pyarrow's ORC writer (26.0) takes the inner values from the wrong rows.
        self._file.write(table.take(np.arange(len(table))))
