"""HoistField: wrap the whole key or value into a field."""

from standalone import MEDIUM, STRING, ConfigDef, DataError, F, FieldTransform, Option, SchemaBuilder, Struct
from standalone.transforms import expressions
from standalone.transforms.struct_copy import PerSchema, left_to_rows


class HoistField(FieldTransform):
    """Wrap the whole key or value into one field: of a struct where there is a schema, of a map where there is none.

    field=line      "foo"  ->  {"line": "foo"}
    """

    java_name = "org.apache.kafka.connect.transforms.HoistField"
    config_def = ConfigDef(
        Option("field", STRING, MEDIUM, "Name of the only field of the struct or map that is made."),
    )

    def computes(self):
        return False

    def configure(self, config):
        self.field = config["field"]
        self._schemas = PerSchema(lambda schema: SchemaBuilder.struct().field(self.field, schema).build())

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if schema is None:
            return self.with_part(record, None, {self.field: value})
        hoisted = self._schemas.of(schema)
        return self.with_part(record, hoisted, Struct.of_values(hoisted, (value,)))

    # Column meaning: a struct of one field.
    def columns(self, columns):
        known, value, has_schema = self.known_part(columns)
        with left_to_rows(DataError):
            hoisted = self._schemas[known]
        failed = expressions.misfit(value, known) if has_schema else None
        return self.with_known_part(columns, hoisted, F.struct(value.alias(self.field)), [failed], has_schema)
