"""Filter: drop records."""

from standalone import ConfigDef, F, Transform


class Filter(Transform):
    """Drop all records, or those selected by this transform's predicate."""

    java_name = "org.apache.kafka.connect.transforms.Filter"
    config_def = ConfigDef()

    def computes(self):
        return False

    # Row form: the reference.
    def apply(self, record):
        return None

    # Columnar form: keep no row.
    def columns(self, columns):
        return columns.with_(keep=F.lit(False))
