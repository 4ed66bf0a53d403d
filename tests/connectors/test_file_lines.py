"""Where lines begin and end: against a regular expression."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.file import lines

END = re.compile(rb"\r\n|\n|\r(?!\Z)", re.S)


def expected(text):
    """(lines, where the unfinished one begins)."""
    found, at = [], 0
    for match in END.finditer(text):
        found.append(text[at : match.start()])
        at = match.end()
    return found, at


def split(text, begin=0, final=False):
    data = np.frombuffer(text, np.uint8)
    starts, lengths, end = lines.split(data, begin, final)
    assert starts.dtype == np.int64 and lengths.dtype == np.int32
    return [text[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist())], end


CASES = [
    (b"", [], 0),
    (b"a\r\nb\rc\n\nd\n", [b"a", b"b", b"c", b"", b"d"], 10),
    (b"a\nb\r", [b"a"], 2),
    (b"a\nb\r\nc\n", [b"a", b"b", b"c"], 7),
    (b"\r\r\n\n", [b"", b"", b""], 4),
    (b"\n\r\r", [b"", b""], 2),
    (b"no end", [], 0),
    (b"\xef\xbb\xbfx\n\xff\x00\n", [b"\xef\xbb\xbfx", b"\xff\x00"], 8),
]


@pytest.mark.parametrize("text, found, end", CASES, ids=[repr(case[0]) for case in CASES])
def test_lines_end_at_lf_cr_lf_and_a_lone_cr(text, found, end):
    assert split(text) == (found, end)


@pytest.mark.parametrize(
    "text, found",
    [(b"a\nb", [b"a", b"b"]), (b"a\nb\r", [b"a", b"b"]), (b"a\n", [b"a"]), (b"\r", [b""]), (b"", [])],
)
def test_at_the_end_of_a_rotated_file_the_rest_is_a_line(text, found):
    assert split(text, final=True) == (found, len(text))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"x", b"x" * 63, b"y" * 200, b"\x8a\x0b\x0c\x09"]), max_size=40), st.integers(0, 5))
def test_split_finds_what_the_expression_finds(parts, begin):
    text = b"-" * begin + b"".join(parts)
    wanted, end = expected(text[begin:])
    assert split(text, begin) == (wanted, end + begin)


@pytest.mark.parametrize("text, found", [(b"ab\ncd", (2, 3)), (b"ab\r\ncd", (2, 4)), (b"ab\rcd", (2, 3)), (b"ab\r", None), (b"ab", None), (b"", None)])
def test_the_first_end(text, found):
    assert lines.first_end(np.frombuffer(text, np.uint8)) == found
