"""What of a chain moves and what Spark computes, told by Spark's optimizer of the select that the whole chain is."""

import json

from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.pipeline.meaning import Declined
from standalone.pipeline.nodes import AnyOf, Computed, Fixed, NullsOf, TextOf, Whole
from standalone.stage import TEXT_OF

_FIXED_TYPES = {"string": str, "integer": int, "long": int, "short": int, "byte": int, "boolean": lambda text: text == "true"}
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


OUT = "out_"  # a result of its leaf's own name would lose its alias, and look like no result


class Optimized:
    """Spark's optimized plan of selects over the leaves, as a tree of expressions for each output."""

    def __init__(self, frame):
        *projects, source = json.loads(frame._jdf.queryExecution().optimizedPlan().toJSON())
        if not projects or any(each["class"] != _LOGICAL + "Project" for each in projects) or not source["class"].endswith(".LogicalRDD"):
            raise Declined("Spark's plan for it is no plain projection")
        self.names = {output[0]["exprId"]["id"]: output[0]["name"] for output in source["output"]}
        self._defined = {}  # what the select below calls by an id
        for project in reversed(projects):
            made = {nodes[0]["exprId"]["id"]: self._tree(iter(nodes)) for nodes in project["projectList"]}
            self._defined.update(made)
        self.outputs = {nodes[0]["name"].removeprefix(OUT): made[nodes[0]["exprId"]["id"]] for nodes in projects[0]["projectList"]}

    def _tree(self, nodes):
        """(node, its children) out of a list in which each node stands before its children. Parts of structs that are made further below
        are those parts."""
        node = next(nodes)
        children = [self._tree(nodes) for _ in range(node["num-children"])]
        kind = node["class"].removeprefix(_EXPRESSIONS)
        if kind == "Alias":
            return children[0]
        if kind == "AttributeReference":
            return self._defined.get(node["exprId"]["id"], (node, children))
        if kind == "GetStructField" and children[0][0]["class"] == _EXPRESSIONS + "CreateNamedStruct":
            return children[0][1][2 * node["ordinal"] + 1]
        return node, children

    def leaf(self, tree):
        """The name of the leaf that this expression is, or None."""
        node, _ = tree
        return self.names.get(node["exprId"]["id"]) if node["class"] == _EXPRESSIONS + "AttributeReference" else None

    def reads(self, tree):
        """The names of all leaves that this expression reads."""
        found, seen, left = set(), set(), [tree]
        while left:  # a part that stands in many places is looked at once
            tree = left.pop()
            if id(tree) not in seen:
                seen.add(id(tree))
                found.add(self.leaf(tree))
                left += tree[1]
        return found - {None}

    def shown(self, tree, longest=200):
        """An expression in words, for people."""

        def words(tree, depth=8):
            node, children = tree
            if name := self.leaf(tree):
                return name
            kind = node["class"].rpartition(".")[2]
            if kind == "Literal":
                return repr(node["value"])
            return f"{kind}({', '.join(words(child, depth - 1) for child in children)})" if depth else "…"

        text = words(tree)
        return text if len(text) <= longest else text[:longest] + "…"


def _text_of(tree):
    """The type of the number where all of this is its text."""
    node, children = tree
    if node["class"] == _EXPRESSIONS + "Concat" and len(children) == 2:
        said = children[0][0].get("value")
        return next((kind for kind in (s.FLOAT32, s.FLOAT64) if said == TEXT_OF.format(kind)), None)


def _reads_text(tree):
    """Whether a text of a number is looked into; only whether it is null may be asked."""
    seen, left = set(), [tree]
    while left:
        node, children = tree = left.pop()
        if id(tree) in seen:
            continue
        seen.add(id(tree))
        if node["class"] == _EXPRESSIONS + "Literal" and isinstance(node["value"], str) and node["value"].startswith(TEXT_OF[:10]):
            return True
        asks_for_null = node["class"].removeprefix(_EXPRESSIONS) in ("IsNull", "IsNotNull") and _text_of(children[0])
        left += [children[0][1][1]] if asks_for_null else children
    return False


# --- Nodes ---------------------------------------------------------------------------------------------------------


class Division:
    """The nodes (nodes.py) of what an optimized plan gives; what Spark computes of them is in `expressions`, what it reads in `reads`."""

    def __init__(self, optimized, leaves):
        self._optimized = optimized
        self._leaves = {leaf.name: leaf for leaf in leaves}
        self.expressions = []
        self.reads = set()
        self.shown = []  # the expressions in words

    def value(self, name, expression, schema):
        return self._node(self._optimized.outputs[name], expression, schema)

    def mask(self, name, expression):
        tree = self._optimized.outputs[name]
        return self._nulls(tree) or self._computed(tree, expression)

    def _node(self, tree, column, schema):
        """What is to be done for one output, or for one part of it."""
        node, children = tree
        kind = node["class"].removeprefix(_EXPRESSIONS)
        name = self._optimized.leaf(tree)
        if name is not None:
            return self._leaves[name]
        if _reads_text(tree) and not children:
            raise Declined("it folds the text of a number into a literal")
        if kind == "Literal" and (node["value"] is None or isinstance(node["dataType"], str) and node["dataType"] in _FIXED_TYPES):
            return Fixed(None if node["value"] is None else _FIXED_TYPES[node["dataType"]](node["value"]))
        if text := _text_of(tree):
            number = column.substr(len(TEXT_OF.format(text)) + 1, 400).cast(arrow_type(s.Schema(text)))
            return TextOf(self._computed(children[1], number), s.Schema(text, optional=True))
        if kind == "CreateNamedStruct" and schema.type == s.STRUCT:
            names = [child[0].get("value") for child in children[::2]]
            if names == [field.name for field in schema.fields]:
                parts = zip(schema.fields, children[1::2])
                return Whole(tuple((f.name, self._node(part, column.getField(f.name), f.schema)) for f, part in parts))
        return self._computed(tree, column)

    def _computed(self, tree, column):
        if _reads_text(tree):
            raise Declined("it reads the text of floating-point numbers, which is written behind all links")
        self.reads |= self._optimized.reads(tree)
        self.expressions.append(column)
        self.shown.append(self._optimized.shown(tree))
        return Computed(len(self.expressions) - 1)

    def _nulls(self, tree):
        """A mask that can be told from which rows are null; else None."""
        node, children = tree
        kind = node["class"].removeprefix(_EXPRESSIONS)
        if kind == "Literal" and node["dataType"] == "boolean" and node["value"] is not None:
            return Fixed(node["value"] == "true")
        if kind in ("IsNull", "IsNotNull") and (name := self._optimized.leaf(children[0])):
            return NullsOf(name, kind == "IsNotNull")
        if kind == "Or":
            nodes = [self._nulls(child) for child in children]
            return AnyOf(tuple(nodes)) if all(nodes) else None
        return None
