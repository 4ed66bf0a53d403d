"""ValueToKey: make the key of fields of the value."""

from standalone import BOOLEAN, HIGH, LIST, MEDIUM, ConfigDef, DataError, F, NoColumns, Option, Struct, Transform
from standalone.stage import PerSchema, left_to_rows
from standalone.transforms import expressions, field_path
from standalone.transforms.struct_copy import column_at, struct_schema


class ValueToKey(Transform):
    """Make a new key of these fields of the value. With nested paths each has the last name of its path.

    fields=id      value {"id": 7, "item": "nut"}  ->  key {"id": 7}, the value as it was
    """

    java_name = "org.apache.kafka.connect.transforms.ValueToKey"
    config_def = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the value's fields that make the key.", check=field_path.field_names),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Put a field's default in the place of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

    def computes(self):
        return False

    def configure(self, config):
        self.paths = [field_path.field_path(name, config) for name in dict.fromkeys(config["fields"])]
        self.fills_defaults = config["replace.null.with.default"]
        self._key_schemas = PerSchema(self._key_schema)

    def _key_schema(self, schema):
        fields = []
        for path in self.paths:
            field = field_path.field_at(schema, path)
            if field is None:
                names = ", ".join(each.name for each in schema.fields)
                raise DataError(f"ValueToKey finds no field '{'.'.join(path)}' in the value. Its fields: {names or 'none'}.")
            fields.append((field.name, field.schema))
        return struct_schema(fields)

    # Row meaning: the truth.
    def apply(self, record):
        value = record.value
        if record.value_schema is None:
            field_path.need_map(value, "ValueToKey", "value")
            return record.with_(key_schema=None, key={path[-1]: field_path.in_map(value, path) for path in self.paths})
        field_path.need_struct(value, "ValueToKey", "value")
        key_schema = self._key_schemas[value.schema]
        key = Struct(key_schema)
        for field, path in zip(key_schema.fields, self.paths):
            key.put(field.name, field_path.in_struct(value, path, self.fills_defaults))
        return record.with_(key_schema=key_schema, key=key)

    # Column meaning: a struct of some of the value's columns.
    def columns(self, columns):
        schema, value = columns.value_schema, columns.value
        known = schema or columns.value_shape
        if value is None or known is None:
            raise NoColumns("the value has no schema, and not all rows are known to have one shape")
        with left_to_rows(DataError):
            key_schema = self._key_schema(known)
        parts, failed = [], [columns.failed, value.isNull()]
        for field, path in zip(key_schema.fields, self.paths):
            part = column_at(value, known, path, self.fills_defaults and schema is not None)
            failed.append(None if schema is None else expressions.misfit(part, field.schema))
            parts.append(part.alias(field.name))
        changes = {"key": F.struct(*parts), "key_schema": None, "key_shape": None, "failed": expressions.any_of(failed)}
        return columns.with_(**{**changes, "key_shape" if schema is None else "key_schema": key_schema})
