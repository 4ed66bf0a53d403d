"""A chain: the transforms of one connector, between its converters."""

from typing import Any, NamedTuple


class Link(NamedTuple):
    """One transform of a chain and, where it has one, the predicate that says for which records it is."""

    alias: str
    transform: Any
    predicate: Any = None
    negate: bool = False


class Chain(NamedTuple):
    """What one connector does with its records: `kind` is "source" or "sink"."""

    kind: str
    key_converter: Any
    value_converter: Any
    header_converter: Any
    links: list = []
