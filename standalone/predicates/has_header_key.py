"""HasHeaderKey: whether a record has a header of that name."""

from standalone import MEDIUM, STRING, ConfigDef, Option, Predicate, non_empty


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

    # Column meaning: headers are no column, so there is one where there are none.
    def columns(self, columns):
        return None if columns.has_headers else False
