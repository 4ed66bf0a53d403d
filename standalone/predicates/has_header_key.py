"""HasHeaderKey: whether a record has a header with the given name."""

from standalone import MEDIUM, STRING, ConfigDef, F, Fact, Option, Predicate, non_empty


class HasHeaderKey(Predicate):
    """True for records with at least one header of the given name."""

    java_name = "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"
    config_def = ConfigDef(
        Option("name", STRING, MEDIUM, "The header's name.", check=non_empty),
    )

    def configure(self, config):
        self.asks(_HasHeader(config["name"]))


class _HasHeader(Fact):
    def __init__(self, name):
        self.name = name

    def row(self, record):
        return any(header.name == self.name for header in record.headers)

    def column(self, columns, has_schema):
        """The rows' original header names, and the edits of the preceding links."""
        has_it = False if columns.header_names is None else F.array_contains(columns.header_names, self.name)
        for edit in columns.header_edits:
            said = edit.tells_of(self.name)
            if said is not None:
                has_it = said if edit.where is None else F.when(edit.where, F.lit(said)).otherwise(has_it)
        return has_it, None
