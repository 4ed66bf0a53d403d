"""A last line of the offsets file that a crash of the machine left whole in length and wrong in content."""

import logging

import pytest

from standalone.errors import OffsetsError
from standalone.runtime.offsets.journal import OffsetsFile


@pytest.fixture
def lines(tmp_path):
    """(path, the file's lines) of a journal of two appends."""
    path = tmp_path / "connect.offsets"
    file = OffsetsFile(str(path)).open()
    for position in (1, 2):
        file.append("a", [({"filename": "x"}, {"position": position})])
    file.close()
    return path, path.read_bytes().splitlines(keepends=True)


def zeroed(line):
    """As a disk gives it back that had made room for the bytes and had not written them."""
    return b"\0" * (len(line) - 1) + b"\n"


def test_as_the_last_line_it_is_dropped_with_a_warning(lines, caplog):
    path, (*before, last) = lines
    path.write_bytes(b"".join([*before, zeroed(last)]))
    with caplog.at_level(logging.WARNING):
        file = OffsetsFile(str(path)).open()
    assert file.get("a", {"filename": "x"}) == {"position": 1}
    assert "is incomplete and is dropped" in caplog.text
    file.append("a", [({"filename": "x"}, {"position": 3})])
    file.close()
    assert OffsetsFile(str(path)).open().get("a", {"filename": "x"}) == {"position": 3}, "what is appended after it is read again"


def test_before_others_it_is_refused(lines):
    path, (header, first, last) = lines
    path.write_bytes(b"".join([header, zeroed(first), last]))
    with pytest.raises(OffsetsError, match="line 2 is corrupt"):
        OffsetsFile(str(path)).open()
