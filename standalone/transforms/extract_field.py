"""ExtractField: replace the whole key or value by one of its fields."""

from standalone import BOOLEAN, MEDIUM, NULL_IS_GIVEN, STRING, Change, ConfigDef, DataError, FieldTransform, Option
from standalone.transforms import field_path
from standalone.transforms.struct_copy import FieldAt


class ExtractField(FieldTransform):
    """Replace the key or value by one of its fields.

    field=line                                           {"line": "foo"}  ->  "foo"
    field=user.name, field.syntax.version=V2             {"user": {"name": "Ann"}}  ->  "Ann"
    """

    java_name = "org.apache.kafka.connect.transforms.ExtractField"
    config_def = ConfigDef(
        Option("field", STRING, MEDIUM, "Name of the field to extract."),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Replace the field's null by its default.", default=True),
        field_path.SYNTAX,
    )

    nulls = NULL_IS_GIVEN

    def computes(self):
        return False

    def configure(self, config):
        self.does(_Extract(field_path.field_path(config["field"], config), self.where, config["replace.null.with.default"]))


class _Extract(Change):
    def __init__(self, path, where, fills_defaults):
        self.path = path
        self.where = where
        self.fills_defaults = fills_defaults

    def of(self, schema, has_schema=True):
        if schema.type != "struct":
            found = schema.name or schema.type
            raise DataError(f"ExtractField needs a struct where the {self.where} has a schema; found a {found}.")
        return FieldAt(self.path, schema, self.fills_defaults and has_schema, "ExtractField", self.where)

    def bare(self, value):
        if value is None:
            return None
        field_path.need_map(value, "ExtractField", self.where)
        return field_path.in_map(value, self.path)
