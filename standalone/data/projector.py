"""Project a value to another version of its schema, like Kafka Connect's SchemaProjector, for sinks whose tables evolve."""

from standalone.data import schema as s
from standalone.data.java_numbers import narrowed, to_single
from standalone.data.map_key import as_key
from standalone.data.scalars import WIDTHS, Float32
from standalone.data.struct import Struct
from standalone.errors import SchemaProjectorError

_WIDER = (s.INT8, s.INT16, s.INT32, s.INT64, s.FLOAT32, s.FLOAT64)  # each may be widened to any later one


def project(source, value, target):
    """Convert the value from schema `source` to schema `target`. Raise SchemaProjectorError.

    Fields missing in the target are dropped, new ones take their default, numbers are widened. A null stays null if the target is
    optional, and becomes its default if not.
    """
    _check_compatible(source, target)
    if source.optional and not target.optional:
        if target.default is None:
            raise SchemaProjectorError(f"{_name(source)} may be null, {_name(target)} may not and has no default: give it one or make it optional.")
        if value is None:
            return target.default
    if value is None:
        return None
    if target.type == s.STRUCT:
        return _struct(source, value, target)
    if target.type == s.ARRAY:
        return [project(source.value_schema, item, target.value_schema) for item in value]
    if target.type == s.MAP:
        return {
            as_key(project(source.key_schema, key, target.key_schema)): project(source.value_schema, item, target.value_schema)
            for key, item in value.items()
        }
    return _widened(source, value, target)


def _check_compatible(source, target):
    if source.type != target.type and not _can_widen(source.type, target.type):
        raise SchemaProjectorError(f"A {_name(source)} cannot become a {_name(target)}: only numbers change their type, to a wider one.")
    if source.name != target.name:
        raise SchemaProjectorError(f"A schema named {source.name} cannot become one named {target.name}.")
    if source.parameters != target.parameters:
        raise SchemaProjectorError(f"{_name(source)} has the parameters {source.parameters}, the target {target.parameters}: they must be equal.")


def _can_widen(source, target):
    return source in _WIDER and target in _WIDER and _WIDER.index(source) <= _WIDER.index(target)


def _widened(source, value, target):
    if source.type == target.type or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if target.type in WIDTHS:
        return narrowed(value, target.type)
    if target.type == s.FLOAT64:
        return float(value)
    return value if isinstance(value, Float32) else to_single(value)


def _struct(source, value, target):
    projected = Struct(target)
    for field in target.fields:
        held = source.field(field.name)
        if held is not None:
            try:
                projected.put(field.name, project(held.schema, value.get(field.name), field.schema))
            except SchemaProjectorError as error:
                raise SchemaProjectorError(f"Field '{field.name}': {error}") from error
        elif field.schema.default is not None and not field.schema.optional:
            projected.put(field.name, field.schema.default)
        elif not field.schema.optional:
            raise SchemaProjectorError(f"Field '{field.name}' is new and required, and has no default: give it one or make it optional.")
    return projected


def _name(schema):
    return schema.name or schema.type
