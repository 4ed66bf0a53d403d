"""HasHeaderKey: whether a record has a header of that name."""

from standalone import MEDIUM, STRING, ConfigDef, F, Option, Predicate, non_empty


class HasHeaderKey(Predicate):
    """True of records that have at least one header of that name."""

    java_name = "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"
    config_def = ConfigDef(
        Option("name", STRING, MEDIUM, "The header's name.", check=non_empty),
    )

    def configure(self, config):
        self.name = config["name"]

    # Row meaning: the truth.
    def test(self, record):
        return any(header.name == self.name for header in record.headers)

    # Column meaning: the names that the rows came with, and what the links before this one did to them.
    def columns(self, columns):
        has_it = False if columns.header_names is None else F.array_contains(columns.header_names, self.name)
        for edit in columns.header_edits:
            adds = edit.added is not None and edit.added.name == self.name
            if not adds and self.name not in edit.dropped:
                continue
            has_it = adds if edit.where is None else F.when(edit.where, F.lit(adds)).otherwise(has_it)
        return has_it
