"""Map keys that Python's dicts treat differently from Java's maps.

    as_key([1])                          lists and maps as keys, which Python cannot hash
    set_item(found, True, "a")           true and 1 are different keys in Java, equal in Python

Otherwise the results behave like a list, a dict or a number.
"""

import functools


def as_key(value):
    """Return the value as a hashable key. It must not change while it is one."""
    if isinstance(value, dict):
        return MapKey((as_key(key), as_key(item)) for key, item in value.items())
    if isinstance(value, list):
        return ListKey(map(as_key, value))
    return bytes(value) if isinstance(value, bytearray) else value


def set_item(found, key, item):
    """Set found[key] = item, but keep booleans and numbers apart: a number that equals a boolean key gets its own hash."""
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
    """Return 0 or 1 of the same class as a key that does not equal False or True."""
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
