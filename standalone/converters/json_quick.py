"""JSON read by orjson, several times as fast as by Python's own reader, wherever it reads what Jackson reads.

A number with a fraction or an exponent is a float here: the double nearest to what is written. Doubtful, and left to json_text.py, are
whole numbers beyond 64 bits and zeros below zero (Jackson wraps the one and drops the sign of the other), exponents that it refuses,
and what it takes or refuses by its own habits: nesting beyond 1,000 levels, numbers beyond 1,000 characters, names beyond 50,000.
Of what orjson refuses Jackson takes some, so that is doubtful, too.
"""

import re

import orjson

_DEEPEST, _LONGEST_NAME = 1000, 50_000
_LONG_NAME = re.compile(rb'"[^"]{50001}')
_NEGATIVE_ZERO = re.compile(rb"-0(?<=[:,\[ \t\r\n]-0)(?:\.0+)?(?![.0-9])").search  # begins with a literal: found at memory speed
_ALL_ZEROS = bytes.maketrans(b"123456789E", b"000000000e")
_SIGNS = b"+-"
_MANY_DIGITS = b"0" * 19  # what 64 bits do not hold has at least that many
_TOO_MANY_DIGITS = b"0" * 400  # a number of more than 1,000 characters has them in one run, since its exponent is short
_LONG_EXPONENT = b"e00000"
_LARGEST, _TOO_LARGE = (1 << 63) - 1, float(1 << 63)
_CONTAINERS = (dict, list)


class Doubtful(ValueError):
    """Jackson may read it in another way."""


def read(data):
    """The object or array in bytes. Raises ValueError where it is to be read with care."""
    # With all digits made zeros and without signs, runs of digits are found by a plain search.
    runs = data.translate(_ALL_ZEROS, _SIGNS)
    if _LONG_EXPONENT in runs or _NEGATIVE_ZERO(data):
        raise Doubtful
    if len(data) > _DEEPEST:
        _watch(data, runs)
    value = orjson.loads(data)
    if value.__class__ not in _CONTAINERS or _MANY_DIGITS in runs and _is_large(value):
        raise Doubtful
    return value


def _watch(data, runs):
    if data.count(b"[") + data.count(b"{") > _DEEPEST or _TOO_MANY_DIGITS in runs:
        raise Doubtful
    if len(data) > _LONGEST_NAME and _LONG_NAME.search(data):
        raise Doubtful


def _is_large(value):
    """Whether there is a number in it that may have been a whole one beyond 64 bits."""
    kind = value.__class__
    if kind is int:
        return value > _LARGEST
    if kind is float:
        return not -_TOO_LARGE < value < _TOO_LARGE
    if kind is dict:
        return any(map(_is_large, value.values()))
    return kind is list and any(map(_is_large, value))
