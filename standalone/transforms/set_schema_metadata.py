"""SetSchemaMetadata: give the schema another name or version."""

from standalone import (
    BOOLEAN,
    HIGH,
    INT,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    DataError,
    F,
    FieldTransform,
    NoColumns,
    Option,
    Struct,
)
from standalone.stage import PerSchema
from standalone.transforms import expressions
from standalone.transforms.struct_copy import StructCopy


class SetSchemaMetadata(FieldTransform):
    """Give the schema of a struct another name, another version, or both; what is not given stays.

    schema.name=shop.Order, schema.version=2      schema order  ->  schema shop.Order, version 2
    """

    java_name = "org.apache.kafka.connect.transforms.SetSchemaMetadata"
    config_def = ConfigDef(
        Option("schema.name", STRING, HIGH, "The new name.", default=None),
        Option("schema.version", INT, HIGH, "The new version.", default=None),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Put a field's default in the place of its null.", default=True),
    )

    def computes(self):
        return False

    def configure(self, config):
        given = {"name": config["schema.name"], "version": config["schema.version"]}
        if not any(value is not None for value in given.values()):
            raise ConfigError("SetSchemaMetadata has nothing to set. Give schema.name, schema.version or both.")
        self.changes = {what: value for what, value in given.items() if value is not None}
        self.fills_defaults = config["replace.null.with.default"]
        self._copies = PerSchema(self._copy)

    def _copy(self, schema):
        if schema.type != "struct":
            raise DataError(f"SetSchemaMetadata works on structs; the {self.where} is a {schema.name or schema.type}.")
        return StructCopy(schema.with_(**self.changes), schema.fields, self.fills_defaults)

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if schema is None:
            if value is None:
                return record
            raise DataError(f"SetSchemaMetadata needs a schema; the {self.where} has none.")
        copy = self._copies[schema]
        return self.with_part(record, copy.schema, copy.row(value) if isinstance(value, Struct) else value)

    # Column meaning: the same column under another schema.
    def columns(self, columns):
        schema, value, has_schema = self.known_struct(columns)
        if not has_schema:
            raise NoColumns("it is an error without a schema")
        copied, failed = self._copies[schema].column(value)
        present = value.isNotNull()
        if schema.optional:
            copied = F.when(present, copied)
            failed = None if failed is None else present & failed
        else:
            failed = expressions.any_of([failed, ~present])
        return self.with_known_part(columns, self._copies[schema].schema, copied, [failed], has_schema)
