"""UTF-8 between bytes and text as Java has it: what is no UTF-8 becomes U+FFFD, and half a surrogate pair becomes a question mark."""

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
