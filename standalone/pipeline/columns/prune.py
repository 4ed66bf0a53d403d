"""Separate a chain's schema edits from its computed values, expression by expression, without Spark.

Leaves, literals and structs of these are edits: a rename, a drop, a wrap, a constant. So are fields of a struct that was just built, and
null checks of leaves. Everything else is Computed by Spark, which gets only the leaves that it reads.
"""

import inspect

import pyarrow as pa

from standalone.data import schema as s
from standalone.data.arrow import arrow_type, is_of_type, same_type
from standalone.expression import COLUMN, FLOAT_TEXT, MISFIT_WITHIN, Expression, F, is_expression
from standalone.pipeline.columns.leaves import Leaf
from standalone.pipeline.columns.outputs import MASKS, AnyOf, Computed, FloatText, Literal, MisfitWithin, NullMask, Struct, computed_in

_SPARK_TYPES = {
    "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(), "binary": pa.binary(),
}  # fmt: skip
TRUE, FALSE = Literal(True, F.lit(True)), Literal(False, F.lit(False))


class Declined(Exception):
    """This chain has no columnar form for batches of this shape; the message says why."""


class Lambda:
    """A function over the items of a list or map, as its body: Spark calls it once per expression with its own columns."""

    def __init__(self, parameters, body):
        self.parameters = parameters
        self.body = body

    @classmethod
    def of(cls, function):
        parameters = [Expression("lambda", at) for at in range(len(inspect.signature(function).parameters))]
        return cls(parameters, function(*parameters))


class Pruner:
    """Builds nodes from a chain's expressions, link by link. `settle` names a link's result for the links after it."""

    def __init__(self, leaves):
        self._known = {leaf.name: leaf for leaf in leaves}
        self._nodes = {}  # keyed by identity; holds the expression so that its id is not reused
        self._link = 0
        self._names = 0

    def settle(self, expression):
        """Name a link's result, so that the next link references it instead of nesting ever larger expressions."""
        node = self.node(expression)
        for computed in computed_in(node):
            self.named(computed)
        self._names += 1
        name = f"made {self._names}"
        self._known[name] = node
        return F.col(name)

    def next_link(self):
        self._link += 1

    def named(self, computed):
        if computed.name is None:
            self._names += 1
            computed.name = f"c{self._names}"
        return computed

    def value(self, expression, schema):
        """Return the node of a value with that schema."""
        node = self._fitting(self.node(expression), schema)
        for computed in computed_in(node):
            self.named(computed)
        return node

    def mask(self, expression):
        """Return the node of a condition."""
        node = self.node(expression)
        if not isinstance(node, (Leaf, Literal, *MASKS)):
            node = self._computed_of(node)
        for computed in computed_in(node):
            self.named(computed)
        return node

    def node(self, expression):
        found = self._nodes.get(id(expression))
        if found is None:
            found = self._nodes[id(expression)] = (expression, self._node(expression))
        return found[1]

    def _node(self, expression):
        rule = _RULES.get(expression.function)
        node = None if rule is None else rule(self, *expression.given)
        return self._computed(expression.function, expression.given) if node is None else node

    def _fitting(self, node, schema):
        """Return a node that produces a column of that schema."""
        if isinstance(node, MASKS):
            return self._computed_of(node)
        if not isinstance(node, Struct):
            return node
        if schema.type != s.STRUCT or [name for name, _ in node.parts] != [field.name for field in schema.fields]:
            return self._computed_of(node)  # a Decimal, for instance, also consists of parts
        return Struct(tuple((name, self._fitting(part, field.schema)) for (name, part), field in zip(node.parts, schema.fields)))

    # --- computed values ---

    def _computed(self, function, given):
        """A value that Spark computes: the function over leaves and earlier links' values."""
        reads, needs = set(), {}
        expression = Expression(function, *(self._said(each, reads, needs) for each in given))
        return Computed(expression, frozenset(reads), tuple(needs.values()), self._link)

    def _computed_of(self, node):
        if isinstance(node, Computed):
            return node
        reads, needs = set(), {}
        expression = self._said_node(node, reads, needs)
        return Computed(expression, frozenset(reads), tuple(needs.values()), self._link)

    def _said(self, given, reads, needs):
        if is_expression(given):
            return self._said_node(self.node(given), reads, needs)
        if inspect.isfunction(given):
            function = Lambda.of(given)
            for parameter in function.parameters:  # only Spark knows them, when it calls the function
                self._nodes[id(parameter)] = (parameter, Computed(parameter, frozenset(), (), self._link))
            return Lambda(function.parameters, self._said(function.body, reads, needs))
        return given

    def _said_node(self, node, reads, needs):
        """Convert a node back to an expression. Records what it reads in the set `reads` and the dict `needs`."""
        if isinstance(node, Leaf):
            reads.add(node.name)
            return F.col(node.name)
        if isinstance(node, Literal):
            return node.expression
        if isinstance(node, Struct):
            return F.struct(*(self._said_node(part, reads, needs).alias(name) for name, part in node.parts))
        if isinstance(node, FloatText):
            raise Declined("it computes with the text of floating-point numbers, which is formatted after the Spark job")
        if isinstance(node, NullMask):
            reads.update(node.names)
            return _joined_by("__or__", [F.col(name).isNull() for name in sorted(node.names)], node.negated)
        if isinstance(node, MisfitWithin):
            return self._said_node(self.node(node.said), reads, needs)
        if isinstance(node, AnyOf):
            return _joined_by("__or__", [self._said_node(each, reads, needs) for each in node.nodes])
        if node.link < self._link:
            needs[self.named(node).name] = node
            return F.col(node.name)
        reads |= node.reads
        needs.update((each.name, each) for each in node.needs)
        return node.expression

    # --- the rules: return a node, or None for a computed value ---

    def _col(self, name):
        if name not in self._known:
            raise ValueError(f"there is no column {name}")
        return self._known[name]

    def _lit(self, value):
        plain = value is None or isinstance(value, (bool, int, float, str, bytes))
        return Literal(value, F.lit(value)) if plain else None

    def _struct(self, *parts):
        if all(is_expression(part) and part.function == COLUMN + "alias" for part in parts):
            return Struct(tuple((part.given[1], self.node(part.given[0])) for part in parts))

    def _alias(self, inner, name):
        return self.node(inner)

    def _get_field(self, holder, name):
        node = self.node(holder)
        if node == Literal(None):
            return Literal(None, F.lit(None))
        if isinstance(node, Struct):
            found = [part for own, part in node.parts if own == name]
            return found[0] if len(found) == 1 else None

    def _cast(self, inner, target):
        return _cast_node(self.node(inner), _SPARK_TYPES.get(target, target))

    def _float_text(self, inner, kind):
        return FloatText(self.node(inner), s.Schema(kind, optional=True))

    def _misfit_within(self, items, schema, said):
        node = self.node(items)
        return MisfitWithin(node.name, schema, said) if isinstance(node, Leaf) else self.node(said)

    def _is_null(self, inner):
        return _nulls(self.node(inner))

    def _is_not_null(self, inner):
        return _not(_nulls(self.node(inner)))

    def _or(self, *conditions):
        return _any([self._condition(each) for each in conditions])

    def _and(self, *conditions):
        return _all([self._condition(each) for each in conditions])

    def _invert(self, condition):
        return _not(self.node(condition))

    def _condition(self, given):
        return self.node(given) if is_expression(given) else Literal(given, F.lit(given))

    def _when(self, *given):
        return self._chosen([given], None)

    def _when_else(self, before, *given):
        branches = _branches(before)
        return branches and self._chosen([*branches, given], None)

    def _otherwise(self, before, value):
        branches = _branches(before)
        return branches and self._chosen(branches, (value,))

    def _chosen(self, branches, otherwise):
        left = []
        for condition, value in branches:
            condition = self.node(condition)
            if condition == TRUE:
                otherwise = (value,)
                break
            if condition not in (FALSE, Literal(None)):  # Spark rejects an untyped null as a condition
                left.append((condition, self._condition(value)))
        last = Literal(None, F.lit(None)) if otherwise is None else self._condition(otherwise[0])
        if all(value == last for _, value in left):
            return last
        if len(left) == 1 and last == Literal(None):
            ((condition, value),) = left
            if (root := _root(value)) and condition == NullMask(frozenset([root]), negated=True):
                return value  # it is null already where the condition is true
        reads, needs = set(), {}
        said = None
        for condition, value in left:
            pair = self._said_node(condition, reads, needs), self._said_node(value, reads, needs)
            said = F.when(*pair) if said is None else said.when(*pair)
        if last != Literal(None):
            said = said.otherwise(self._said_node(last, reads, needs))
        return Computed(said, frozenset(reads), tuple(needs.values()), self._link)

    def _coalesce(self, *parts):
        left = [node for node in map(self.node, parts) if node != Literal(None)]
        if not left:
            return self.node(parts[0])
        return left[0] if _nulls(left[0]) == FALSE or len(left) == 1 else None


_RULES = {
    "col": Pruner._col, "lit": Pruner._lit, "struct": Pruner._struct, "when": Pruner._when, "coalesce": Pruner._coalesce,
    FLOAT_TEXT: Pruner._float_text, MISFIT_WITHIN: Pruner._misfit_within,
    **{COLUMN + name: rule for name, rule in {
        "alias": Pruner._alias, "getField": Pruner._get_field, "cast": Pruner._cast, "isNull": Pruner._is_null,
        "isNotNull": Pruner._is_not_null, "__or__": Pruner._or, "__ror__": Pruner._or, "__and__": Pruner._and, "__rand__": Pruner._and,
        "__invert__": Pruner._invert, "when": Pruner._when_else, "otherwise": Pruner._otherwise,
    }.items()},
}  # fmt: skip


def _branches(expression):
    """Return [(condition, value)] of chained `when`s; None for another expression."""
    if expression.function == "when":
        return [expression.given]
    if expression.function == COLUMN + "when":
        before, *given = expression.given
        earlier = _branches(before)
        return earlier and [*earlier, tuple(given)]


def _joined_by(operator, expressions, negated=False):
    joined = expressions[0]
    for each in expressions[1:]:
        joined = Expression(COLUMN + operator, joined, each)
    return ~joined if negated else joined


# --- Types ---------------------------------------------------------------------------------------------------------


def _cast_node(node, target):
    """Return a node cast to that Arrow type if no computation is needed; else None."""
    if not isinstance(target, pa.DataType):
        return None
    if isinstance(node, Literal):
        return Literal(node.value, node.expression.cast(target)) if is_of_type(node.value, target) else None
    if isinstance(node, Leaf):
        return node if same_type(arrow_type(node.schema), target) else None
    if isinstance(node, FloatText):
        return node if target == pa.string() else None
    if isinstance(node, MASKS):
        return node if target == pa.bool_() else None
    return None


# --- Conditions ----------------------------------------------------------------------------------------------------


def _root(node):
    """Return the name of the leaf that determines a node's nulls."""
    while isinstance(node, FloatText):
        node = node.node
    return node.name if isinstance(node, Leaf) else None


def _nulls(node):
    """Return the condition that a node is null; None if only Spark can evaluate it."""
    if isinstance(node, FloatText):
        return _nulls(node.node)
    if isinstance(node, Leaf):
        return NullMask(frozenset([node.name])) if node.nullable else FALSE
    if isinstance(node, Computed):
        return None
    return TRUE if node == Literal(None) else FALSE


def _not(mask):
    if mask in (TRUE, FALSE):
        return FALSE if mask == TRUE else TRUE
    return NullMask(mask.names, not mask.negated) if isinstance(mask, NullMask) else None


def _any(masks):
    """Join conditions by "or"."""
    plain, names, left = [], set(), []
    for mask in masks:
        plain += mask.nodes if isinstance(mask, AnyOf) else [mask]
    for mask in plain:
        if mask == TRUE:
            return TRUE
        if isinstance(mask, NullMask) and not mask.negated:
            names |= mask.names
        elif isinstance(mask, (NullMask, MisfitWithin, Computed)):
            left += [mask] if mask not in left else []
        elif mask != FALSE:
            return None
    left += [NullMask(frozenset(names))] if names else []
    return FALSE if not left else left[0] if len(left) == 1 else AnyOf(tuple(left))


def _all(masks):
    """Join conditions by "and"; None if that must be computed."""
    names, left = set(), []
    for mask in masks:
        if mask == FALSE:
            return FALSE
        if isinstance(mask, NullMask) and mask.negated:
            names |= mask.names
        elif mask != TRUE:
            left.append(mask)
    if left:
        known = {left[0].name} if isinstance(left[0], MisfitWithin) else set()  # false where the leaf is null
        return left[0] if len(left) == 1 and names <= known else None
    return NullMask(frozenset(names), negated=True) if names else TRUE
