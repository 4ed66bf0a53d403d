"""What of a chain merely moves columns about: known by its own words, without Spark, which need not even be up.

Some steps of expressions are worked out here: a field of a struct that was just made is that field, a column that never is null is not
null, and so on; and a few computations that are a pass over an array each are done on this side too (casts between numbers, their
texts). Whatever else there is, is Spark's: `Moving.node` raises NotMoved.
"""

import pyarrow as pa

from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.data.scalars import Float32
from standalone.expression import COLUMN, Known, is_expression
from standalone.pipeline.frame import Leaf
from standalone.pipeline.local_cast import can_cast
from standalone.pipeline.local_functions import FUNCTIONS, LEFT_BY
from standalone.pipeline.nodes import AllOf, AnyOf, CastTo, Fixed, LeftOut, NoneOf, NullsOf, TextOf, Whole, WorkedOut
from standalone.stage import TEXT_OF

_SPARK_TYPES = {
    "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(), "binary": pa.binary(),
}  # fmt: skip
_TEXTS = {TEXT_OF.format(kind): kind for kind in (s.FLOAT32, s.FLOAT64)}
_MASKS = (NullsOf, LeftOut, AnyOf, AllOf, NoneOf)
_PLAIN = (Leaf, CastTo, WorkedOut)  # columns of plain values, one for each row
_AS_NULL = (CastTo, TextOf, WorkedOut)  # null where what they are made of is; a row in which nothing could be worked out is done again


class NotMoved(Exception):
    """There is more to do than moving; says where."""


class Moving:
    """Looks through expressions over these leaves. `defined` has those that others call by a name."""

    def __init__(self, leaves, defined):
        self._leaves = {leaf.name: leaf for leaf in leaves}
        self._defined = defined
        self._known = {}

    def value(self, expression, schema):
        """What is to be done for a value of that schema. Raises NotMoved."""
        node = self.node(expression)
        _must_fit(node, schema)
        return node

    def mask(self, expression):
        """What is to be done for a condition that is never null. Raises NotMoved."""
        return _need_mask(self.node(expression))

    def node(self, expression):
        known = self._known.get(id(expression))
        if known is None:
            known = self._known[id(expression)] = (expression, self._node(expression))
        return known[1]

    def _node(self, expression):
        rule = _RULES.get(expression.function)
        if isinstance(expression, Known):
            rule = self._worked_out if expression.function in FUNCTIONS else self._left_out if expression.function in LEFT_BY else None
            return self.node(expression.meaning) if rule is None else rule(expression.function, *expression.given)
        if rule is None:
            raise NotMoved(f"{expression.function.removeprefix(COLUMN)} is computed")
        try:
            return rule(self, *expression.given)
        except (TypeError, ValueError) as error:  # Spark may know what is meant, or say what is wrong
            raise NotMoved(f"{expression.function.removeprefix(COLUMN)} is not understood: {error}") from error

    # --- the rules, by the function's name ---

    def _col(self, name):
        if name in self._defined:
            return self.node(self._defined[name])
        if name not in self._leaves:
            raise NotMoved(f"there is no column {name}")
        return self._leaves[name]

    def _lit(self, value):
        if value is not None and not isinstance(value, (bool, int, float, str, bytes)):
            raise NotMoved("a literal of an unusual type")
        return Fixed(value)

    def _struct(self, *parts):
        if not all(is_expression(part) and part.function == COLUMN + "alias" for part in parts):
            raise NotMoved("a struct of parts without names")
        return Whole(tuple((part.given[1], self.node(part.given[0])) for part in parts))

    def _alias(self, inner, name):
        return self.node(inner)

    def _get_field(self, holder, name):
        node = self.node(holder)
        if isinstance(node, Fixed) and node.value is None:
            return node
        if isinstance(node, Whole):
            found = [part for own, part in node.parts if own == name]
            if len(found) == 1:
                return found[0]
        raise NotMoved("a field inside of a struct that may be null")

    def _cast(self, inner, target):
        node, target = self.node(inner), _SPARK_TYPES.get(target, target)
        if isinstance(node, Fixed):
            if not isinstance(target, pa.DataType) or not _is_of(node.value, target):
                raise NotMoved("a literal is cast")
            return node
        source = _type_of(node)
        if _same(source, target):
            return node
        if isinstance(node, _PLAIN) and can_cast(source, target):
            return CastTo(node, source, target)
        raise NotMoved(f"{source} is cast to {target}")

    def _is_null(self, inner):
        return _nulls(self.node(inner))

    def _is_not_null(self, inner):
        return _not(_nulls(self.node(inner)))

    def _or(self, *conditions):
        return _any(self._masks(conditions))

    def _and(self, *conditions):
        return _all(self._masks(conditions))

    def _invert(self, condition):
        return _not(self.mask(condition))

    def _masks(self, conditions):
        return [self.mask(each) if is_expression(each) else Fixed(each) for each in conditions]

    def _not_equal(self, left, right):
        node = self.node(left)
        if right == 0 and type(right) is int and isinstance(node, _PLAIN) and can_cast(_type_of(node), pa.bool_()):
            return CastTo(node, _type_of(node), pa.bool_())
        raise NotMoved("values are compared")

    def _when(self, *given):
        return self._chosen([given], None)

    def _when_else(self, before, *given):
        return self._chosen([*_branches(before), given], None)

    def _otherwise(self, before, value):
        return self._chosen(_branches(before), (value,))

    def _chosen(self, branches, otherwise):
        left = []
        for condition, value in branches:
            condition = self.mask(condition)
            if condition == Fixed(True):
                otherwise = (value,)
                break
            if condition != Fixed(False):
                left.append((condition, self._plain(value)))
        last = Fixed(None) if otherwise is None else self._plain(otherwise[0])
        if all(value == last for _, value in left):
            return last
        if len(left) == 1 and last == Fixed(None):
            ((condition, value),) = left
            if condition == NullsOf(_root(value), negated=True):
                return value  # it is null already where the condition says so
        values = [*(value for _, value in left), last]
        if all(isinstance(value, _MASKS) or isinstance(value, Fixed) and isinstance(value.value, bool) for value in values):
            chosen = last
            for condition, value in reversed(left):
                chosen = _any([_all([condition, value]), _all([_not(condition), chosen])])
            return chosen
        raise NotMoved("values differ by a condition")

    def _plain(self, value):
        return self.node(value) if is_expression(value) else self._lit(value)

    def _coalesce(self, *parts):
        for part in parts:
            node = self.node(part)
            nulls = _nulls(node)
            if nulls == Fixed(False):
                return node
            if nulls != Fixed(True):
                raise NotMoved("nulls are replaced")
        return Fixed(None)

    def _concat(self, *parts):
        if len(parts) == 2 and parts[0].function == "lit" and parts[1].function == COLUMN + "cast":
            kind, (number, target) = _TEXTS.get(parts[0].given[0]), parts[1].given
            if kind is not None and target == "string":
                node = self.node(number)
                if isinstance(node, _PLAIN) and _type_of(node) == arrow_type(s.Schema(kind)):
                    return TextOf(node, s.Schema(kind, optional=True))
        raise NotMoved("texts are joined")

    def _worked_out(self, name, inner, *given):
        function, node = FUNCTIONS[name], self.node(inner)
        if not isinstance(node, _PLAIN) or _type_of(node) != function.takes or function.makes(*given) is None:
            raise NotMoved(f"{name} is computed")
        return WorkedOut(name, node, given)

    def _left_out(self, name, inner, *given):
        return LeftOut(self._worked_out(LEFT_BY[name], inner, *given))


_RULES = {
    "col": Moving._col, "lit": Moving._lit, "struct": Moving._struct, "when": Moving._when, "coalesce": Moving._coalesce,
    "concat": Moving._concat,
    **{COLUMN + name: rule for name, rule in {
        "alias": Moving._alias, "getField": Moving._get_field, "cast": Moving._cast, "isNull": Moving._is_null,
        "isNotNull": Moving._is_not_null, "__or__": Moving._or, "__ror__": Moving._or, "__and__": Moving._and, "__rand__": Moving._and,
        "__invert__": Moving._invert, "__ne__": Moving._not_equal, "when": Moving._when_else, "otherwise": Moving._otherwise,
    }.items()},
}  # fmt: skip


def _branches(expression):
    """[(condition, value)] of a `when` and those that were put behind it."""
    if expression.function == "when":
        return [expression.given]
    if expression.function != COLUMN + "when":
        raise NotMoved("no condition")
    before, *given = expression.given
    return [*_branches(before), tuple(given)]


# --- Nodes ---------------------------------------------------------------------------------------------------------


def _type_of(node):
    """The Arrow type of what a node makes."""
    if isinstance(node, Leaf):
        return arrow_type(node.schema)
    if isinstance(node, CastTo):
        return node.target
    if isinstance(node, WorkedOut):
        return FUNCTIONS[node.function].makes(*node.given)
    if isinstance(node, TextOf):
        return pa.string()
    if isinstance(node, _MASKS):
        return pa.bool_()
    if isinstance(node, Whole):
        return pa.struct([pa.field(name, _type_of(part)) for name, part in node.parts])
    found = {bool: pa.bool_(), str: pa.string(), bytes: pa.binary(), float: pa.float64()}.get(type(node.value))
    if found is None:
        raise NotMoved("a literal of no certain type")
    return found


def _same(one, other):
    """Whether two types are the same, whatever may be null in them."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = zip(one, other) if one.num_fields == other.num_fields else ()
        return one.num_fields == other.num_fields and all(a.name == b.name and _same(a.type, b.type) for a, b in fields)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same(one.value_type, other.value_type)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return _same(one.key_type, other.key_type) and _same(one.item_type, other.item_type)
    return one == other


def _is_of(value, kind):
    """Whether a literal is a value of that type as it stands."""
    if value is None:
        return True
    if isinstance(value, bool):
        return kind == pa.bool_()
    if isinstance(value, int):
        return pa.types.is_integer(kind) and -(1 << kind.bit_width - 1) <= value < 1 << kind.bit_width - 1
    if isinstance(value, float):
        return kind == pa.float64() or kind == pa.float32() and isinstance(value, Float32)
    return kind == (pa.string() if isinstance(value, str) else pa.binary())


def _must_fit(node, schema):
    """Raise NotMoved where a struct that was made is none of that schema: a Decimal, say, is made of parts, too, and here is none."""
    if not isinstance(node, Whole):
        if isinstance(node, _MASKS):
            raise NotMoved("a condition is a value")
        return
    if schema.type != s.STRUCT or [name for name, _ in node.parts] != [field.name for field in schema.fields]:
        raise NotMoved("a struct of other fields")
    for (_, part), field in zip(node.parts, schema.fields):
        _must_fit(part, field.schema)


def _root(node):
    """The name of the leaf whose nulls a node has."""
    while isinstance(node, _AS_NULL):
        node = node.node
    return node.name if isinstance(node, Leaf) else None


def _nulls(node):
    """The mask of the rows in which a node is null."""
    if isinstance(node, _AS_NULL):
        return _nulls(node.node)
    if isinstance(node, Leaf):
        return NullsOf(node.name) if node.nullable else Fixed(False)
    return Fixed(isinstance(node, Fixed) and node.value is None)


def _need_mask(node):
    if isinstance(node, _MASKS) or isinstance(node, Fixed) and isinstance(node.value, bool):
        return node
    raise NotMoved("a condition that may be null, or is computed")


def _not(mask):
    if isinstance(mask, Fixed):
        return Fixed(not mask.value)
    if isinstance(mask, NullsOf):
        return NullsOf(mask.name, not mask.negated)
    return mask.nodes[0] if isinstance(mask, NoneOf) and len(mask.nodes) == 1 else NoneOf((mask,))


def _any(masks):
    return _joined(masks, AnyOf, strongest=True)


def _all(masks):
    return _joined(masks, AllOf, strongest=False)


def _joined(masks, kind, strongest):
    """Masks joined; one that is `strongest` in every row is the result, one that never is says nothing."""
    left = []
    for mask in masks:
        if mask == Fixed(strongest):
            return mask
        for each in mask.nodes if isinstance(mask, kind) else [mask]:
            if each != Fixed(not strongest) and each not in left:
                left.append(each)
    if not left:
        return Fixed(not strongest)
    return left[0] if len(left) == 1 else kind(tuple(left))
