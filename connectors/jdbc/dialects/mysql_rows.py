"""Read the rows of a query from MySQL's protocol as columns. PyMySQL starts the query; on its own it would build a tuple for each row.

A row is one packet (three bytes of length, one of sequence number), or several if it is long. A packet has the length and text of each column's
value. The last packet ends the rows or reports an error.
"""

import numpy as np

from standalone import ByteColumn

_HEADER = 4
_LONGEST = 0xFFFFFF  # a packet of this length is followed by one with the rest of the row
_NULL, _ERROR, _END = 251, 255, 254
_WIDE = ((252, 2), (253, 3), (254, 8))  # first byte of a length -> bytes that follow
_BATCH_BYTES = 1 << 24  # a batch that reaches this has fewer rows
_READ_BYTES = 1 << 20
_LOST = 2013


def read(cursor, rows):
    """Yield (number of rows, a ByteColumn for each column) for batches of at most `rows` rows. An unbuffered cursor has started the query."""
    try:
        yield from _batches(cursor.connection, len(cursor.description), rows)
    finally:
        cursor._result.unbuffered_active = False  # otherwise the driver would look for the last packet


def _batches(connection, count, rows):
    import pymysql

    data, starts, at = bytearray(), [], 0

    def batch():
        return len(starts), _columns(bytes(memoryview(data)[:at]), starts, count)

    while True:
        if starts and (len(starts) == rows or at > _BATCH_BYTES):
            yield batch()
            del data[:at]
            starts, at = [], 0
        size = _packet(data, at)
        if size is None:
            data += _more(connection)
            continue
        payload = at + _HEADER
        if size == _LONGEST:
            if starts:
                yield batch()
            row, data = _long(connection, data[at:])
            yield 1, _columns(row, [0], count)
            starts, at = [], 0
        elif data[payload] == _ERROR:
            pymysql.err.raise_mysql_exception(bytes(data[payload : payload + size]))
        elif data[payload] == _END and size < 9:
            if starts:
                yield batch()
            return
        else:
            starts.append(payload)
            at = payload + size


def _packet(data, at):
    """Return the length of the packet, or None if it is incomplete."""
    if at + _HEADER > len(data):
        return None
    size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
    return size if at + _HEADER + size <= len(data) else None


def _more(connection):
    import pymysql

    try:
        data = connection._rfile.read1(_READ_BYTES)
    except OSError as error:
        connection._force_close()
        raise pymysql.err.OperationalError(_LOST, f"Lost connection to MySQL server during query ({error})") from error
    if not data:
        connection._force_close()
        raise pymysql.err.OperationalError(_LOST, "Lost connection to MySQL server during query")
    return data


def _long(connection, data):
    """Return (a row of several packets, the data after it)."""
    row = bytearray()
    while True:
        while (size := _packet(data, 0)) is None:
            data += _more(connection)
        row += data[_HEADER : _HEADER + size]
        del data[: _HEADER + size]
        if size < _LONGEST:
            return bytes(row), data


def _columns(data, starts, count):
    """Return a ByteColumn for each column of the rows at `starts`."""
    data, at, found = np.frombuffer(data, np.uint8), np.array(starts, np.int64), []
    for _ in range(count):
        first = data[at]
        begins, lengths = at + 1, first.astype(np.int64)
        if first.max() >= _NULL:
            lengths[first == _NULL] = -1
            for code, width in _WIDE:
                wide = np.flatnonzero(first == code)
                lengths[wide] = sum(data[begins[wide] + place].astype(np.int64) << 8 * place for place in range(width))
                begins[wide] += width
        found.append(ByteColumn(data, begins, lengths.astype(np.int32)))
        at = begins + np.maximum(lengths, 0)
    return found
