"""Nodes of a plan's outputs: an unchanged leaf, a literal, a struct of nodes, or a value that Spark computes."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data import utf8
from standalone.data.arrow import arrow_type
from standalone.data.column import is_stored_as, nulls_of, to_arrow
from standalone.data.java_text_column import java_texts
from standalone.data.struct_column import Shaped, StructColumn
from standalone.pipeline.columns.leaves import Leaf
from standalone.pipeline.columns.misfits import misfits_within
from standalone.wire import ByteColumn


@dataclass(frozen=True, eq=False)
class Literal:
    """The same value in every row; `expression` is its original form."""

    value: Any
    expression: Any = None

    def __eq__(self, other):  # strict equality: 1 is not True, and 0.0 is not -0.0
        return isinstance(other, Literal) and type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self):
        return hash(repr(self.value))

    def __str__(self):
        return repr(self.value)


@dataclass(frozen=True)
class Struct:
    """A struct of parts: (name, node)."""

    parts: tuple

    def __str__(self):
        return "{" + ", ".join(f"{name}: {node}" for name, node in self.parts) + "}"


@dataclass(eq=False)
class Computed:
    """A value that Spark computes by `expression` from the leaves named in `reads` and from earlier links' values in `needs`."""

    expression: Any
    reads: frozenset
    needs: tuple
    link: int  # number of its link: later links need its value from an earlier select
    name: Any = None  # of its column, if it is an output or a later link needs it

    def __str__(self):
        return self.name or "computed"


@dataclass(frozen=True)
class FloatText:
    """The text of a floating-point number, formatted as in Java 17: a kernel writes it, not Spark."""

    node: Any
    schema: Any

    def __str__(self):
        return f"text of {self.node}"


@dataclass(frozen=True)
class NullMask:
    """A condition: rows in which any of these leaves is null or, negated, none is."""

    names: frozenset
    negated: bool = False

    def __str__(self):
        names = ", ".join(sorted(self.names))
        return f"{names} is not null" if self.negated else f"{names} is null"


@dataclass(frozen=True)
class MisfitWithin:
    """A condition: rows in which the leaf's list or map contains a null that its schema forbids. `said` is the Spark expression of it."""

    name: str
    schema: Any
    said: Any = field(compare=False)

    def __str__(self):
        return f"{self.name} holds a null that it must not"


@dataclass(frozen=True)
class AnyOf:
    """A condition: rows that meet any of these conditions."""

    nodes: tuple

    def __str__(self):
        return " or ".join(map(str, self.nodes))


MASKS = (NullMask, MisfitWithin, AnyOf)


def is_node(value):
    return isinstance(value, (Leaf, Literal, Struct, Computed, FloatText, *MASKS))


def computed_in(node):
    """Return all Computed nodes within a node."""
    if isinstance(node, Computed):
        yield node
    elif isinstance(node, FloatText):
        yield from computed_in(node.node)
    elif isinstance(node, (Struct, AnyOf)):
        for part in node.nodes if isinstance(node, AnyOf) else [part for _, part in node.parts]:
            yield from computed_in(part)


def build(node, schema, leaves, computed):
    """Build a node's column: the leaf's own, a StructColumn, or an Arrow array. `computed` has Spark's results by name."""
    if node is None:
        return None
    if isinstance(node, Leaf):
        column = leaves.columns[node.name]
        return column if is_stored_as(column, schema) else to_arrow(column, schema)
    if isinstance(node, FloatText):
        return java_texts(Shaped(node.schema, build(node.node, node.schema, leaves, computed)))
    kind = arrow_type(schema)
    if isinstance(node, Computed):
        array = computed[node.name]
        return array if array.type == kind else array.cast(kind)
    if isinstance(node, Literal):
        if node.value is None:
            return None
        if schema.type == s.STRING:
            return ByteColumn.repeat(utf8.encode(node.value), leaves.count)
        return pa.repeat(pa.scalar(node.value, kind), leaves.count)
    parts = [_part(part, field.schema, leaves, computed) for (_, part), field in zip(node.parts, schema.fields)]
    return StructColumn(schema, parts, leaves.count)


def _part(node, schema, leaves, computed):
    column = build(node, schema, leaves, computed)
    return to_arrow(None, schema, leaves.count) if column is None else column


def mask_of(node, leaves, computed):
    """Return the rows of a condition as an array; null counts as true, so that the rows engine decides."""
    if isinstance(node, Literal):
        return np.full(leaves.count, node.value is not False)
    if isinstance(node, AnyOf):
        return np.logical_or.reduce([mask_of(each, leaves, computed) for each in node.nodes])
    if isinstance(node, NullMask):
        nulls = np.logical_or.reduce([nulls_of(leaves.columns[name]) for name in node.names])
        return ~nulls if node.negated else nulls
    if isinstance(node, MisfitWithin):
        return misfits_within(to_arrow(leaves.columns[node.name], node.schema), node.schema)
    array = computed[node.name] if isinstance(node, Computed) else leaves.columns[node.name]
    return array.fill_null(True).to_numpy(zero_copy_only=False)


def says_nothing(name, node, shape):
    """Whether an output is unchanged or empty, and thus left out of descriptions."""
    return node is None or name in shape and node == shape[name] or node == Literal(None) or node == Literal(name == "keep")
