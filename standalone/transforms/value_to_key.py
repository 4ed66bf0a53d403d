"""ValueToKey: set the key to fields of the value."""

from standalone import (
    BOOLEAN,
    HIGH,
    LIST,
    MEDIUM,
    NULL_IS_REFUSED,
    Change,
    ConfigDef,
    DataError,
    F,
    FieldTransform,
    Function,
    Option,
    Struct,
)
from standalone.transforms import expressions, field_path
from standalone.transforms.struct_copy import FieldAt, struct_schema


class ValueToKey(FieldTransform):
    """Create a new key from these fields of the value. A nested field is named by the last part of its path.

    fields=id      value {"id": 7, "item": "nut"}  ->  key {"id": 7}, the value as it was
    """

    java_name = "org.apache.kafka.connect.transforms.ValueToKey"
    config_def = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the value's fields for the key.", check=field_path.field_names),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Replace a field's null by its default.", default=True),
        field_path.OWN_SYNTAX,
    )

    where = "value"
    nulls = NULL_IS_REFUSED

    def computes(self):
        return False

    def configure(self, config):
        paths = [field_path.field_path(name, config) for name in dict.fromkeys(config["fields"])]
        self.does(_Key(paths, config["replace.null.with.default"]))

    # The result becomes the key.
    def with_part(self, record, schema, value):
        return record.with_key(schema, value)

    def with_known_part(self, columns, known, column, failed, has_schema):
        parts = {"key": column, "key_schema": known if has_schema else None, "key_shape": None if has_schema else known}
        return columns.with_(**parts, failed=expressions.any_of([columns.failed, *failed]))


class _Key(Change):
    def __init__(self, paths, fills_defaults):
        self.paths = paths
        self.fills_defaults = fills_defaults

    def of(self, schema, has_schema=True):
        if schema.type != "struct":
            found = schema.name or schema.type
            raise DataError(f"ValueToKey needs a struct where the value has a schema; found a {found}.")
        fills = self.fills_defaults and has_schema
        return _StructOf([FieldAt(path, schema, fills, "ValueToKey", "value") for path in self.paths], has_schema)

    def bare(self, value):
        field_path.need_map(value, "ValueToKey", "value")
        return {path[-1]: field_path.in_map(value, path) for path in self.paths}


class _StructOf(Function):
    """A struct of these fields of another one."""

    def __init__(self, fields, checked):
        self._fields = fields
        self._checked = checked  # False for a shape, which is not validated
        self.schema = struct_schema([(field.name, field.schema) for field in fields])

    def row(self, value):
        made = Struct(self.schema)
        for field in self._fields:
            made.put(field.name, field.row(value))
        return made

    def column(self, column):
        parts = [(field, field.column(column)[0]) for field in self._fields]
        failed = [expressions.misfit(part, field.schema) for field, part in parts] if self._checked else []
        return F.struct(*(part.alias(field.name) for field, part in parts)), expressions.any_of(failed)
