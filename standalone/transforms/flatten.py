"""Flatten: move the fields of nested structs and maps to the top level, named by their paths."""

from standalone import MEDIUM, STRING, BigInt, Change, ConfigDef, DataError, F, FieldTransform, Function, NoColumns, Option, Schema, Struct
from standalone.data.struct import validate_value
from standalone.transforms import expressions, field_path
from standalone.transforms.struct_copy import struct_schema


class Flatten(FieldTransform):
    """Move the fields of nested structs and maps to the top level; the delimiter joins the names of each path. Lists are not flattened.

    delimiter=.      {"user": {"name": "Ann", "age": 7}}  ->  {"user.name": "Ann", "user.age": 7}
    """

    java_name = "org.apache.kafka.connect.transforms.Flatten"
    config_def = ConfigDef(
        Option("delimiter", STRING, MEDIUM, "Separator between the names of nested fields.", default="."),
    )

    def computes(self):
        return False

    def configure(self, config):
        self.delimiter = config["delimiter"]
        self.does(_Flattening(self))

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


_PLAIN = (str, bool, int, float, bytes, bytearray, memoryview, list)


class _Flattening(Change):
    def __init__(self, transform):
        self._transform = transform

    def of(self, schema, has_schema=True):
        where, joined = self._transform.where, self._transform._joined
        if schema.type != "struct":
            raise DataError(f"Flatten needs a struct where the {where} has a schema; found a {schema.name or schema.type}.")
        return (_Flattened if has_schema else _FlattenedShape)(schema, joined)

    def bare(self, value):
        field_path.need_map(value, "Flatten", self._transform.where)
        flat = {}
        self._transform._flatten_map(value, "", flat)
        return flat


class _Flattened(Function):
    """The flattening of structs with one schema, and the resulting schema."""

    def __init__(self, schema, joined):
        self._joined = joined
        self._fields = []
        # (index in the source, default, index in the target, error, steps of the nested struct)
        self._steps = self._steps_of(schema, "", schema.optional, schema.default)
        self.schema = struct_schema(self._fields, like=schema)

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
        return Struct.trusted(self.schema, values)

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

    def column(self, column):
        named, failed = [], []
        self._collect(column, self._steps, named, failed)
        return F.struct(*named), expressions.any_of(failed)

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


class _FlattenedShape(Function):
    """The flattening of maps with one shape."""

    def __init__(self, shape, joined):
        self._joined = joined
        self._leaves = {}  # flattened name -> (path, shape); of duplicates the last wins
        self._collect(shape, "", ())
        self.schema = struct_schema([(name, shape) for name, (_, shape) in self._leaves.items()])

    def _collect(self, shape, prefix, path):
        """Raises NoColumns if a leaf has a type that is an error, or is in a map that may be missing."""
        for field in shape.fields:
            name, own = self._joined(prefix, field.name), field.schema
            if own.type == "struct" and not own.optional:
                self._collect(own, name, (*path, field.name))
            elif own.type in ("struct", "map") or own.logical:
                raise NoColumns(f"'{name}' may be null, or holds what cannot be flattened")
            else:
                self._leaves[name] = ((*path, field.name), own)

    def column(self, column):
        named = []
        for name, (path, _) in self._leaves.items():
            part = column
            for step in path:
                part = part.getField(step)
            named.append(part.alias(name))
        return F.struct(*named), None


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
