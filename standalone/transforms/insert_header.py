"""InsertHeader: add a header with a static value."""

from standalone import HIGH, STRING, ConfigDef, Header, HeaderEdit, Option
from standalone.data.values import parse
from standalone.stage import HeaderTransform
from standalone.transforms import field_path


class InsertHeader(HeaderTransform):
    """Add a header. Its literal is parsed as null, a boolean, a number, a date, a list or a map; anything else is a string.

    header=version, value.literal=3      headers host=web1  ->  headers host=web1, version=3
    """

    java_name = "org.apache.kafka.connect.transforms.InsertHeader"
    config_def = ConfigDef(
        Option("header", STRING, HIGH, "Name of the header.", check=field_path.not_null),
        Option("value.literal", STRING, HIGH, "What it says.", check=field_path.not_null),
    )

    def configure(self, config):
        schema, value = parse(config["value.literal"]) or (None, None)
        self.edit = HeaderEdit(added=Header(config["header"], value, schema))
