"""DropHeaders: remove headers."""

from standalone import HIGH, LIST, ConfigDef, HeaderEdit, Option
from standalone.stage import HeaderTransform
from standalone.transforms import field_path


class DropHeaders(HeaderTransform):
    """Remove all headers with these names.

    headers=trace      headers trace=1, host=web1, trace=2  ->  headers host=web1
    """

    java_name = "org.apache.kafka.connect.transforms.DropHeaders"
    config_def = ConfigDef(
        Option("headers", LIST, HIGH, "Names of the headers to drop.", check=field_path.field_names),
    )

    def configure(self, config):
        self.edit = HeaderEdit(dropped=frozenset(config["headers"]))
