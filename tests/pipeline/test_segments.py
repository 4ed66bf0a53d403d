"""How a chain is cut into segments, and what a segment of expressions does with a batch: which rows it makes, drops and leaves to rows."""

import numpy as np
import pipeline_stages as stages
import pytest
from pytest import param

from standalone import ByteColumn, F, Schema, SchemaBuilder, Transform
from standalone.pipeline.chain import Link
from standalone.pipeline.columns import segments
from standalone.pipeline.columns.batch import ColumnBatch
from standalone.pipeline.columns.segments import MOST_FAILED_JOBS, ByRows, Expressions, segments_of
from standalone.pipeline.spark.job import SparkGone
from standalone.predicates.record_is_tombstone import RecordIsTombstone
from standalone.stage import Predicate
from standalone.transforms.sql import Sql


class OnlyRowsPredicate(Predicate):
    """Has no columnar form."""

    def test(self, record):
        return True


def kinds(*links):
    """The segments in words: the kind and the links of each."""
    links = [Link(str(at), *link) if isinstance(link, tuple) else Link(str(at), link) for at, link in enumerate(links)]
    found = segments_of(
        links,
        lambda low, run: ("expressions", low, low + len(run)),
        lambda low, link: ("sql", low, low + 1),
        lambda low, run: ("python", low, low + len(run)),
        lambda link: not link.transform.stateless,
    )
    return " ".join(f"{kind}:{low}-{high}" for kind, low, high in found)


SQL = Sql.of({"statement": "SELECT * FROM record"})


@pytest.mark.parametrize(
    "links, cut",
    [
        param([], "", id="no links"),
        param([stages.Wrap(), stages.Louder()], "expressions:0-2", id="links with columnar forms go together"),
        param([stages.OnlyRows(), stages.OnlyRows()], "python:0-2", id="those without go together"),
        param([stages.OnlyRows(), stages.Number(), stages.Number()], "python:0-1 python:1-3", id="but not with those that remember"),
        param([SQL, SQL], "sql:0-1 sql:1-2", id="each statement is alone"),
        param([stages.Wrap(), stages.OnlyRows(), SQL, stages.Louder()], "expressions:0-1 python:1-2 sql:2-3 expressions:3-4", id="all kinds"),
        param([(stages.Wrap(), OnlyRowsPredicate())], "python:0-1", id="a predicate without a columnar form takes its link along"),
        param([(stages.Wrap(), RecordIsTombstone.of({}))], "expressions:0-1", id="a predicate with one does not"),
    ],
)
def test_a_chain_is_cut_where_the_kind_of_link_changes(links, cut):
    assert kinds(*links) == cut


class KeepFirst(Transform):
    """Keeps what is not null, without anything to compute."""

    def columns(self, columns):
        return columns.with_(keep=columns.value.isNotNull())


class FailNull(Transform):
    """Leaves what is null to rows."""

    def columns(self, columns):
        return columns.with_(failed=columns.value.isNull())


def texts(*items):
    return ColumnBatch(len(items), "t", value=ByteColumn.of(items), value_schema=Schema.OPTIONAL_STRING)


def segment(*transforms, worth=lambda count: True, holder=None):
    return Expressions(0, [Link(str(at), transform) for at, transform in enumerate(transforms)], holder, worth)


def ran(segment, batch):
    made, rows, redo = segment.run(batch)
    return made.count, None if rows is None else rows.tolist(), redo.tolist()


@pytest.mark.parametrize(
    "transforms, items, found",
    [
        param([stages.Rename()], [b"a", None], (2, None, []), id="all rows, as they were"),
        param([KeepFirst()], [b"a", None, b"b"], (2, [0, 2], []), id="what is dropped is in neither"),
        param([FailNull()], [b"a", None, b"b"], (2, [0, 2], [1]), id="what rows must do"),
        param([FailNull(), KeepFirst()], [None, b"a"], (1, [1], [0]), id="what rows must do is not dropped"),
        param([KeepFirst()], [None, None], (0, [], []), id="nothing is left"),
    ],
)
def test_a_segment_says_of_each_row_what_became_of_it(transforms, items, found):
    assert ran(segment(*transforms), texts(*items)) == found


def test_what_computes_goes_by_rows_where_it_is_not_worth_a_job():
    louder = segment(stages.Louder(), worth=lambda count: count > 3)
    assert louder.needs_job(texts(b"a")) and not louder.is_free
    with pytest.raises(ByRows, match="too small for a Spark job, or Spark is not up"):
        louder.run(texts(b"a"))


@pytest.mark.parametrize("transform, reason", [(stages.OnlyRows(), "no columnar form"), (stages.Broken(), "could not be compiled")])
def test_what_cannot_be_said_in_columns_goes_by_rows_and_says_why(transform, reason):
    each = segment(transform)
    with pytest.raises(ByRows, match=reason):
        each.run(texts(b"a"))
    assert reason in "\n".join(each.describe()) and "by rows:" in "\n".join(each.describe())


def test_batches_of_one_shape_share_a_plan_and_too_many_shapes_are_let_go(monkeypatch):
    monkeypatch.setattr(segments, "MOST_PLANS", 2)
    rename = segment(stages.Rename())
    for topic in ("a", "a", "b"):
        rename.run(texts(b"x").with_(topic=topic))
    assert [line.strip() for line in rename.describe() if "topic" in line and "key" in line][0].startswith("topic a")
    assert len(rename._plans) == 2
    rename.run(texts(b"x").with_(topic="c"))
    assert len(rename._plans) == 2 and "topic a," not in "\n".join(rename.describe())


class Failing:
    """A holder of Spark in which each job raises."""

    cores = 1

    def __init__(self, error):
        self.error, self.jobs = error, 0

    def job(self):
        self.jobs += 1
        raise self.error


def test_a_plan_whose_jobs_fail_again_and_again_is_left_to_rows():
    holder = Failing(RuntimeError("the job fails"))
    louder = segment(stages.Louder(), holder=holder)
    for _ in range(MOST_FAILED_JOBS):
        with pytest.raises(RuntimeError):
            louder.run(texts(b"a"))
    with pytest.raises(ByRows, match=f"failed {MOST_FAILED_JOBS} times, last with RuntimeError"):
        louder.run(texts(b"a"))
    assert holder.jobs == MOST_FAILED_JOBS


def test_that_spark_is_gone_is_no_fault_of_the_plan():
    holder = Failing(SparkGone("its Java process ended"))
    louder = segment(stages.Louder(), holder=holder)
    for _ in range(3 * MOST_FAILED_JOBS):
        with pytest.raises(SparkGone):
            louder.run(texts(b"a"))
    assert holder.jobs == 3 * MOST_FAILED_JOBS


def test_only_leaves_that_are_read_are_sent():
    class Both(Transform):
        def columns(self, columns):
            made = F.struct(columns.value.alias("as it was"), F.upper(columns.value).alias("louder"))
            schema = SchemaBuilder.struct().field("as it was", Schema.OPTIONAL_STRING).field("louder", Schema.OPTIONAL_STRING).build()
            return columns.with_(value=made, value_schema=schema)

    batch = texts(b"a").with_(key=ByteColumn.of([b"k"]), key_schema=Schema.STRING, timestamps=np.array([1]))
    each = segment(Both())
    assert each.needs_job(batch)
    (sent,) = (line.strip() for line in each.describe() if "Spark gets" in line)
    assert sent.startswith("Spark gets v: ") and sent.endswith(" = upper(v)")
