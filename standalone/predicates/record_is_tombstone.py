"""RecordIsTombstone: whether a record's value is null."""

from standalone import ConfigDef, Fact, NoColumns, Predicate


class RecordIsTombstone(Predicate):
    """True for records whose value is null."""

    java_name = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"
    config_def = ConfigDef()

    def configure(self, config):
        self.asks(_Tombstone())


class _Tombstone(Fact):
    def row(self, record):
        return record.value is None

    def column(self, columns, has_schema):
        if "value" in columns.nulls:
            return True, None
        if columns.value is None:
            raise NoColumns("the value has no schema, and not all rows are known to have one shape")
        return columns.value.isNull(), None
