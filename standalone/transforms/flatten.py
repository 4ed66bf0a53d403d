"""Flatten: put the fields of nested structs and maps at the top, under names that tell where they were."""

from standalone import MEDIUM, STRING, BigInt, ConfigDef, DataError, F, FieldTransform, NoColumns, Option, Schema, Struct
from standalone.data.struct import validate_value
from standalone.transforms import expressions, field_path
from standalone.transforms.struct_copy import PerSchema, left_to_rows, struct_schema


class Flatten(FieldTransform):
    """Put the fields of nested structs and maps at the top; the delimiter joins the names on the way to each. Lists stay as they are.

    delimiter=.      {"user": {"name": "Ann", "age": 7}}  ->  {"user.name": "Ann", "user.age": 7}
    """

    java_name = "org.apache.kafka.connect.transforms.Flatten"
    config_def = ConfigDef(
        Option("delimiter", STRING, MEDIUM, "Stands between the names on the way to a field.", default="."),
    )

    def computes(self):
        return False

    def configure(self, config):
        self.delimiter = config["delimiter"]
        self._flattened = PerSchema(lambda schema: _Flattened(schema, self._joined))

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            field_path.need_map(value, "Flatten", self.where)
            flat = {}
            self._flatten_map(value, "", flat)
            return self.with_part(record, None, flat)
        field_path.need_struct(value, "Flatten", self.where)
        flattened = self._flattened[schema]
        return self.with_part(record, flattened.target, flattened.row(value))

    def _flatten_map(self, value, prefix, flat):
        for key, item in value.items():
            if prefix is None or not isinstance(key, str | None):
                where = f"the map '{prefix}'" if prefix else "the map"
                raise DataError(f"Flatten joins names that are texts; {where} has a {type(key).__name__} as a key.")
            name = f"{prefix}{self.delimiter}{'null' if key is None else key}" if prefix else key
            if isinstance(item, dict):
                self._flatten_map(item, name, flat)
            elif item is None or isinstance(item, _PLAIN) and not isinstance(item, BigInt):
                flat[name] = item
            else:
                raise DataError(f"Flatten cannot take a {type(item).__name__} without a schema; '{name}' holds one.")

    def _joined(self, prefix, name):
        return f"{prefix}{self.delimiter}{name}" if prefix else name

    # Column meaning: a struct of all leaves.
    def columns(self, columns):
        if self.is_null(columns):
            return columns
        known, value, has_schema = self.known_struct(columns)
        if has_schema:
            with left_to_rows(DataError):
                flattened = self._flattened[known]
            leaves, failed = flattened.leaves(value)
            target = flattened.target
        else:
            found, failed = {}, []
            self._leaves_of_shape(value, known, "", found)
            leaves = [leaf.alias(name) for name, (leaf, _) in found.items()]
            target = struct_schema([(name, shape) for name, (_, shape) in found.items()])

        # A null keeps its old schema beside rows that have the new one: the rows engine takes such rows.
        return self.with_known_part(columns, target, F.struct(*leaves), [value.isNull(), *failed], has_schema)

    def _leaves_of_shape(self, column, shape, prefix, leaves):
        """Fill `leaves`. Raises NoColumns where one is of a kind that is an error, or of a map that may not be there."""
        for field in shape.fields:
            name, part = self._joined(prefix, field.name), column.getField(field.name)
            if field.schema.type == "struct" and not field.schema.optional:
                self._leaves_of_shape(part, field.schema, name, leaves)
            elif field.schema.type in ("struct", "map") or field.schema.logical:
                raise NoColumns(f"'{name}' may be null, or holds what cannot be flattened")
            else:
                leaves[name] = (part, field.schema)


_PLAIN = (str, bool, int, float, bytes, bytearray, memoryview, list)


class _Flattened:
    """How structs of one schema are flattened, and the schema that they have then."""

    def __init__(self, schema, joined):
        self._joined = joined
        self._fields = []
        # (place in the source, default, place in the target, what to refuse, steps of the struct there)
        self._steps = self._steps_of(schema, "", schema.optional, schema.default)
        self.target = struct_schema(self._fields, like=schema)

    def _steps_of(self, schema, prefix, optional, default):
        steps = []
        for field in schema.fields:
            name, own = self._joined(prefix, field.name), field.schema
            is_optional = optional or own.optional
            own_default = own.default if own.default is not None or default is None else default.get(field.name)
            if own.type == "struct":
                steps.append((field, None, self._steps_of(own, name, is_optional, own_default)))
            elif own.type == "map":
                raise DataError(f"Flatten cannot take a map inside of a struct; '{name}' is one.")
            else:
                steps.append((field, len(self._fields), None))
                self._fields.append((name, _leaf_schema(own, is_optional, own_default)))
        return steps

    def row(self, struct):
        values = [None] * len(self._fields)
        self._fill(struct.values, self._steps, values)
        return Struct.trusted(self.target, values)

    def _fill(self, stored, steps, values):
        for field, at, below in steps:
            value = stored[field.index]
            if value is None:
                value = field.schema.default
            if below is not None:
                if value is not None:
                    self._fill(value.values, below, values)
                continue
            target = self._fields[at][1]
            if value is None and not target.optional or value is not None and target.type == "array":
                validate_value(target, value, self._fields[at][0])
            values[at] = value

    def leaves(self, column):
        """([named Spark columns], [where a value does not fit])."""
        named, failed = [], []
        self._collect(column, self._steps, named, failed)
        return named, failed

    def _collect(self, column, steps, named, failed):
        for field, at, below in steps:
            part = column.getField(field.name)
            if field.schema.default is not None:
                filled = F.coalesce(part, expressions.literal(field.schema.default, field.schema))
                part = F.when(column.isNotNull(), filled) if steps is not self._steps else filled
            if below is not None:
                self._collect(part, below, named, failed)
                continue
            name, target = self._fields[at]
            named.append(part.alias(name))
            failed.append(expressions.misfit(part, target))


def _leaf_schema(schema, optional, default):
    return Schema(
        schema.type,
        optional=optional,
        default=default,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        value_schema=schema.value_schema,
    )
