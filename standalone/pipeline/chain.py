"""A chain: the transforms of one connector, between its converters."""

from typing import Any, NamedTuple


class Link(NamedTuple):
    """One transform of a chain and its predicate, if it has one."""

    alias: str
    transform: Any
    predicate: Any = None
    negate: bool = False


class Chain(NamedTuple):
    """A connector's converters and transforms: `kind` is "source" or "sink"."""

    kind: str
    key_converter: Any
    value_converter: Any
    header_converter: Any
    links: list = []
