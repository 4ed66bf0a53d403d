"""Fast JSON reader by orjson, several times as fast as Python's, for input that orjson reads exactly like Jackson.

A number with a fraction or exponent becomes the nearest double. Left to json_text.py as doubtful: integers beyond 64 bits and negative zeros
(Jackson wraps the former and drops the latter's sign), exponents that Jackson rejects, and limits of its own: nesting beyond 1,000 levels,
numbers beyond 1,000 characters, names beyond 50,000. Jackson accepts some input that orjson rejects, so that is doubtful
too.
"""

import re

import orjson

_DEEPEST, _LONGEST_NAME = 1000, 50_000
_LONG_NAME = re.compile(rb'"[^"]{50001}')
_NEGATIVE_ZERO = re.compile(rb"-0(?<=[:,\[ \t\r\n]-0)(?:\.0+)?(?![.0-9])").search  # begins with a literal, which the regex engine finds fast
_ALL_ZEROS = bytes.maketrans(b"123456789E", b"000000000e")
_SIGNS = b"+-"
_MANY_DIGITS = b"0" * 19  # a number beyond 64 bits has at least as many digits
_TOO_MANY_DIGITS = b"0" * 400  # a number of more than 1,000 characters has so many digits in a row, as exponents are short
_LONG_EXPONENT = b"e00000"
_LARGEST, _TOO_LARGE = (1 << 63) - 1, float(1 << 63)
_CONTAINERS = (dict, list)


class Doubtful(ValueError):
    """Jackson may read it differently."""


def read(data):
    """Read the object or array in bytes. Raise ValueError if the exact reader is needed."""
    # With all digits as zeros and no signs, a plain search finds runs of digits.
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
    """Whether it contains a number that may have been an integer beyond 64 bits."""
    kind = value.__class__
    if kind is int:
        return value > _LARGEST
    if kind is float:
        return not -_TOO_LARGE < value < _TOO_LARGE
    if kind is dict:
        return any(map(_is_large, value.values()))
    return kind is list and any(map(_is_large, value))
