"""Compile a chain for batches of one shape: what of it is computing, which is Spark's, and what merely moves, which nobody needs to do.

All transforms become one select over the batch's leaves (frame.py), and Spark's optimizer is asked what is left of it. Where it says
that a result is a column as it came, a fixed value, or a struct of such, the batch keeps its column, on this side. Only what it has to
compute travels: the leaves that those expressions read go, their results come back. A chain that only renames, wraps, drops or
inserts needs no job at all.
"""

import json
import logging
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data.struct_column import Shaped
from standalone.pipeline.frame import HEADER_NAMES, Leaf, Leaves, leaves_in
from standalone.pipeline.headers import Headers
from standalone.pipeline.nodes import AnyOf, Computed, Fixed, NullsOf, TextOf, Whole, build, mask_of, says_nothing, timestamps_of
from standalone.pipeline.types import some_value, spark_type
from standalone.stage import TEXT_OF, Columns, NoColumns

log = logging.getLogger(__name__)

JOB_BYTES = 24 << 20  # shipped in one job; the Java heap holds it several times over
LEAST_JOB_ROWS = 1000


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


class Declined(Exception):
    """This chain has no column meaning for batches of that shape; says why."""


# --- What is left of a select --------------------------------------------------------------------------------------

_FIXED_TYPES = {"string": str, "integer": int, "long": int, "short": int, "byte": int, "boolean": lambda text: text == "true"}
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


_OUT = "out_"  # a result of its leaf's own name would lose its alias, and look like no result


class _Optimized:
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
        self.outputs = {nodes[0]["name"].removeprefix(_OUT): made[nodes[0]["exprId"]["id"]] for nodes in projects[0]["projectList"]}

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


# --- The plan ------------------------------------------------------------------------------------------------------


class ColumnPlan:
    """The transforms of a chain, compiled for one shape. `run` may be called again and again, for frames of that shape."""

    def __init__(self, links, leaves, frame, session):
        self._shape = leaves.shape
        self._leaf_list = [leaf for part in leaves.shape.values() for leaf in leaves_in(part)]
        self._stages = _Stages()
        result = _apply(links, self._stages.named(_columns(leaves.shape, frame)), self._stages)
        self.key_schema, self.value_schema = result.key_schema, result.value_schema
        types = {"key": result.key_schema or result.key_shape, "value": result.value_schema or result.value_shape}
        if any(getattr(result, name) is not None and schema is None for name, schema in types.items()):
            raise Declined("it makes values that have no schema and no known shape")
        self._headers = Headers(result.header_edits)
        self._expressions = []  # what Spark computes
        self._reads = set()
        self._shown = []
        self._optimize(result, types, leaves, session)
        self.shipped = [leaf for leaf in self._leaf_list if leaf.name in self._reads]
        self._again = None  # a _Job, or _selected where there can be none

    def _optimize(self, result, types, leaves, session):
        names = ("topic", "partition", "timestamp", "key", "value", "keep", "failed")
        asked = {name: column for name in names if _is_column(column := getattr(result, name))}
        asked.update(self._headers.columns)
        selected = []
        if asked:
            one_row = _ship(session, self._leaf_list, {leaf.name: leaves.arrow(leaf, 1) for leaf in self._leaf_list}, 1)
            selected = self._stages.on(one_row).select(*(column.alias(_OUT + name) for name, column in asked.items()))
        optimized = _Optimized(selected) if asked else None
        schemas = {
            "topic": s.Schema.OPTIONAL_STRING,
            "partition": s.Schema.OPTIONAL_INT32,
            "timestamp": s.Schema.OPTIONAL_INT64,
            **types,
            **self._headers.schemas,
        }
        self._schemas = schemas
        self._nodes = {}
        for name in (*names, *self._headers.columns):
            if name not in asked:
                self._nodes[name] = getattr(result, name)
            elif name not in schemas:
                self._nodes[name] = self._mask(optimized, optimized.outputs[name], asked[name])
            else:
                self._nodes[name] = self._node(optimized, optimized.outputs[name], asked[name], schemas[name])

    def _node(self, optimized, tree, column, schema):
        """What is to be done for one output, or for one part of it."""
        node, children = tree
        kind = node["class"].removeprefix(_EXPRESSIONS)
        name = optimized.leaf(tree)
        if name is not None:
            return next(leaf for leaf in self._leaf_list if leaf.name == name)
        if _reads_text(tree) and not children:
            raise Declined("it folds the text of a number into a literal")
        if kind == "Literal" and (node["value"] is None or isinstance(node["dataType"], str) and node["dataType"] in _FIXED_TYPES):
            return Fixed(None if node["value"] is None else _FIXED_TYPES[node["dataType"]](node["value"]))
        if text := _text_of(tree):
            number = column.substr(len(TEXT_OF.format(text)) + 1, 400).cast(spark_type(s.Schema(text)))
            return TextOf(self._computed(optimized, children[1], number), s.Schema(text, optional=True))
        if kind == "CreateNamedStruct" and schema.type == s.STRUCT:
            names = [child[0].get("value") for child in children[::2]]
            if names == [field.name for field in schema.fields]:
                parts = zip(schema.fields, children[1::2])
                return Whole(tuple((f.name, self._node(optimized, part, column.getField(f.name), f.schema)) for f, part in parts))
        return self._computed(optimized, tree, column)

    def _computed(self, optimized, tree, column):
        if _reads_text(tree):
            raise Declined("it reads the text of floating-point numbers, which is written behind all links")
        self._reads |= optimized.reads(tree)
        self._expressions.append(column)
        self._shown.append(optimized.shown(tree))
        return Computed(len(self._expressions) - 1)

    def _mask(self, optimized, tree, column):
        return self._nulls(optimized, tree) or self._computed(optimized, tree, column)

    def _nulls(self, optimized, tree):
        """A mask that can be told from which rows are null; else None."""
        node, children = tree
        kind = node["class"].removeprefix(_EXPRESSIONS)
        if kind == "Literal" and node["dataType"] == "boolean" and node["value"] is not None:
            return Fixed(node["value"] == "true")
        if kind in ("IsNull", "IsNotNull") and (name := optimized.leaf(children[0])):
            return NullsOf(name, kind == "IsNotNull")
        if kind == "Or":
            nodes = [self._nulls(optimized, child) for child in children]
            return AnyOf(tuple(nodes)) if all(nodes) else None
        return None

    @property
    def computes(self):
        """Whether there is anything for Spark to do."""
        return bool(self._expressions)

    def describe(self):
        """In words, for people."""
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
            return column(name).to_pylist() if isinstance(node, (Leaf, Computed)) else node.value if isinstance(node, Fixed) else node

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
            self._again = _Job.of(self._selected(session, first, 1, 1), session, first) or self._selected
        return self._again(session, arrays, count, cores).toArrow()

    def _selected(self, session, arrays, count, cores):
        sent = _ship(session, self._leaf_list, arrays, count, cores)
        return self._stages.on(sent).select(*(column.alias(f"c{at}") for at, column in enumerate(self._expressions)))

    def spark_plan(self, leaves, session):
        """Spark's own words for the job of such a batch, from what is asked of it to what it runs; None where there is no job."""
        if not self.computes:
            return None
        arrays = {leaf.name: leaves.arrow(leaf) for leaf in self.shipped}
        return self._selected(session, arrays, leaves.count, 1)._jdf.queryExecution().toString()


def _ship(session, all_leaves, arrays, count, pieces=1):
    """A Spark frame of these arrays, in order; in the place of leaves that stay here it has some value of theirs."""
    from pyspark.sql import functions as F

    by_name = {leaf.name: leaf for leaf in all_leaves}
    sent = _sent(session, arrays, {name: by_name[name].nullable for name in arrays}, count, pieces)
    stay = [leaf for leaf in all_leaves if leaf.name not in arrays]
    return sent.select("*", *(_stand_in(F, leaf).alias(leaf.name) for leaf in stay)) if stay else sent


def _sent(session, arrays, nullable, count, pieces):
    """A Spark frame of these arrays."""
    fields = [pa.field(name, array.type, nullable[name]) for name, array in arrays.items()]
    columns = list(arrays.values())
    if not fields:  # something must say how many rows there are
        fields, columns = [pa.field("row", pa.int32(), False)], [pa.array(np.arange(count, dtype=np.int32))]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    step = -(-count // pieces)
    if pieces > 1 and step >= LEAST_JOB_ROWS:  # a piece for each core; a table's chunks become Spark's partitions
        table = pa.concat_tables([table.slice(low, step) for low in range(0, count, step)])
    return session.createDataFrame(table)


class _Job:
    """Spark's optimized plan of what is computed, put upon one frame after the other: to have it analyse and optimize all the selects
    anew took more time than the work on 100,000 rows.
    """

    def __init__(self, plan, read):
        self._plan = plan
        self._read = read  # attributes by name

    @classmethod
    def of(cls, frame, session, arrays):
        """Of the frame of a first job on these arrays; None where its plan is more than one projection."""
        try:
            plan = frame._jdf.queryExecution().optimizedPlan()
            if plan.nodeName() != "Project" or plan.child().nodeName() != "LogicalRDD":
                return None
            output = plan.child().output()
            attributes = [output.apply(at) for at in range(output.size())]
            job = cls(plan, {each.name(): (each, each.nullable()) for each in attributes})
            job(session, arrays, 1, 1)
            return job
        except Exception as error:  # these are the insides of Spark, and another version's may be others
            log.info("Spark's plan cannot be used again, so that each job costs more: %s", error)
            return None

    def __call__(self, session, arrays, count, cores):
        from pyspark.sql import DataFrame

        nullable = {name: self._read[name][1] if name in self._read else True for name in arrays}
        sent = _sent(session, arrays, nullable, count, cores)
        jvm, child = session._jvm, sent._jdf.queryExecution().analyzed()
        output, pairs = child.output(), []
        for at in range(output.size()):
            attribute = output.apply(at)
            if attribute.name() in self._read:
                pairs.append(jvm.scala.Tuple2(self._read[attribute.name()][0], attribute))
        to_seq = jvm.PythonUtils.toSeq
        companion = getattr(jvm.org.apache.spark.sql.catalyst.expressions, "AttributeMap$")
        renamed = getattr(companion, "MODULE$").apply(to_seq(pairs))
        plan = self._plan.withNewChildren(to_seq([child])).rewriteAttrs(renamed)
        return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def _stand_in(F, leaf):
    kind = spark_type(leaf.schema)
    return F.lit(None).cast(kind) if leaf.nullable else some_value(kind)


# --- What the transforms see ---------------------------------------------------------------------------------------


def _is_column(part):
    from pyspark.sql import Column

    return isinstance(part, Column)


def _columns(shape, frame):
    """A batch of that shape in Spark's terms."""
    from pyspark.sql import functions as F

    def column(part, schema):
        if part == Leaves.UNKNOWN:
            return None
        if part == Leaves.NULL:
            return F.lit(None).cast(spark_type(schema))
        if isinstance(part, Leaf):
            return F.col(part.name)
        return F.struct(*(column(inner, field.schema).alias(field.name) for inner, field in zip(part, schema.fields)))

    def one_or_all(part):
        return F.col(part.name) if isinstance(part, Leaf) else part

    return Columns(
        topic=one_or_all(shape["topic"]),
        partition=one_or_all(shape["partition"]),
        timestamp=column(shape["timestamp"], s.Schema.OPTIONAL_INT64),
        timestamp_type=frame.timestamp_type,
        offset=None if shape["offset"] == Leaves.NULL else column(shape["offset"], s.Schema.INT64),
        key=column(shape["key"], frame.key_schema or frame.key_shape),
        key_schema=frame.key_schema,
        key_shape=frame.key_shape,
        value=column(shape["value"], frame.value_schema or frame.value_shape),
        value_schema=frame.value_schema,
        value_shape=frame.value_shape,
        nulls=frozenset(part for part in ("key", "value") if shape[part] == Leaves.NULL),
        header_names=None if shape["header_names"] == Leaves.NULL else column(shape["header_names"], HEADER_NAMES),
    )


class _Stages:
    """Selects one upon the other, that give the results of each link a name for the next one to use: an expression that held those
    before it as a whole, wherever it uses them, would grow beyond all bounds.
    """

    _PARTS = ("topic", "partition", "timestamp", "key", "value")

    def __init__(self):
        self._selects = []

    def named(self, columns):
        """The same columns, by names."""
        from pyspark.sql import functions as F

        at = len(self._selects)
        selected = {name: column for name in self._PARTS if _is_column(column := getattr(columns, name))}
        self._selects.append([column.alias(f"{name}_{at}") for name, column in selected.items()])
        return columns.with_(nulls=columns.nulls, **{name: F.col(f"{name}_{at}") for name in selected})

    def on(self, frame):
        for columns in self._selects:
            frame = frame.select("*", *columns)
        return frame


def _apply(links, columns, stages=None):
    """The columns behind all links; without `stages` as one expression each. Raises Declined at the first link that has no column
    meaning here.
    """
    for link in links:
        before = columns.with_(keep=None, failed=None)
        applies = True if link.predicate is None else _meant(link.predicate, before, f"the predicate of {link.alias}")
        if link.predicate is not None and link.negate:
            applies = not applies if isinstance(applies, bool) else ~applies
        if applies is False:
            continue
        after = _meant(link.transform, before, link.alias)
        if applies is not True:
            after = _where(applies, after, before, link.alias)
        if _is_column(after.keep):  # whether a null keeps a row is for the rows engine to say
            after = after.with_(failed=after.keep.isNull() if after.failed is None else after.failed | after.keep.isNull())
        keep = after.keep if columns.keep is None else columns.keep if after.keep is None else columns.keep & after.keep
        failed = after.failed if columns.failed is None else columns.failed if after.failed is None else columns.failed | after.failed
        columns = after.with_(keep=keep, failed=failed)
        if stages is not None:
            columns = stages.named(columns)
    return columns


def _meant(stage, columns, who):
    try:
        meant = stage.columns(columns)
    except NoColumns as reason:
        raise Declined(f"{who} has no column meaning here: {reason}") from reason
    if meant is None:
        raise Declined(f"{who} has no column meaning for this batch")
    return meant


def _where(applies, after, before, alias):
    """`after` where the predicate says so, `before` elsewhere."""
    from pyspark.sql import functions as F

    alike = all(getattr(after, name) == getattr(before, name) for name in ("key_schema", "value_schema", "key_shape", "value_shape"))
    if not alike:
        raise Declined(f"{alias} gives some rows another schema than the rest")

    def either(name, default=None):
        new, old = getattr(after, name), getattr(before, name)
        if new is old or not _is_column(new) and not _is_column(old) and new == old:
            return new
        if (new is None or old is None) and default is None and name in ("key", "value"):
            raise Declined(f"{alias} gives some rows a {name} that others cannot have")
        new, old = (default if part is None else part for part in (new, old))
        return F.when(applies, new).otherwise(old)

    parts = {name: either(name) for name in ("topic", "partition", "timestamp", "key", "value")}
    known = len(before.header_edits)
    edits = [edit._replace(where=applies if edit.where is None else applies & edit.where) for edit in after.header_edits[known:]]
    parts["header_edits"] = (*before.header_edits, *edits)
    return after.with_(**parts, keep=either("keep", F.lit(True)), failed=either("failed", F.lit(False)))
