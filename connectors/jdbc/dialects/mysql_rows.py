"""A query's rows off MySQL's protocol, many at once: PyMySQL begins the query; it would make a tuple of each row.

A row is a packet (three bytes of length, one of its number), or more than one where it is long. In it is, for each column, a length and as many
bytes: the value as text. The last packet ends the rows, or says what went wrong.
"""

import numpy as np

from standalone import ByteColumn

_HEADER = 4
_LONGEST = 0xFFFFFF  # of a packet: what is missing of the row comes with the next one
_NULL, _ERROR, _END = 251, 255, 254
_WIDE = ((252, 2), (253, 3), (254, 8))  # first byte of a length -> how many bytes after it say it
_MOST_BYTES = 1 << 24  # of a batch
_READ_BYTES = 1 << 20
_LOST = 2013


def read(cursor, rows):
    """What a query gives that an unbuffered cursor has begun: for each `rows` rows at most (their number, a ByteColumn for each column)."""
    try:
        yield from _batches(cursor.connection, len(cursor.description), rows)
    finally:
        cursor._result.unbuffered_active = False  # or the driver would look for the end of the rows


def _batches(connection, count, rows):
    import pymysql

    data, starts, at = bytearray(), [], 0

    def batch():
        return len(starts), _columns(bytes(memoryview(data)[:at]), starts, count)

    while True:
        if starts and (len(starts) == rows or at > _MOST_BYTES):
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
    """The length of the packet there; None where it is not here as a whole."""
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
    """(the row that begins there and has more than one packet, what is behind it)"""
    row = bytearray()
    while True:
        while (size := _packet(data, 0)) is None:
            data += _more(connection)
        row += data[_HEADER : _HEADER + size]
        del data[: _HEADER + size]
        if size < _LONGEST:
            return bytes(row), data


def _columns(data, starts, count):
    """Rows that begin there as a ByteColumn for each column."""
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
