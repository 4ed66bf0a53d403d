"""Many chains through the columns engine in one Spark job: a job costs as much as many thousand records do.

Each case has leaves and results of its own; they only share the select. Where that one select fails, its halves are tried.
"""

import numpy as np

from standalone import Header, HeaderEdit, Schema, Transform
from standalone.data.arrow import NotColumns
from standalone.expression import is_expression
from standalone.pipeline.chain import Link
from standalone.pipeline.columns.batch import ColumnBatch
from standalone.pipeline.columns.compile import apply, columns_of
from standalone.pipeline.columns.headers import Headers
from standalone.pipeline.columns.leaves import Leaf, Leaves, leaves_in
from standalone.pipeline.columns.plan import ColumnPlan
from standalone.pipeline.columns.prune import Declined
from standalone.testing import LeftToRows, records_of
from standalone.testing import columns_of as columns_of_records
from standalone.wire import NO_TIMESTAMP

_SCHEMAS = {
    "topic": Schema.OPTIONAL_STRING,
    "partition": Schema.OPTIONAL_INT32,
    "timestamp": Schema.OPTIONAL_INT64,
    "keep": Schema.OPTIONAL_BOOLEAN,
    "failed": Schema.OPTIONAL_BOOLEAN,
}


def transform_together(cases, holder):
    """What the columns engine makes of each (links, records that are alike; each case has as many): a list of records, with None for
    one that is dropped and LeftToRows for one that is marked for the rows engine; or a LeftToRows for the whole case."""
    chains = [_chain(str(at), links, records) for at, (links, records) in enumerate(cases)]
    good = [chain for chain in chains if isinstance(chain, _Chain)]
    done = _run(good, holder) if good else {}
    return [done[chain.prefix] if isinstance(chain, _Chain) else chain for chain in chains]


def _chain(prefix, links, records):
    try:
        return _Chain(prefix, links, records)
    except (NotColumns, Declined) as reason:
        return LeftToRows(str(reason))


def _run(chains, holder):
    """{prefix: outcome}"""
    try:
        results = _job(chains, holder)
    except Exception as error:
        if len(chains) == 1:
            return {chains[0].prefix: LeftToRows(f"it cannot be compiled: {type(error).__name__}: {error}"[:300])}
        half = len(chains) // 2
        return {**_run(chains[:half], holder), **_run(chains[half:], holder)}
    return {chain.prefix: chain.outcome(results) for chain in chains}


def _job(chains, holder):
    """The results of all chains by name, as lists of values."""
    outputs = [output for chain in chains for output in chain.outputs]
    leaves = _Joined(chains)
    together = ColumnPlan([Link("together", _Together(outputs))], leaves, leaves.frame)
    changed, _, _ = together.run(leaves.frame, leaves, holder)
    columns = zip(*changed.headers) if outputs else ()
    return {header[0].name: [each.value for each in header] for header in columns}


class _Chain:
    """One case: its leaves under its own names, and what its links make of them."""

    def __init__(self, prefix, links, records):
        self.prefix = prefix
        self.frame = columns_of_records(records)
        self._records = records
        self._leaves = Leaves(self.frame, set())
        shape = {name: _renamed(part, prefix) for name, part in self._leaves.shape.items()}
        self._result = result = apply(links, columns_of(shape, self.frame))
        self._headers = Headers(result.header_edits)
        types = {"key": result.key_schema or result.key_shape, "value": result.value_schema or result.value_shape}
        schemas = {**_SCHEMAS, **types}
        asked = [(name, getattr(result, name), schema) for name, schema in schemas.items() if is_expression(getattr(result, name))]
        for name, column in self._headers.columns.items():
            asked.append((name, column, self._headers.schemas.get(name, Schema.OPTIONAL_BOOLEAN)))
        self.outputs = [(f"{prefix}_{name}", column, schema) for name, column, schema in asked]

    def leaves(self):
        """(a leaf of that name, its array) for each."""
        for leaf in (leaf for part in self._leaves.shape.values() for leaf in leaves_in(part)):
            yield Leaf(f"{self.prefix}_{leaf.name}", leaf.schema, leaf.nullable), self._leaves.arrow(leaf)

    def outcome(self, results):
        count, result = self.frame.count, self._result

        def untouched(column, changed):
            return column if changed is None else None  # of no known type

        def found(name, otherwise=None):
            return results.get(f"{self.prefix}_{name}", otherwise)

        # Where Spark says null of a mask, the row is for the rows engine, as in the plan.
        headers = self._headers.edited(self.frame, found, lambda name: np.array([mask is not False for mask in found(name)]))
        times = found("timestamp")
        changed = self.frame.with_(
            topic=found("topic", result.topic),
            partition=found("partition", result.partition),
            timestamps=None if times is None else np.array([NO_TIMESTAMP if time is None else time for time in times], np.int64),
            key=found("key", untouched(self.frame.key, result.key)),
            key_schema=result.key_schema,
            value=found("value", untouched(self.frame.value, result.value)),
            value_schema=result.value_schema,
            headers=headers,
        )
        made = []
        for record, kept, bad in zip(records_of(changed, self._records), found("keep", [True] * count), found("failed", [False] * count)):
            made.append(LeftToRows("the row is marked for the rows engine") if bad is not False else record if kept is not False else None)
        return made


def _renamed(part, prefix):
    if isinstance(part, Leaf):
        return Leaf(f"{prefix}_{part.name}", part.schema, part.nullable)
    return tuple(_renamed(inner, prefix) for inner in part) if isinstance(part, tuple) else part


class _Joined:
    """The leaves of all chains as those of one frame."""

    def __init__(self, chains):
        pairs = [pair for chain in chains for pair in chain.leaves()]
        self.columns = {leaf.name: array for leaf, array in pairs}
        self.count = chains[0].frame.count
        self.frame = ColumnBatch(self.count, "together")
        unknown = {"topic": "together", "partition": None, "timestamp": Leaves.NULL, "offset": Leaves.NULL, "key": Leaves.UNKNOWN}
        self.shape = {**unknown, "value": Leaves.UNKNOWN, "header_names": Leaves.NULL, "of all chains": tuple(leaf for leaf, _ in pairs)}

    def arrow(self, leaf):
        return self.columns[leaf.name]


class _Together(Transform):
    """All outputs of all chains, each as a header."""

    def __init__(self, outputs):
        self._outputs = outputs

    def columns(self, columns):
        edits = [HeaderEdit(added=Header(name, column, schema)) for name, column, schema in self._outputs]
        return columns.with_header_edits(*edits)
