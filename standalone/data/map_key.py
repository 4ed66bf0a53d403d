"""Keys of maps that Python's own dicts would not have as Java's maps have them.

    as_key([1])                          lists and maps as keys: Java allows them, Python's own cannot be hashed
    set_item(found, True, "a")           true is another key than 1 to Java, and the same to Python

What results is a list, a dict or a number in all else.
"""

import functools


def as_key(value):
    """The value as what a dict takes for a key. Anyone who has it as a key must not change it."""
    if isinstance(value, dict):
        return MapKey((as_key(key), as_key(item)) for key, item in value.items())
    if isinstance(value, list):
        return ListKey(map(as_key, value))
    return bytes(value) if isinstance(value, bytearray) else value


def set_item(found, key, item):
    """found[key] = item, but that a boolean and a number are never the same key: where both are there, the number gets its own hash."""
    key = as_key(key)
    if isinstance(key, int) and 0 <= key <= 1:
        if not isinstance(key, bool):
            key = beside_boolean(key) if any(each is bool(key) for each in found) else key
        elif rivals := [each for each in found if each == key and hash(each) == hash(key) and each is not key]:
            entries = [(beside_boolean(each) if each is rivals[0] else each, before) for each, before in found.items()]
            found.clear()
            found.update(entries)
    found[key] = item


def beside_boolean(number):
    """0 or 1 of its own class as a key that False and True are not."""
    return _beside(type(number))(number)


@functools.cache
def _beside(kind):
    return type(kind.__name__, (kind,), {"__slots__": (), "__hash__": lambda self: hash((kind.__name__, int(self))), "__reduce__": _reduce})


def _reduce(number):
    return beside_boolean, (type(number).__base__(number),)


class ListKey(list):
    __slots__ = ()

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return ListKey, (list(self),)


class MapKey(dict):
    __slots__ = ()

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return MapKey, (dict(self),)
