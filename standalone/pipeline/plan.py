"""Compile a chain for batches of one shape: what of it is computing, which is Spark's, and what merely moves, which nobody needs to do.

All transforms become expressions over the batch's leaves (frame.py). Where these say that a result is a column as it came, a fixed value,
or a struct of such, the batch keeps its column, on this side. Only what is to be computed travels: the leaves that those expressions
read go, their results come back. A chain that only renames, wraps, drops or inserts needs no job at all, and as a rule that is plain
without Spark (moving.py). What is not is shown to Spark's optimizer (optimized.py), which sees through more.
"""

import pyarrow as pa

from standalone.data import schema as s
from standalone.data.batch import values_of
from standalone.data.struct_column import Shaped
from standalone.expression import is_expression
from standalone.pipeline.frame import leaves_in
from standalone.pipeline.headers import Headers
from standalone.pipeline.jobs import LEAST_JOB_ROWS, Job, ship
from standalone.pipeline.meaning import Declined, Meaning
from standalone.pipeline.moving import Moving, NotMoved
from standalone.pipeline.nodes import Computed, Fixed, build, is_node, mask_of, says_nothing, timestamps_of
from standalone.pipeline.optimized import OUT, Division, Optimized

JOB_BYTES = 24 << 20  # shipped in one job; the Java heap holds it several times over

_PARTS = ("topic", "partition", "timestamp", "key", "value", "keep", "failed")


class ColumnPlan:
    """The transforms of a chain, compiled for one shape. `run` may be called again and again, for frames of that shape.

    Where it takes Spark to compile it and there is no session yet, it is not `is_compiled`, until `compile` is called. `moving=False` asks
    Spark in any case.
    """

    def __init__(self, links, leaves, frame, session=None, moving=True):
        """Raises Declined, or NeedsSpark where a transform's column meaning is Spark's own and there is no session."""
        self._shape = leaves.shape
        self._leaf_list = [leaf for part in leaves.shape.values() for leaf in leaves_in(part)]
        self._meaning = Meaning(links, leaves.shape, frame, session)
        self._result = result = self._meaning.result
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
        self._nodes = None
        self._expressions = []  # what Spark computes
        self._shown = []
        self.shipped = []  # the leaves that it reads
        self._again = None  # a Job, or _selected where there can be none
        self._what_computes = "its compilation is Spark's"
        try:
            if moving:
                self._move()
        except NotMoved as reason:
            self._what_computes = str(reason)
        if self._nodes is None and session is not None:
            self.compile(leaves, session)

    def _asked(self):
        """The expressions by the name of what they give."""
        asked = {name: column for name in _PARTS if is_expression(column := getattr(self._result, name))}
        return {**asked, **self._headers.columns}

    def _divided(self, asked, value, mask):
        """All nodes; the functions tell those of expressions."""
        plain = {name: getattr(self._result, name) for name in _PARTS if name not in asked}
        schemas = self._schemas
        return {**plain, **{name: value(name, each, schemas[name]) if name in schemas else mask(name, each) for name, each in asked.items()}}

    def _move(self):
        moving = Moving(self._leaf_list, self._meaning.defined)
        self._nodes = self._divided(
            self._asked(), lambda _, expression, schema: moving.value(expression, schema), lambda _, expression: moving.mask(expression)
        )

    @property
    def is_compiled(self):
        return self._nodes is not None

    def compile(self, leaves, session):
        """Let Spark say what is to be computed. Raises Declined."""
        asked = self._asked()
        one_row = ship(session, self._leaf_list, {leaf.name: leaves.arrow(leaf, 1) for leaf in self._leaf_list}, 1)
        selected = self._meaning.selected(one_row, **{OUT + name: expression for name, expression in asked.items()})
        division = Division(Optimized(selected), self._leaf_list) if asked else None
        self._nodes = self._divided(asked, *((division.value, division.mask) if asked else (None, None)))
        if asked:
            self._expressions, self._shown = division.expressions, division.shown
            self.shipped = [leaf for leaf in self._leaf_list if leaf.name in division.reads]

    @property
    def computes(self):
        """Whether there is anything for Spark to do; not known to be nothing until it is compiled."""
        return bool(self._expressions) or not self.is_compiled

    def describe(self):
        """In words, for people."""
        if not self.is_compiled:
            return [f"not compiled yet, since Spark is not up: {self._what_computes}"]
        results = [f"{name} = {node}" for name, node in self._nodes.items() if not says_nothing(name, node, self._shape)]
        lines = ["; ".join(results) or "all as it was"]
        if self.computes:
            shipped = ", ".join(leaf.name for leaf in self.shipped) or "nothing"
            computed = "; ".join(f"computed {at} = {shown}" for at, shown in enumerate(self._shown))
            lines.append(f"Spark is sent {shipped}: {computed}")
        else:
            lines.append("nothing to compute: no Spark job")
        return lines

    # --- run ---

    def run(self, frame, leaves, holder):
        """(the frame that comes out, its rows that are dropped, its rows that the rows engine must do): masks or None for none."""
        computed = self._job(leaves, holder) if self.computes else []

        def column(name):
            node, schema = self._nodes[name], self._schemas[name]
            if node is None and name in ("key", "value"):
                return getattr(frame, name)  # of no known type, and not touched
            return build(node, schema, leaves, computed)

        def part(name, schema):
            built = column(name)
            shaped = schema is None and built is not None and self._nodes[name] is not None
            return Shaped(self._schemas[name], built) if shaped else built

        def one_or_all(name):
            node = self._nodes[name]
            if isinstance(node, Fixed):
                return node.value
            return values_of(column(name), self._schemas[name], frame.count) if is_node(node) else node

        changed = frame.with_(
            topic=one_or_all("topic"),
            partition=one_or_all("partition"),
            timestamps=timestamps_of(column("timestamp")),
            key=part("key", self.key_schema),
            key_schema=self.key_schema,
            value=part("value", self.value_schema),
            value_schema=self.value_schema,
            headers=self._headers.edited(frame, column, lambda name: self._rows(name, leaves, computed)),
        )
        keep = self._rows("keep", leaves, computed)
        return changed, None if keep is None else ~keep, self._rows("failed", leaves, computed)

    def _rows(self, name, leaves, computed):
        """A mask of rows; None where nothing was said."""
        node = self._nodes[name]
        if node is None:
            return None
        if not isinstance(node, Computed):
            return mask_of(node, leaves)
        return computed[node.at].fill_null(True).to_numpy(zero_copy_only=False)

    def _job(self, leaves, holder):
        """Let Spark compute: a list of Arrow arrays."""
        session = holder.ready()
        if session is None:
            raise Declined("the Spark session has gone")
        arrays = {leaf.name: leaves.arrow(leaf) for leaf in self.shipped}
        row_bytes = max(1, sum(array.nbytes for array in arrays.values()) // leaves.count)
        step = max(LEAST_JOB_ROWS, JOB_BYTES // row_bytes)
        tables = []
        for low in range(0, leaves.count, step):
            count = min(step, leaves.count - low)
            with holder.job():
                table = self._computed_by(session, {name: array.slice(low, count) for name, array in arrays.items()}, count, holder.cores)
            if len(table) != count:
                raise ValueError(f"Spark was sent {count} rows and sent {len(table)} back")
            tables.append(table)
        return [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in pa.concat_tables(tables).columns]

    def _computed_by(self, session, arrays, count, cores):
        if self._again is None:
            first = {name: array.slice(0, 1) for name, array in arrays.items()}
            self._again = Job.of(self._selected(session, first, 1, 1), session, first) or self._selected
        return self._again(session, arrays, count, cores).toArrow()

    def _selected(self, session, arrays, count, cores):
        sent = ship(session, self._leaf_list, arrays, count, cores)
        return self._meaning.selected(sent, **{f"c{at}": expression for at, expression in enumerate(self._expressions)})

    def spark_plan(self, leaves, session):
        """Spark's own words for the job of such a batch, from what is asked of it to what it runs; None where there is no job."""
        if not self.computes:
            return None
        arrays = {leaf.name: leaves.arrow(leaf) for leaf in self.shipped}
        return self._selected(session, arrays, leaves.count, 1)._jdf.queryExecution().toString()
