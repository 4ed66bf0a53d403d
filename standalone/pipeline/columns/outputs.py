"""What happens to one output of a plan, or of a part of one: a leaf as it came, a literal, a struct of such, or what Spark computes."""

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
    """The same value in every row; `expression` is how it was said."""

    value: Any
    expression: Any = None

    def __eq__(self, other):  # as values are: 1 is not True, and 0.0 is not -0.0
        return isinstance(other, Literal) and type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self):
        return hash(repr(self.value))

    def __str__(self):
        return repr(self.value)


@dataclass(frozen=True)
class Struct:
    """A struct of these parts: (name, node)."""

    parts: tuple

    def __str__(self):
        return "{" + ", ".join(f"{name}: {node}" for name, node in self.parts) + "}"


@dataclass(eq=False)
class Computed:
    """What Spark computes by `expression`, which reads the leaves of the names `reads` and what earlier links computed, in `needs`."""

    expression: Any
    reads: frozenset
    needs: tuple
    link: int  # the number of the link that says it: what a later one needs is computed in a select before it
    name: Any = None  # of the column that it becomes, where it is an output or a later link needs it

    def __str__(self):
        return self.name or "computed"


@dataclass(frozen=True)
class FloatText:
    """The text of a floating-point number of that schema, in Java 17's digits: a kernel writes it, not Spark."""

    node: Any
    schema: Any

    def __str__(self):
        return f"text of {self.node}"


@dataclass(frozen=True)
class NullMask:
    """A condition: the rows in which any of these leaves is null or, negated, in which none of them is."""

    names: frozenset
    negated: bool = False

    def __str__(self):
        names = ", ".join(sorted(self.names))
        return f"{names} is not null" if self.negated else f"{names} is null"


@dataclass(frozen=True)
class MisfitWithin:
    """A condition: the rows in which that leaf's list or map holds a null that its schema forbids. `said` is the same for Spark."""

    name: str
    schema: Any
    said: Any = field(compare=False)

    def __str__(self):
        return f"{self.name} holds a null that it must not"


@dataclass(frozen=True)
class AnyOf:
    """A condition: the rows of any of these conditions."""

    nodes: tuple

    def __str__(self):
        return " or ".join(map(str, self.nodes))


MASKS = (NullMask, MisfitWithin, AnyOf)


def is_node(value):
    return isinstance(value, (Leaf, Literal, Struct, Computed, FloatText, *MASKS))


def computed_in(node):
    """All Computed nodes within one."""
    if isinstance(node, Computed):
        yield node
    elif isinstance(node, FloatText):
        yield from computed_in(node.node)
    elif isinstance(node, (Struct, AnyOf)):
        for part in node.nodes if isinstance(node, AnyOf) else [part for _, part in node.parts]:
            yield from computed_in(part)


def build(node, schema, leaves, computed):
    """The column of a node: as it came, a StructColumn, or an Arrow array. `computed` has what Spark sent back, by name."""
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
    """The rows of a condition, as an array; where it is null, the rows engine shall look, and so it counts as true."""
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
    """Whether that output is as it was, or says nothing: for people, who need not be told."""
    return node is None or name in shape and node == shape[name] or node == Literal(None) or node == Literal(name == "keep")
