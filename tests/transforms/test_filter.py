"""Filter: every record is dropped, by rows and by columns."""

import pytest

from standalone import Schema, SourceRecord
from standalone.testing import check_transform
from standalone.transforms.filter import Filter


@pytest.mark.spark
def test_every_record_is_dropped(spark_holder):
    check_transform(Filter.of(), SourceRecord("t", "v", value_schema=Schema.STRING), None, spark_holder)


def test_a_null_too():
    check_transform(Filter.of(), SourceRecord("t", None), None)
