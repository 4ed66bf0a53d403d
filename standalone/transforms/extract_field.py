"""ExtractField: put one field in the place of the whole key or value."""

from standalone import BOOLEAN, MEDIUM, STRING, ConfigDef, DataError, FieldTransform, Option
from standalone.transforms import field_path
from standalone.transforms.struct_copy import column_at, left_to_rows


class ExtractField(FieldTransform):
    """Put one field of the key or value in its place.

    field=line                                           {"line": "foo"}  ->  "foo"
    field=user.name, field.syntax.version=V2             {"user": {"name": "Ann"}}  ->  "Ann"
    """

    java_name = "org.apache.kafka.connect.transforms.ExtractField"
    config_def = ConfigDef(
        Option("field", STRING, MEDIUM, "Name of the field that is taken out."),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Put the field's default in the place of its null.", default=True),
        field_path.SYNTAX,
    )

    def computes(self):
        return False

    def configure(self, config):
        self.field = config["field"]
        self.path = field_path.field_path(self.field, config)
        self.fills_defaults = config["replace.null.with.default"]
        self._found = (None, None)  # the last schema, and the schema of its field

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if schema is None:
            if value is None:
                return self.with_part(record, None, None)
            field_path.need_map(value, "ExtractField", self.where)
            return self.with_part(record, None, field_path.in_map(value, self.path))
        if value is not None:
            field_path.need_struct(value, "ExtractField", self.where)
        if schema is not self._found[0]:
            self._found = (schema, self._schema_of_field(schema))
        extracted = None if value is None else field_path.in_struct(value, self.path, self.fills_defaults)
        return self.with_part(record, self._found[1], extracted)

    def _schema_of_field(self, schema):
        field = field_path.field_at(schema, self.path)
        if field is None:
            names = ", ".join(each.name for each in schema.fields)
            raise DataError(f"ExtractField finds no field '{self.field}' in the {self.where}. Its fields: {names or 'none'}.")
        return field.schema

    # Column meaning: the field's column.
    def columns(self, columns):
        known, value, has_schema = self.known_part(columns)
        with left_to_rows(DataError):
            found = self._schema_of_field(known)
        extracted = column_at(value, known, self.path, self.fills_defaults and has_schema)
        return self.with_known_part(columns, found, extracted, [], has_schema)
