"""What all transforms of a chain mean together, as expressions over a batch's leaves (frame.py), for batches of one shape."""

import sys

from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.data.record import Header
from standalone.expression import F, is_expression
from standalone.pipeline.frame import HEADER_NAMES, Leaf, Leaves
from standalone.pipeline.spark_column import SparkColumns, made
from standalone.stage import Columns, NoColumns


class Declined(Exception):
    """This chain has no column meaning for batches of that shape; says why."""


class NeedsSpark(Exception):
    """Nothing can be said without a session of Spark."""


class Meaning:
    """The Columns behind all links, in `result`.

    Each link's results have names, by which the next one calls them: an expression that held those before it as a whole, wherever it uses
    them, would grow beyond all bounds. `selects` has [{name: expression}] of each link.
    """

    _PARTS = ("topic", "partition", "timestamp", "key", "value")

    def __init__(self, links, shape, frame, session=None):
        """Raises Declined, or NeedsSpark where there is no session and a transform makes Spark's columns by itself."""
        self.selects = []
        self.result = apply(links, self._named(columns_of(shape, frame)), session, self._named)

    @property
    def defined(self):
        """All results by their names."""
        return {name: expression for select in self.selects for name, expression in select.items()}

    def _named(self, columns):
        """The same columns, by names."""
        at = len(self.selects)
        selected = {name: column for name in self._PARTS if is_expression(column := getattr(columns, name))}
        self.selects.append({f"{name}_{at}": column for name, column in selected.items()})
        return columns.with_(nulls=columns.nulls, **{name: F.col(f"{name}_{at}") for name in selected})

    def selected(self, frame, **expressions):
        """A Spark frame of these expressions over one that has the leaves."""
        spark = SparkColumns()

        def columns(select):
            return [spark.of(expression).alias(name) for name, expression in select.items()]

        for select in self.selects:
            frame = frame.select("*", *columns(select))
        return frame.select(*columns(expressions))


def columns_of(shape, frame):
    """A batch of that shape as the transforms see it."""

    def column(part, schema):
        if part == Leaves.UNKNOWN:
            return None
        if part == Leaves.NULL:
            return F.lit(None).cast(arrow_type(schema))
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


def apply(links, columns, session=None, named=lambda columns: columns):
    """The columns behind all links; `named` gives each link's results names. Raises Declined at the first link that has no column meaning
    here.
    """
    for link in links:
        before = columns.with_(keep=None, failed=None)
        applies = True if link.predicate is None else _meant(link.predicate, before, f"the predicate of {link.alias}", session)
        if link.predicate is not None and link.negate:
            applies = not applies if isinstance(applies, bool) else ~applies
        if applies is False:
            continue
        after = _meant(link.transform, before, link.alias, session)
        if applies is not True:
            after = _where(applies, after, before, link.alias)
        if is_expression(after.keep):  # whether a null keeps a row is for the rows engine to say
            after = after.with_(failed=after.keep.isNull() if after.failed is None else after.failed | after.keep.isNull())
        keep = after.keep if columns.keep is None else columns.keep if after.keep is None else columns.keep & after.keep
        failed = after.failed if columns.failed is None else columns.failed if after.failed is None else columns.failed | after.failed
        columns = named(after.with_(keep=keep, failed=failed))
    return columns


def _meant(stage, columns, who, session):
    try:
        try:
            meant = stage.columns(columns)
        except NoColumns:
            raise
        except Exception as error:
            # It may speak pyspark by itself, whose functions need columns that are made, and a session.
            if session is None:
                raise NeedsSpark(f"{who}: {error}") from error
            meant = stage.columns(_made(columns))
        meant = _expressed(meant)
    except NoColumns as reason:
        raise Declined(f"{who} has no column meaning here: {reason}") from reason
    if meant is None:
        raise Declined(f"{who} has no column meaning for this batch")
    return meant


def _made(columns):
    """With Spark's columns in the place of the expressions."""
    spark = SparkColumns()
    names = [name for name in Columns.__slots__ if is_expression(getattr(columns, name))]
    edits = tuple(_edited(edit, is_expression, spark.of) for edit in columns.header_edits)
    return columns.with_(nulls=columns.nulls, header_edits=edits, **{name: spark.of(getattr(columns, name)) for name in names})


def _expressed(meant):
    """The other way round, of what a stage gave back: Columns, or what a predicate says."""
    if "pyspark.sql" not in sys.modules:
        return meant

    from pyspark.sql import Column

    def is_made(value):
        return isinstance(value, Column)

    if not isinstance(meant, Columns):
        return made(meant) if is_made(meant) else meant
    names = [name for name in Columns.__slots__ if is_made(getattr(meant, name))]
    edits = tuple(_edited(edit, is_made, made) for edit in meant.header_edits)
    return meant.with_(nulls=meant.nulls, header_edits=edits, **{name: made(getattr(meant, name)) for name in names})


def _edited(edit, is_one, change):
    """A HeaderEdit with its columns changed."""
    if is_one(edit.where):
        edit = edit._replace(where=change(edit.where))
    if edit.added is not None and is_one(edit.added.value):
        edit = edit._replace(added=Header(edit.added.name, change(edit.added.value), edit.added.schema))
    return edit


def _where(applies, after, before, alias):
    """`after` where the predicate says so, `before` elsewhere."""
    alike = all(getattr(after, name) == getattr(before, name) for name in ("key_schema", "value_schema", "key_shape", "value_shape"))
    if not alike:
        raise Declined(f"{alias} gives some rows another schema than the rest")

    def either(name, default=None):
        new, old = getattr(after, name), getattr(before, name)
        if new is old or not is_expression(new) and not is_expression(old) and new == old:
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
