"""DropHeaders: take headers off."""

from standalone import HIGH, LIST, ConfigDef, HeaderEdit, Option, Transform
from standalone.transforms import field_path


class DropHeaders(Transform):
    """Take off all headers of these names.

    headers=trace      headers trace=1, host=web1, trace=2  ->  headers host=web1
    """

    java_name = "org.apache.kafka.connect.transforms.DropHeaders"
    config_def = ConfigDef(
        Option("headers", LIST, HIGH, "Names of the headers to take off.", check=field_path.field_names),
    )

    def computes(self):
        return False

    def configure(self, config):
        self.headers = frozenset(config["headers"])

    # Row meaning: the truth.
    def apply(self, record):
        return record.with_(headers=tuple(header for header in record.headers if header.name not in self.headers))

    # Column meaning: the same names for all.
    def columns(self, columns):
        return columns.with_header_edits(HeaderEdit(dropped=self.headers))
