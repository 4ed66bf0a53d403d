import pyarrow as pa
import pytest

from standalone import Columns, F, NoColumns, SourceRecord
from standalone.data.arrow import arrow_type
from standalone.pipeline.spark.columns import SparkColumns


@pytest.fixture
def check_shape(spark_holder):
    """check_shape(transform, values, shape): maps that all have one shape become by columns what they become by rows.

    `by_columns=False` says that there is no columnar form for them.
    """
    def check(transform, values, shape, by_columns=True):
        sent = spark_holder.ready().createDataFrame(pa.table({"v": pa.array(values, arrow_type(shape))}))
        try:
            made = transform.columns(Columns(topic="t", value=F.col("v"), value_shape=shape))
        except NoColumns as reason:
            assert not by_columns, reason
            return
        assert by_columns
        records = [transform.apply(SourceRecord("t", value)) for value in values]
        for part in ("key", "value"):
            if getattr(made, part) is None:
                continue
            assert getattr(made, f"{part}_schema") is None
            selected = sent.select(SparkColumns().of(getattr(made, part)).alias("part"))
            assert selected.toArrow()["part"].to_pylist() == [getattr(record, part) for record in records]
            assert selected.toArrow().schema.field("part").type == arrow_type(getattr(made, f"{part}_shape"))
        if made.failed is not None:
            assert not any(row[0] for row in sent.select(SparkColumns().of(made.failed)).collect())

    return check
