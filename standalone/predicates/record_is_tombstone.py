"""RecordIsTombstone: whether a record's value is null."""

from standalone import ConfigDef, NoColumns, Predicate


class RecordIsTombstone(Predicate):
    """True of records whose value is null."""

    java_name = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"
    config_def = ConfigDef()

    # Row meaning: the truth.
    def test(self, record):
        return record.value is None

    # Column meaning: the same.
    def columns(self, columns):
        if "value" in columns.nulls:
            return True
        if columns.value is None:
            raise NoColumns("the value has no schema, and not all rows are known to have one shape")
        return columns.value.isNull()
