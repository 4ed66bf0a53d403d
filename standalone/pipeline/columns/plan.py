"""Compile a chain for batches of one shape: schema edits run in Python, computed values are one projection in Spark.

All transforms become nodes over the batch's leaves (compile.py, prune.py). Leaves, literals and structs of these stay in Python. Spark gets
only the leaves that computed values read, and returns only the results. Compiling needs no session.
"""

from standalone.data import schema as s
from standalone.data.column import values_of
from standalone.data.struct_column import Shaped
from standalone.expression import COLUMN, is_expression
from standalone.pipeline.columns.batch import timestamps_of
from standalone.pipeline.columns.compile import compiled
from standalone.pipeline.columns.headers import Headers
from standalone.pipeline.columns.leaves import Leaf, leaves_in
from standalone.pipeline.columns.outputs import Literal, build, computed_in, is_node, mask_of, says_nothing
from standalone.pipeline.columns.prune import Declined
from standalone.pipeline.spark.columns import SparkColumns
from standalone.pipeline.spark.job import Projection, table_of

_VALUES = ("topic", "partition", "timestamp", "key", "value")


class ColumnPlan:
    """A chain's transforms, compiled for one shape; `run` processes any number of batches of that shape."""

    def __init__(self, links, leaves, batch):
        """Raise Declined if there is no columnar form."""
        self._shape = leaves.shape
        result, pruner = compiled(links, leaves.shape, batch)
        self.key_schema, self.value_schema = result.key_schema, result.value_schema
        types = {"key": result.key_schema or result.key_shape, "value": result.value_schema or result.value_shape}
        if any(getattr(result, name) is not None and schema is None for name, schema in types.items()):
            raise Declined("it makes values that have no schema and no known shape")
        self._headers = Headers(result.header_edits)
        self._schemas = {
            "topic": s.Schema.OPTIONAL_STRING,
            "partition": s.Schema.OPTIONAL_INT32,
            "timestamp": s.Schema.OPTIONAL_INT64,
            **types,
            **self._headers.schemas,
        }
        said = {name: getattr(result, name) for name in (*_VALUES, "keep", "failed")} | self._headers.columns
        self._nodes = {name: self._node(pruner, name, given) for name, given in said.items()}
        self._computed = _closure(each for node in self._nodes.values() for each in computed_in(node))
        reads = frozenset().union(*(each.reads for each in self._computed.values()))
        self.shipped = [leaf for part in leaves.shape.values() for leaf in leaves_in(part) if leaf.name in reads]
        self._wanted = {each.name for node in self._nodes.values() for each in computed_in(node)}
        self._projection = Projection(self._select) if self._computed else None

    def _node(self, pruner, name, given):
        if not is_expression(given):
            return given
        return pruner.value(given, self._schemas[name]) if name in self._schemas else pruner.mask(given)

    @property
    def computes(self):
        """Whether it needs a Spark job."""
        return self._projection is not None

    def describe(self):
        """Describe the plan in words."""
        results = [f"{name} = {node}" for name, node in self._nodes.items() if not says_nothing(name, node, self._shape)]
        lines = ["; ".join(results) or "nothing changes"]
        if self.computes:
            computed = "; ".join(f"{name} = {_words(each.expression)}" for name, each in self._computed.items())
            lines.append(f"Spark gets {', '.join(leaf.name for leaf in self.shipped) or 'nothing'}: {computed}")
        else:
            lines.append("nothing to compute: no Spark job")
        return lines

    # --- run ---

    def run(self, batch, leaves, holder):
        """Return (output batch, mask of dropped rows, mask of rows for the rows engine); a mask is None if empty."""
        computed = self._projection.run(holder, self._table(leaves)) if self.computes else {}

        def column(name):
            node, schema = self._nodes[name], self._schemas[name]
            if node is None and name in ("key", "value"):
                return getattr(batch, name)  # of unknown type, unchanged
            return build(node, schema, leaves, computed)

        def part(name, schema):
            built = column(name)
            shaped = schema is None and built is not None and self._nodes[name] is not None
            return Shaped(self._schemas[name], built) if shaped else built

        def one_or_all(name):
            node = self._nodes[name]
            if isinstance(node, Literal):
                return node.value
            if isinstance(node, Leaf) and node.name == name:
                return getattr(batch, name)
            return values_of(column(name), self._schemas[name], batch.count) if is_node(node) else node

        def rows(name):
            node = self._nodes[name]
            return None if node is None else mask_of(node, leaves, computed)

        changed = batch.with_(
            topic=one_or_all("topic"),
            partition=one_or_all("partition"),
            timestamps=timestamps_of(column("timestamp")),
            key=part("key", self.key_schema),
            key_schema=self.key_schema,
            value=part("value", self.value_schema),
            value_schema=self.value_schema,
            headers=self._headers.edited(batch, column, rows),
        )
        keep = rows("keep")
        return changed, None if keep is None else ~keep, rows("failed")

    def _table(self, leaves):
        nullable = {leaf.name: leaf.nullable for leaf in self.shipped}
        return table_of({leaf.name: leaves.arrow(leaf) for leaf in self.shipped}, nullable, leaves.count)

    def _select(self, frame):
        """Build the Spark frame of all computed values: one select per link whose values a later link needs."""
        spark = SparkColumns()
        numbers = sorted({each.link for each in self._computed.values()})
        for number in numbers[:-1]:
            frame = frame.select("*", *(spark.of(each.expression).alias(name) for name, each in self._computed.items() if each.link == number))
        last = numbers[-1]
        outputs = [(name, each) for name, each in self._computed.items() if name in self._wanted]
        return frame.select(*((spark.of(each.expression) if each.link == last else frame[name]).alias(name) for name, each in outputs))

    @property
    def spark_words(self):
        """Spark's plan for the last session's job as text; None before the first."""
        return self._projection.words if self.computes else None

    def spark_plan(self, leaves, session):
        """Spark's plan for the job of such a batch as text; None if there is no job."""
        return self._projection.spark_plan(session, self._table(leaves)) if self.computes else None


def _closure(nodes):
    """Return {name: node} of these Computed nodes and all that they need."""
    found, left = {}, list(nodes)
    while left:
        node = left.pop()
        if node.name not in found:
            found[node.name] = node
            left += node.needs
    return dict(sorted(found.items(), key=lambda item: int(item[0][1:])))


def _words(expression, depth=5):
    """Format an expression, truncated to a readable depth."""
    if not is_expression(expression):
        return repr(expression)
    if expression.function == "col":
        return expression.given[0]
    if not depth:
        return "…"
    name = expression.function.removeprefix(COLUMN)
    return f"{name}({', '.join(_words(each, depth - 1) for each in expression.given)})"
