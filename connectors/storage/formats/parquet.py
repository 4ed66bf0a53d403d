"""Parquet: by pyarrow's encoder, with a single row group if memory allows."""

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.storage.formats.base import Format, Writer
from connectors.storage.lake_types import lake_schema, rows_to_lake
from standalone import DataError

_CODECS = {"none": "NONE", "lz4": "LZ4"}
GROUP_BYTES = 64 << 20  # in memory; the unit that readers process


def must_be_structs(schema, name):
    if schema.type != "struct":
        raise DataError(
            f"{name} files need structs, but the values have the type {schema.type}. Wrap them with HoistField, or choose another format."
        )


class ParquetFormat(Format):
    needs_schema = True

    def __init__(self, settings):
        super().__init__(settings)
        self._codec = settings["parquet.codec"]
        in_name = settings["codec.in.name"] and self._codec != "none"
        self.extension = (f".{self._codec}" if in_name else "") + ".parquet"

    def encode(self, topic, schema, values, count):
        must_be_structs(schema, "Parquet")
        return rows_to_lake(values, schema)

    def open(self, schema, spool):
        return ParquetFile(lake_schema(schema), spool, _CODECS.get(self._codec, self._codec))


class Columns(Writer):
    """Collects columns until they fill a row group."""

    def __init__(self, schema, spool):
        self._schema, self._spool = schema, spool
        self._pieces, self.memory = [], 0
        self._file = None

    def append(self, column):
        self._pieces.append(column)
        self.memory += column.nbytes
        if self.memory >= GROUP_BYTES:
            self.settle()

    def settle(self):
        if self._pieces:
            self._written(self._table())
            self._pieces, self.memory = [], 0

    def _table(self):
        columns = [[piece.field(at) for at in range(piece.type.num_fields)] for piece in self._pieces]
        return pa.Table.from_batches([pa.RecordBatch.from_arrays(each, schema=self._schema) for each in columns], self._schema)

    def _written(self, table):
        if self._file is None:
            self._file = self._opened()
        self._write(table)

    def finish(self):
        self.settle()
        if self._file is not None:
            self._file.close()


class ParquetFile(Columns):
    def __init__(self, schema, spool, codec):
        super().__init__(schema, spool)
        self._codec = codec

    def _opened(self):
        # Spark and Hive read dates and times of this version; page indexes let them skip data.
        return pq.ParquetWriter(pa.PythonFile(self._spool, mode="w"), self._schema, compression=self._codec, version="2.6", write_page_index=True)

    def _write(self, table):
        self._file.write_table(table, row_group_size=max(1, len(table)))
