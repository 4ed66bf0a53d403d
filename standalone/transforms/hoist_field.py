"""HoistField: wrap the whole key or value in a field."""

from standalone import MEDIUM, NULL_IS_GIVEN, STRING, Change, ConfigDef, F, FieldTransform, Function, Option, SchemaBuilder, Struct
from standalone.transforms import expressions


class HoistField(FieldTransform):
    """Wrap the whole key or value in a single field: of a struct if there is a schema, otherwise of a map.

    field=line      "foo"  ->  {"line": "foo"}
    """

    java_name = "org.apache.kafka.connect.transforms.HoistField"
    config_def = ConfigDef(
        Option("field", STRING, MEDIUM, "Name of the only field of the new struct or map."),
    )

    nulls = NULL_IS_GIVEN

    def computes(self):
        return False

    def configure(self, config):
        self.does(_Hoist(config["field"]))


class _Hoist(Change):
    def __init__(self, name):
        self.name = name

    def of(self, schema, has_schema=True):
        return _Hoisted(SchemaBuilder.struct().field(self.name, schema).build(), has_schema)

    def bare(self, value):
        return {self.name: value}


class _Hoisted(Function):
    """A struct of one field."""

    def __init__(self, schema, checked):
        self.schema = schema
        self._checked = checked

    def row(self, value):
        return Struct.of_values(self.schema, (value,))

    def column(self, column):
        (field,) = self.schema.fields
        return F.struct(column.alias(field.name)), expressions.misfit(column, field.schema) if self._checked else None
