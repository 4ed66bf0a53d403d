"""ORC, by pyarrow's encoder.

ORC has no time of day: it becomes int32 milliseconds. A point in time becomes a `timestamp` without zone, in UTC, as Hive writes it: Spark reads
ORC's "timestamp with local time zone" as a different type than it writes, and Hive 2 cannot read it.
"""

import numpy as np
import pyarrow as pa

from connectors.storage.formats.base import Format
from connectors.storage.formats.parquet import Columns, must_be_structs
from connectors.storage.lake_types import WITHOUT_ZONES, lake_schema, rows_to_lake


class OrcFormat(Format):
    extension = ".orc"
    needs_schema = True

    def encode(self, topic, schema, values, count):
        must_be_structs(schema, "ORC")
        return rows_to_lake(values, schema, WITHOUT_ZONES)

    def open(self, schema, spool):
        return OrcFile(lake_schema(schema, WITHOUT_ZONES), spool, self.settings["orc.codec"])


class OrcFile(Columns):
    def __init__(self, schema, spool, codec):
        super().__init__(schema, spool)
        self._codec = codec

    def _opened(self):
        from pyarrow import orc

        return orc.ORCWriter(pa.PythonFile(self._spool, mode="w"), compression=self._codec)

    def _write(self, table):
        # Copied: for slices of nested structs, pyarrow's ORC writer (26.0) takes the inner values from the wrong rows.
        self._file.write(table.take(np.arange(len(table))))
