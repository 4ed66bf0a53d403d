"""Rows off MySQL's protocol: every form of a length, rows that come in pieces, rows of more than one packet, ends and errors."""

from types import SimpleNamespace

import pymysql
import pytest

from connectors.jdbc.dialects import mysql_rows

LONGEST = 0xFFFFFF
END = b"\xfe\0\0\2\0"
ERROR = b"\xff" + (1317).to_bytes(2, "little") + b"#70100Query execution was interrupted"


def length(size):
    if size < 251:
        return bytes([size])
    code, width = (252, 2) if size < 1 << 16 else (253, 3) if size < 1 << 24 else (254, 8)
    return bytes([code]) + size.to_bytes(width, "little")


def row(*values):
    return b"".join(b"\xfb" if value is None else length(len(value)) + value for value in values)


def packets(*payloads):
    out, number = b"", 0
    for payload in payloads:
        while True:
            part, payload = payload[:LONGEST], payload[LONGEST:]
            out += len(part).to_bytes(3, "little") + bytes([number % 256]) + part
            number += 1
            if len(part) < LONGEST:
                break
    return out


class Cursor:
    """An unbuffered one that has begun a query of two columns; its socket gives so many bytes at a time."""

    description = ("a", "b")

    def __init__(self, data, at_a_time=1 << 20):
        self._data, self._at, self._at_a_time = data, 0, at_a_time
        self.connection = SimpleNamespace(_rfile=self, _force_close=self._close)
        self._result = SimpleNamespace(unbuffered_active=True)
        self.is_closed = False

    def read1(self, count):
        part = self._data[self._at : self._at + min(count, self._at_a_time)]
        self._at += len(part)
        return part

    def _close(self):
        self.is_closed = True


def found(cursor, rows=1000):
    """[how many rows each batch has], the rows"""
    counts, every = [], []
    for count, columns in mysql_rows.read(cursor, rows):
        counts.append(count)
        every += zip(*columns)
    return counts, every


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 20])
def test_values_of_any_length_and_nulls(at_a_time):
    rows = [(b"1", None), (b"", b"x" * 250), (b"y" * 251, None), (None, b"z" * 252), (b"\xfb\xff\xfe", b"w" * 300), (b"u" * 65_535, b"2")]
    cursor = Cursor(packets(*[row(*each) for each in rows], END), at_a_time)
    assert found(cursor) == ([6], rows) and cursor._result.unbuffered_active is False


def test_lengths_of_three_and_eight_bytes():
    rows = [(b"a" * 65_536, b"1"), (b"b" * 70_000, None), (b"c", b"d" * (LONGEST - 30))]
    assert found(Cursor(packets(*[row(*each) for each in rows], END)))[1] == rows


def test_a_row_of_more_than_one_packet():
    rows = [(b"1", b"before"), (b"2", b"x" * (LONGEST + 5)), (b"3", b"behind")]
    assert found(Cursor(packets(*[row(*each) for each in rows], END))) == ([1, 1, 1], rows)
    exactly = [(b"y" * (LONGEST - 5), b"")]  # a packet of no bytes says that it is over
    assert len(row(*exactly[0])) == LONGEST
    assert found(Cursor(packets(row(*exactly[0]), END)))[1] == exactly


def test_batches_have_no_more_rows_than_are_asked_for():
    rows = [(str(number).encode(), None) for number in range(10)]
    assert found(Cursor(packets(*[row(*each) for each in rows], END), 9), rows=4) == ([4, 4, 2], rows)
    assert found(Cursor(packets(END))) == ([], [])


def test_rows_that_are_large_come_in_smaller_batches():
    rows = [(b"1", b"x" * 3_000_000)] * 10
    counts, every = found(Cursor(packets(*[row(*each) for each in rows], END)))
    assert every == rows and max(counts) < 8


def test_an_error_of_the_server_is_the_drivers():
    cursor = Cursor(packets(row(b"1", b"2"), ERROR))
    with pytest.raises(pymysql.Error) as failure:
        found(cursor)
    assert failure.value.args[0] == 1317 and cursor._result.unbuffered_active is False


def test_a_connection_that_is_lost_is_an_error_that_passes():
    cursor = Cursor(packets(row(b"1", b"2"))[:-1])
    with pytest.raises(pymysql.OperationalError) as failure:
        found(cursor)
    assert failure.value.args[0] == 2013 and cursor.is_closed
