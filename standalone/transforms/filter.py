"""Filter: drop records."""

from standalone import ConfigDef, Transform


class Filter(Transform):
    """Drop every record that it is given: the predicate at this link says which those are."""

    java_name = "org.apache.kafka.connect.transforms.Filter"
    config_def = ConfigDef()

    # Row meaning: the truth.
    def apply(self, record):
        return None

    # Column meaning: keep no row.
    def columns(self, columns):
        from pyspark.sql import functions as F

        return columns.with_(keep=F.lit(False))
