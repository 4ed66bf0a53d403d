"""Schema evolution of file sinks (`schema.compatibility`).

NONE                 any change of the schema closes the file
BACKWARD and FULL    a newer version closes it; older values are projected to the file's version
FORWARD              an older version closes it; newer values are projected to the file's version

Schemaless values: a file accepts values that fit its columns, and a new field closes it.
"""

import pyarrow as pa

from connectors.storage.values import loosened, merged, null_of, of_schema
from standalone import DataError

NONE, BACKWARD, FORWARD, FULL = "NONE", "BACKWARD", "FORWARD", "FULL"
MODES = (NONE, BACKWARD, FORWARD, FULL)
_WIDER = ("int8", "int16", "int32", "int64", "float32", "float64")


class Versions:
    """The schema being written for one topic partition."""

    def __init__(self, mode):
        self._mode = mode
        self.current = None
        self._has_schemas = None

    def look(self, schema, is_given=True):
        """For a batch of that schema, return (whether to close the open files first, the schema to write)."""
        current = self.current
        if self._has_schemas is None or schema is current and is_given is self._has_schemas:
            return False, schema
        if schema is None or current is None or is_given is not self._has_schemas:
            return True, schema
        if schema == current:
            return False, current
        if not is_given:
            union = merged(current, loosened(schema))
            return union != current, union
        if self._mode != NONE:
            ours, theirs = self._version(current), self._version(schema)
            if theirs <= ours if self._mode in (BACKWARD, FULL) else theirs >= ours:
                return False, current
        return True, schema

    def set(self, schema, is_given=True):
        """Start writing this schema, as `look` returned, once the files are closed."""
        self.current, self._has_schemas = schema, is_given

    def _version(self, schema):
        if schema.version is None:
            raise DataError(
                f"schema.compatibility={self._mode} needs versions of schemas, and this one ({schema.name or schema.type}) has none. Set it to "
                "NONE, or use a converter with versions (Avro, Protobuf or JSON Schema with a registry)."
            )
        return schema.version


def projected(array, source, target):
    """Project an Arrow array from schema `source` to schema `target`, like Connect's SchemaProjector. Raise DataError."""
    if source is target or source == target:
        return array
    _check(source, target)
    if source.optional and not target.optional and array.null_count:
        if target.default is None:
            raise DataError(f"A value is null, but the file's schema requires {_name(target)}.")
        array = _filled(array, source, target)
    if target.type == "struct":
        mask = array.is_null() if array.null_count else None
        parts = [_part(array, source, field) for field in target.fields]
        fields = [pa.field(field.name, part.type) for field, part in zip(target.fields, parts)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if target.type == "array":
        items = projected(array.values, source.value_schema, target.value_schema)
        return pa.ListArray.from_arrays(array.offsets, items, mask=array.is_null() if array.null_count else None)
    if target.type == "map":
        keys = projected(array.keys, source.key_schema, target.key_schema)
        items = projected(array.items, source.value_schema, target.value_schema)
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=array.is_null() if array.null_count else None)
    return array if source.type == target.type else array.cast(null_of(target).type)


def _part(array, source, field):
    held = source.field(field.name)
    if held is not None:
        try:
            return projected(array.field(held.index), held.schema, field.schema)
        except DataError as error:
            raise DataError(f"Field '{field.name}': {error}") from error
    if field.schema.default is not None:
        return _repeated(of_schema([field.schema.default], field.schema), len(array))
    if not field.schema.optional:
        raise DataError(f"Field '{field.name}' is required in the file's schema, has no default there, and is missing in the record's.")
    return _repeated(null_of(field.schema), len(array))


def _filled(array, source, target):
    default = of_schema([target.default], source.with_(default=None))
    both = pa.concat_arrays([array, default])
    rows = pa.array(range(len(array)), pa.int64())
    return both.take(pa.array([len(array) if null else row for row, null in zip(rows.to_pylist(), array.is_null().to_pylist())], pa.int64()))


def _repeated(one, count):
    return one.take(pa.array([0] * count, pa.int64()))


def _check(source, target):
    widens = source.type in _WIDER and target.type in _WIDER and _WIDER.index(source.type) <= _WIDER.index(target.type)
    if source.type != target.type and not widens:
        raise DataError(f"A {_name(source)} cannot become a {_name(target)}: only numbers change their type, to a wider one.")
    if source.name != target.name or source.parameters != target.parameters:
        raise DataError(f"A {_name(source)} cannot become a {_name(target)}: name and parameters of both must be equal.")


def _name(schema):
    return schema.name or schema.type
