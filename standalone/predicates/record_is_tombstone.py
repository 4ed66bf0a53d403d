"""RecordIsTombstone: whether a record's value is null."""

from standalone import ConfigDef, Predicate


class RecordIsTombstone(Predicate):
    """True of records whose value is null."""

    java_name = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"
    config_def = ConfigDef()

    # Row meaning: the truth.
    def test(self, record):
        return record.value is None

    # Column meaning: the same.
    def columns(self, columns):
        return None if columns.value is None else columns.value.isNull()
