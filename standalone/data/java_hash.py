"""The iteration order of Java's HashMap for strings, which some responses of Connect show."""


def hash_map_order(texts):
    """Return the strings, inserted in this order, in a HashMap's iteration order."""
    texts = list(dict.fromkeys(texts))
    buckets = 16
    while len(texts) > buckets * 3 // 4:
        buckets *= 2
    return sorted(texts, key=lambda text: _spread(string_hash(text)) & buckets - 1)


def string_hash(text):
    """String.hashCode as an unsigned 32-bit integer."""
    found = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        found = 31 * found + int.from_bytes(units[at : at + 2], "big") & 0xFFFFFFFF
    return found


def _spread(number):
    return number ^ number >> 16
