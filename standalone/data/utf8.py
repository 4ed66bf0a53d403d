"""Encode and decode UTF-8 like Java: invalid bytes become U+FFFD, an unpaired surrogate becomes a question mark."""

import re

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()


def decode(data):
    """Decode like Java's `new String(data, UTF_8)`. Unlike Python's "replace", an encoded surrogate is one error, not three."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return str(_ENCODED_SURROGATE.sub(_REPLACEMENT, bytes(data)), "utf-8", "replace")


def encode(text):
    """Encode like Java's `text.getBytes(UTF_8)`."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def texts_of(column):
    """Return the strings of a ByteColumn, None for nulls; if possible sliced from one large text, in a third of the time."""
    lengths = column.lengths
    if len(lengths) > 1 and lengths.min() >= 0:
        joined = column.join(b"\0", b"").tobytes()
        if joined.count(0) == len(lengths):
            try:
                texts = str(joined, "utf-8").split("\0")
            except UnicodeDecodeError:
                pass  # an item is invalid, or ends inside a character
            else:
                texts.pop()
                return texts
    return [None if item is None else decode(item) for item in column]
