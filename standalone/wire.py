"""Serialized records in columns: the interface between pipeline and log.

Neither knows anything else of the other. A `ByteColumn` is a sequence of byte strings, each a slice of one buffer, so lines of a file and
values of a fetched record batch are referenced without being copied.
"""

import numpy as np

from standalone import kernels

NULL = -1  # the length of a null, as in Kafka's protocol


class ByteColumn:
    """Byte strings as slices of one buffer: item i is data[starts[i] : starts[i] + lengths[i]], or None where lengths[i] is -1.

    The arrays are immutable. Slices may overlap, leave gaps and be in any order.
    """

    __slots__ = ("data", "starts", "lengths")

    def __init__(self, data, starts, lengths):
        self.data = data  # uint8
        self.starts = starts  # int64
        self.lengths = lengths  # int32

    @classmethod
    def of(cls, items):
        """From a list of bytes-like objects and Nones."""
        lengths = np.fromiter((NULL if item is None else len(item) for item in items), np.int32, len(items))
        ends = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
        data = np.frombuffer(b"".join(item for item in items if item is not None), np.uint8)
        return cls(data, ends - np.maximum(lengths, 0), lengths)

    @classmethod
    def repeat(cls, item, count):
        """The same bytes, or None, `count` times; stored once."""
        data = np.frombuffer(item or b"", np.uint8)
        length = NULL if item is None else len(item)
        return cls(data, np.zeros(count, np.int64), np.full(count, length, np.int32))

    @classmethod
    def from_arrow(cls, array):
        """From a binary, string or large_* Arrow array; shares its buffers."""
        import pyarrow as pa

        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        wide = array.type in (pa.large_binary(), pa.large_string())
        _, offsets, data = array.buffers()
        kind = np.int64 if wide else np.int32
        count = len(array)
        ends = np.frombuffer(offsets, kind)[array.offset : array.offset + count + 1].astype(np.int64) if offsets else np.zeros(count + 1, np.int64)
        lengths = np.diff(ends).astype(np.int32)
        if array.null_count:
            lengths[array.is_null().to_numpy(zero_copy_only=False)] = NULL
        return cls(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), ends[:-1], lengths)

    def to_arrow(self, text=False):
        """As an Arrow array of strings (the bytes must be UTF-8) or bytes; copies into one gapless buffer."""
        import pyarrow as pa

        packed = self.compact()
        count = len(packed)
        valid = None
        nulls = int(np.count_nonzero(packed.lengths < 0))
        if nulls:
            valid = pa.py_buffer(np.packbits(packed.lengths >= 0, bitorder="little"))
        ends = np.zeros(count + 1, np.int64)
        np.cumsum(np.maximum(packed.lengths, 0), out=ends[1:])
        kind = pa.large_string() if text else pa.large_binary()
        if ends[-1] < 1 << 31:
            ends, kind = ends.astype(np.int32), pa.string() if text else pa.binary()
        buffers = [valid, pa.py_buffer(ends), pa.py_buffer(packed.data)]
        return pa.Array.from_buffers(kind, count, buffers, nulls)

    def compact(self):
        """A copy with the items contiguous in a buffer of its own."""
        sizes = np.maximum(self.lengths, 0)
        ends = np.cumsum(sizes, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        starts = ends - sizes
        if total == len(self.data) and np.array_equal(starts, self.starts):
            return self
        out = np.empty(total, np.uint8)
        kernels.gather(self.data, self.starts, self.lengths, out)
        return ByteColumn(out, starts, self.lengths)

    def join(self, ending, null):
        """All items as one uint8 array, each followed by the bytes `ending`; nulls become the bytes `null`."""
        nulls = int(np.count_nonzero(self.lengths < 0))
        out = np.empty(self.nbytes + nulls * len(null) + len(self) * len(ending), np.uint8)
        kernels.join(self.data, self.starts, self.lengths, np.frombuffer(ending, np.uint8), np.frombuffer(null, np.uint8), out)
        return out

    def slice(self, low, high):
        return ByteColumn(self.data, self.starts[low:high], self.lengths[low:high])

    def take(self, rows):
        return ByteColumn(self.data, self.starts[rows], self.lengths[rows])

    @property
    def nbytes(self):
        """The total bytes of all items."""
        return int(np.maximum(self.lengths, 0).sum(dtype=np.int64))

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, row):
        length = int(self.lengths[row])
        if length < 0:
            return None
        start = int(self.starts[row])
        return self.data[start : start + length].tobytes()

    def __iter__(self):
        data = memoryview(self.data)
        for start, length in zip(self.starts.tolist(), self.lengths.tolist()):
            yield None if length < 0 else bytes(data[start : start + length])

    def __eq__(self, other):
        return isinstance(other, ByteColumn) and list(self) == list(other)

    __hash__ = None

    def __repr__(self):
        return f"ByteColumn({len(self)} items, {self.nbytes} bytes)"


def concat(columns):
    """Concatenate ByteColumns, of the same or different buffers."""
    columns = list(columns)
    if len(columns) == 1:
        return columns[0]
    if all(column.data is columns[0].data for column in columns):
        data, bases = columns[0].data, [0] * len(columns)
    else:
        columns = [column.compact() for column in columns]
        bases = np.cumsum([0] + [len(column.data) for column in columns[:-1]]).tolist()
        data = np.concatenate([column.data for column in columns])
    starts = np.concatenate([column.starts + base for column, base in zip(columns, bases)])
    return ByteColumn(data, starts, np.concatenate([column.lengths for column in columns]))


CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE = 0, 1, -1
NO_TIMESTAMP = -1


class Records:
    """Serialized records, one column per part. A column that is None is null (keys, values), unset (timestamps) or empty (headers) in every row."""

    __slots__ = ("count", "keys", "values", "timestamps", "headers", "offsets", "timestamp_type", "_nbytes")

    def __init__(self, count, keys=None, values=None, timestamps=None, headers=None, offsets=None, timestamp_type=CREATE_TIME):
        self.count = count
        self.keys = keys  # ByteColumn | None
        self.values = values  # ByteColumn | None
        self.timestamps = timestamps  # int64 array of milliseconds, -1 is unset | None
        self.headers = headers  # list of [(name, bytes | None), ...] or None per row | None
        self.offsets = offsets  # int64 array | None: not in a log yet
        self.timestamp_type = timestamp_type
        self._nbytes = None

    def __len__(self):
        return self.count

    def slice(self, low, high):
        return self._rows(slice(low, high), len(range(*slice(low, high).indices(self.count))))

    def take(self, rows):
        return self._rows(rows, len(rows))

    def _rows(self, rows, count):
        by_slice = isinstance(rows, slice)

        def pick(column):
            if column is None:
                return None
            if isinstance(column, ByteColumn):
                return ByteColumn(column.data, column.starts[rows], column.lengths[rows])
            if isinstance(column, list):
                return column[rows] if by_slice else [column[row] for row in rows]
            return column[rows]

        return Records(
            count,
            pick(self.keys),
            pick(self.values),
            pick(self.timestamps),
            pick(self.headers),
            pick(self.offsets),
            self.timestamp_type,
        )

    @property
    def nbytes(self):
        """Approximate size in bytes, to bound queues."""
        if self._nbytes is None:
            self._nbytes = self._measured()
        return self._nbytes

    def _measured(self):
        size = 12 * self.count
        for column in (self.keys, self.values):
            size += column.nbytes if column is not None else 0
        if self.headers is not None:
            size += sum(len(name) + len(value or b"") for row in self.headers if row for name, value in row)
        return size
