"""HoistField: wrap the whole key or value into a field."""

from standalone import MEDIUM, STRING, ConfigDef, FieldTransform, Option, SchemaBuilder, Struct
from standalone.transforms import spark


class HoistField(FieldTransform):
    """Wrap the whole key or value into one field: of a struct where there is a schema, of a map where there is none.

    field=line      "foo"  ->  {"line": "foo"}
    """

    java_name = "org.apache.kafka.connect.transforms.HoistField"
    config_def = ConfigDef(
        Option("field", STRING, MEDIUM, "Name of the only field of the struct or map that is made."),
    )

    def configure(self, config):
        self.field = config["field"]
        self._schemas = {}

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if schema is None:
            return self.with_part(record, None, {self.field: value})
        hoisted = self._hoisted(schema)
        return self.with_part(record, hoisted, Struct(hoisted, {self.field: value}))

    # Column meaning: a struct of one field.
    def columns(self, columns):
        from pyspark.sql import functions as F

        schema, value = self.part(columns)
        shape = getattr(columns, f"{self.where}_shape")
        if value is None or not (schema or shape) or not self.field:
            return None  # no type is known, or no such field can be built
        hoisted = self._hoisted(schema or shape)
        changes = {self.where: F.struct(value.alias(self.field))}
        if schema is None:
            return columns.with_(**changes, **{f"{self.where}_shape": hoisted})
        failed = spark.any_of([columns.failed, spark.misfit(value, schema)])
        return columns.with_(**changes, **{f"{self.where}_schema": hoisted, "failed": failed})

    def _hoisted(self, schema):
        hoisted = self._schemas.get(schema)
        if hoisted is None:
            hoisted = self._schemas[schema] = SchemaBuilder.struct().field(self.field, schema).build()
        return hoisted
