"""SetSchemaMetadata: change the schema's name or version."""

from standalone import (
    BOOLEAN,
    HIGH,
    INT,
    MEDIUM,
    NULL_IS_CHANGED,
    STRING,
    Change,
    ConfigDef,
    ConfigError,
    DataError,
    FieldTransform,
    NoColumns,
    Option,
)
from standalone.transforms.struct_copy import StructCopy


class SetSchemaMetadata(FieldTransform):
    """Change the name, the version, or both of a struct's schema.

    schema.name=shop.Order, schema.version=2      schema order  ->  schema shop.Order, version 2
    """

    java_name = "org.apache.kafka.connect.transforms.SetSchemaMetadata"
    config_def = ConfigDef(
        Option("schema.name", STRING, HIGH, "The new name.", default=None),
        Option("schema.version", INT, HIGH, "The new version.", default=None),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Replace a field's null by its default.", default=True),
    )

    nulls = NULL_IS_CHANGED

    def computes(self):
        return False

    def configure(self, config):
        given = {"name": config["schema.name"], "version": config["schema.version"]}
        if not any(value is not None for value in given.values()):
            raise ConfigError("SetSchemaMetadata has nothing to set. Give schema.name, schema.version or both.")
        changes = {what: value for what, value in given.items() if value is not None}
        self.does(_Renamed(changes, self.where, config["replace.null.with.default"]))


class _Renamed(Change):
    def __init__(self, changes, where, fills_defaults):
        self.changes = changes
        self.where = where
        self.fills_defaults = fills_defaults

    def of(self, schema, has_schema=True):
        if not has_schema:
            raise NoColumns("it is an error without a schema")
        if schema.type != "struct":
            raise DataError(f"SetSchemaMetadata works on structs; the {self.where} is a {schema.name or schema.type}.")
        return StructCopy(schema.with_(**self.changes), schema.fields, self.fills_defaults)

    def bare(self, value):
        raise DataError(f"SetSchemaMetadata needs a schema; the {self.where} has none.")
