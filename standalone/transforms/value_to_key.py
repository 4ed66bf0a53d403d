"""ValueToKey: make the key of fields of the value."""

from standalone import BOOLEAN, HIGH, LIST, MEDIUM, ConfigDef, DataError, Option, Struct, Transform
from standalone.transforms import field_path, spark
from standalone.transforms.struct_copy import PerSchema, is_struct, struct_schema


class ValueToKey(Transform):
    """Make a new key of these fields of the value. With nested paths each has the last name of its path.

    fields=id      value {"id": 7, "item": "nut"}  ->  key {"id": 7}, the value as it was
    """

    java_name = "org.apache.kafka.connect.transforms.ValueToKey"
    config_def = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the value's fields that make the key.", check=field_path.field_names),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Put a field's default in the place of its null.", default=True),
        field_path.SYNTAX,
    )

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
        from pyspark.sql import functions as F

        schema, value = columns.value_schema, columns.value
        if value is None or not is_struct(schema or columns.value_shape):
            return None
        try:
            key_schema = self._key_schema(schema or columns.value_shape)
        except DataError:
            return None  # an error in every row, or in a map a null of no type
        parts, failed = [], [columns.failed, value.isNull()]
        for field, path in zip(key_schema.fields, self.paths):
            part = value
            for depth, name in enumerate(path):
                if depth and schema is not None and field_path.field_at(schema, path[:depth]).schema.default is not None:
                    return None  # a whole struct as the default of one on the way
                holder, part = part, part.getField(name)
            if schema is not None:
                if self.fills_defaults and field.schema.default is not None:
                    filled = F.coalesce(part, spark.literal(field.schema.default, field.schema))
                    part = F.when(holder.isNotNull(), filled) if len(path) > 1 else filled
                failed.append(spark.misfit(part, field.schema))
            parts.append(part.alias(field.name))
        changes = {"key": F.struct(*parts), "key_schema": None, "key_shape": None, "failed": spark.any_of(failed)}
        return columns.with_(**{**changes, "key_shape" if schema is None else "key_schema": key_schema})
