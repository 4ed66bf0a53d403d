"""Lists and maps as keys of maps: Java allows them, Python's own cannot be hashed. These can, and are a list and a dict in all else."""


def as_key(value):
    """The value as what a dict takes for a key. Whoever has it as a key must not change it."""
    if isinstance(value, dict):
        return MapKey((as_key(key), as_key(item)) for key, item in value.items())
    if isinstance(value, list):
        return ListKey(map(as_key, value))
    return bytes(value) if isinstance(value, bytearray) else value


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
