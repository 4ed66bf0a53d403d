"""What becomes of one output of a plan: a leaf as it came, a fixed value, a struct of such, or what Spark computed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data import utf8
from standalone.data.arrow import arrow_type, nulls_of, to_arrow
from standalone.data.java_text_column import java_texts
from standalone.data.struct_column import Shaped, StructColumn
from standalone.pipeline.frame import Leaf
from standalone.pipeline.local_cast import cast
from standalone.pipeline.local_functions import FUNCTIONS
from standalone.wire import NO_TIMESTAMP, ByteColumn


@dataclass(frozen=True, eq=False)
class Fixed:
    """The same value in every row."""

    value: Any

    def __eq__(self, other):  # as values are: 1 is not True, and 0.0 is not -0.0
        return isinstance(other, Fixed) and type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self):
        return hash(repr(self.value))

    def __str__(self):
        return repr(self.value)


@dataclass(frozen=True)
class Whole:
    """A struct of these parts: (name, node)."""

    parts: tuple

    def __str__(self):
        return "{" + ", ".join(f"{name}: {node}" for name, node in self.parts) + "}"


@dataclass(frozen=True)
class Computed:
    """What Spark works out: the number of the column it comes back in."""

    at: int

    def __str__(self):
        return f"computed {self.at}"


@dataclass(frozen=True)
class TextOf:
    """The text of a floating-point number of that schema, in Java 17's digits."""

    node: Any
    schema: Any

    def __str__(self):
        return f"text of {self.node}"


@dataclass(frozen=True)
class CastTo:
    """A number as one of another type, or a whole number or boolean as its text."""

    node: Any
    source: Any
    target: Any

    def __str__(self):
        return f"{self.node} as {self.target}"


@dataclass(frozen=True)
class WorkedOut:
    """What one of FUNCTIONS (local_functions.py) makes of a node and of what else it is given."""

    function: str
    node: Any
    given: tuple

    def __str__(self):
        return f"{self.function} {self.node}"


@dataclass(frozen=True)
class LeftOut:
    """A mask: the rows in which nothing could be worked out, of what is not null."""

    worked: WorkedOut

    def __str__(self):
        return f"no {self.worked}"


@dataclass(frozen=True)
class NullsOf:
    """A mask: which rows of a leaf are null, or are not."""

    name: str
    negated: bool = False

    def __str__(self):
        return f"{self.name} is {'not ' if self.negated else ''}null"


@dataclass(frozen=True)
class AnyOf:
    """A mask: the rows of any of these."""

    nodes: tuple

    def __str__(self):
        return " or ".join(map(str, self.nodes))


@dataclass(frozen=True)
class AllOf:
    """A mask: the rows that are in each of these."""

    nodes: tuple

    def __str__(self):
        return " and ".join(f"({node})" for node in self.nodes)


@dataclass(frozen=True)
class NoneOf:
    """A mask: the rows that are in none of these."""

    nodes: tuple

    def __str__(self):
        return f"none of ({', '.join(map(str, self.nodes))})"


def is_node(value):
    return isinstance(value, (Leaf, Fixed, Whole, Computed, TextOf, CastTo, WorkedOut))


def build(node, schema, leaves, computed):
    """The column of a node: as it came, a StructColumn, or an Arrow array."""
    if node is None:
        return None
    if isinstance(node, Leaf):
        column = leaves.columns[node.name]
        return column if isinstance(column, ByteColumn) and node.schema.type == schema.type else to_arrow(column, schema)
    if isinstance(node, WorkedOut):
        return _worked(node, leaves, computed)[0]
    if isinstance(node, CastTo):
        inner = node.node
        return cast(build(inner, inner.schema if isinstance(inner, Leaf) else schema, leaves, computed), node.target)
    if isinstance(node, TextOf):
        return java_texts(Shaped(node.schema, build(node.node, node.schema, leaves, computed)))
    kind = arrow_type(schema)
    if isinstance(node, Computed):
        array = computed[node.at]
        return array if array.type == kind else array.cast(kind)
    if isinstance(node, Fixed):
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


def _worked(node, leaves, computed=()):
    """(column, mask of the rows left out or None) of a WorkedOut, looked at once."""
    if node not in leaves.worked:
        inner = node.node
        column = leaves.columns[inner.name] if isinstance(inner, Leaf) else build(inner, None, leaves, computed)
        leaves.worked[node] = FUNCTIONS[node.function].work(column, *node.given)
    return leaves.worked[node]


def timestamps_of(column):
    """A column of timestamps as a batch has them."""
    if column is None:
        return None
    if column.null_count:
        column = column.fill_null(NO_TIMESTAMP)
    return column.to_numpy(zero_copy_only=False)


def mask_of(node, leaves):
    """The rows that a mask or a Fixed stands for."""
    if isinstance(node, Fixed):
        return np.full(leaves.count, node.value)
    if isinstance(node, LeftOut):
        return _worked(node.worked, leaves)[1]
    if not isinstance(node, NullsOf):
        masks = [mask_of(each, leaves) for each in node.nodes]
        return {AnyOf: np.logical_or.reduce, AllOf: np.logical_and.reduce, NoneOf: _none_of}[type(node)](masks)
    column = leaves.columns[node.name]
    nulls = column.lengths < 0 if isinstance(column, ByteColumn) else nulls_of(column)
    return ~nulls if node.negated else nulls


def _none_of(masks):
    return ~np.logical_or.reduce(masks)


def says_nothing(name, node, shape):
    """Whether that output is as it was, or says nothing: for people, who need not be told."""
    return node is None or name in shape and node == shape[name] or node == Fixed(None) or node == Fixed(name == "keep")
