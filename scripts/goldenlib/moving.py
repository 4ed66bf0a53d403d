"""Chains by the plan that needs no Spark, where there is one: what the pipeline runs from a batch's first rows on."""

from standalone.pipeline.frame import Leaves, NotColumns
from standalone.pipeline.meaning import Declined, NeedsSpark
from standalone.pipeline.plan import ColumnPlan
from standalone.testing import LeftToRows, frame_of, records_of


def transform_moving(links, records):
    """What becomes of records that are alike: a list, with None for one that is dropped and LeftToRows for one that is marked for the rows
    engine; or a LeftToRows for all of them."""
    frame = frame_of(records)
    try:
        leaves = Leaves(frame, set())
        plan = ColumnPlan(links, leaves, frame)
    except (NotColumns, Declined, NeedsSpark) as reason:
        return LeftToRows(str(reason))
    if not plan.is_compiled:
        return LeftToRows(plan.describe()[0].replace("not compiled yet, since Spark is not up", "Spark computes it"))
    changed, dropped, failed = plan.run(frame, leaves, None)
    made = records_of(changed, records)
    for row in range(frame.count):
        if failed is not None and failed[row]:
            made[row] = LeftToRows("the row is marked for the rows engine")
        elif dropped is not None and dropped[row]:
            made[row] = None
    return made
