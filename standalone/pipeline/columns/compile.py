"""Compile the transforms of a chain into nodes (outputs.py) over the leaves of a batch, for batches of one shape."""

from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.expression import F, is_expression
from standalone.pipeline.columns.leaves import HEADER_NAMES, Leaf, Leaves, leaves_in
from standalone.pipeline.columns.prune import Declined, Pruner
from standalone.stage import Columns, NoColumns

_PARTS = ("topic", "partition", "timestamp", "key", "value", "keep", "failed")


def compiled(links, shape, batch):
    """Return (Columns after all links, the Pruner with their nodes). Raise Declined at the first link without a columnar form."""
    pruner = Pruner([leaf for part in shape.values() for leaf in leaves_in(part)])

    def settled(columns):
        """Return the same columns, with each intermediate result referenced by name."""
        said = {name: pruner.settle(column) for name in _PARTS if is_expression(column := getattr(columns, name))}
        pruner.next_link()
        return columns.with_(nulls=columns.nulls, **said)

    return apply(links, columns_of(shape, batch), settled), pruner


def columns_of(shape, batch):
    """Return a batch of that shape as transforms see it."""

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
        timestamp_type=batch.timestamp_type,
        offset=None if shape["offset"] == Leaves.NULL else column(shape["offset"], s.Schema.INT64),
        key=column(shape["key"], batch.key_schema or batch.key_shape),
        key_schema=batch.key_schema,
        key_shape=batch.key_shape,
        value=column(shape["value"], batch.value_schema or batch.value_shape),
        value_schema=batch.value_schema,
        value_shape=batch.value_shape,
        nulls=frozenset(part for part in ("key", "value") if shape[part] == Leaves.NULL),
        header_names=None if shape["header_names"] == Leaves.NULL else column(shape["header_names"], HEADER_NAMES),
    )


def apply(links, columns, settled=lambda columns: columns):
    """Apply all links; call `settled` after each. Raise Declined at the first link without a columnar form here."""
    for link in links:
        before = columns.with_(keep=None, failed=None)
        applies = True if link.predicate is None else _said(link.predicate, before, f"the predicate of {link.alias}")
        if link.predicate is not None and link.negate:
            applies = not applies if isinstance(applies, bool) else ~applies
        if applies is False:
            continue
        after = _said(link.transform, before, link.alias)
        if applies is not True:
            after = _where(applies, after, before, link.alias)
        if is_expression(after.keep):  # the rows engine decides whether a null condition keeps a row
            after = after.with_(failed=after.keep.isNull() if after.failed is None else after.failed | after.keep.isNull())
        keep = after.keep if columns.keep is None else columns.keep if after.keep is None else columns.keep & after.keep
        failed = after.failed if columns.failed is None else columns.failed if after.failed is None else columns.failed | after.failed
        columns = settled(after.with_(keep=keep, failed=failed))
    return columns


def _said(stage, columns, who):
    try:
        said = stage.columns(columns)
    except NoColumns as reason:
        raise Declined(f"{who} has no columnar form here: {reason}") from reason
    if said is None:
        raise Declined(f"{who} has no columnar form for this batch")
    if not isinstance(said, (Columns, bool)) and not is_expression(said):
        raise Declined(f"{who} returns a {type(said).__name__}: write columnar forms with standalone's F, not with pyspark's functions")
    return said


def _where(applies, after, before, alias):
    """`after` where the predicate is true, `before` elsewhere."""
    alike = all(getattr(after, name) == getattr(before, name) for name in ("key_schema", "value_schema", "key_shape", "value_shape"))
    if not alike:
        raise Declined(f"{alias} gives some rows a different schema than others")

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
