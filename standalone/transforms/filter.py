"""Filter: drop records."""

from standalone import ConfigDef, F, Transform


class Filter(Transform):
    """Drop every record that it is given: the predicate at this link says which those are."""

    java_name = "org.apache.kafka.connect.transforms.Filter"
    config_def = ConfigDef()

    def computes(self):
        return False

    # Row form: the truth.
    def apply(self, record):
        return None

    # Columnar form: keep no row.
    def columns(self, columns):
        return columns.with_(keep=F.lit(False))
