"""UTF-8 between bytes and text as in Java: what is not UTF-8 becomes U+FFFD, and half a surrogate pair becomes a question mark."""

import re

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()


def decode(data):
    """As Java's `new String(data, UTF_8)`. It differs from Python's "replace" in one thing: an encoded surrogate is one fault, not three."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return str(_ENCODED_SURROGATE.sub(_REPLACEMENT, bytes(data)), "utf-8", "replace")


def encode(text):
    """As Java's `text.getBytes(UTF_8)`."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def texts_of(column):
    """The strings of a ByteColumn, None for a null: cut out of one large text where that can be, which takes a third of the time."""
    lengths = column.lengths
    if len(lengths) > 1 and lengths.min() >= 0:
        joined = column.join(b"\0", b"").tobytes()
        if joined.count(0) == len(lengths):
            try:
                texts = str(joined, "utf-8").split("\0")
            except UnicodeDecodeError:
                pass  # one of them; or one ends in the middle of a letter
            else:
                texts.pop()
                return texts
    return [None if item is None else decode(item) for item in column]
