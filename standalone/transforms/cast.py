"""Cast: cast fields, or the whole key or value, to another type."""

from standalone import (
    BOOLEAN,
    HIGH,
    LIST,
    MEDIUM,
    Change,
    ConfigDef,
    ConfigError,
    DataError,
    FieldTransform,
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    NoColumns,
    Option,
    Schema,
)
from standalone.data import schema as s
from standalone.data.java_numbers import BLANKS
from standalone.data.scalars import Float64
from standalone.data.struct import validate_value
from standalone.errors import SchemaBuilderError
from standalone.transforms import cast_functions, field_path
from standalone.transforms.cast_functions import SOURCES, TARGETS
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_edit import FieldsChanged

_KINDS = {  # types of schemaless values; other classes cannot be cast
    bool: s.BOOLEAN,
    Int8: s.INT8,
    Int16: s.INT16,
    Int32: s.INT32,
    Int64: s.INT64,
    int: s.INT64,
    Float32: s.FLOAT32,
    Float64: s.FLOAT64,
    float: s.FLOAT64,
    str: s.STRING,
    bytes: s.BYTES,
    bytearray: s.BYTES,
    memoryview: s.BYTES,
}


def _casts(name, value):
    """types, or field:type pairs"""
    try:
        parse_spec(value)
    except ValueError as error:
        raise ConfigError.of({name: f"{error} Types: {', '.join(TARGETS)}."}) from None


def parse_spec(mappings):
    """{field: type}; the field is None if the whole value is cast. Raises ValueError."""
    if not mappings:
        raise ValueError("must name at least one cast.")
    casts = {}
    for mapping in mappings:
        parts = mapping.rstrip(":").split(":")
        kind = parts[-1].strip(BLANKS).lower()
        if len(parts) > 2:
            raise ValueError(f"'{mapping}' has too many colons: write field:type.")
        if kind not in TARGETS:
            raise ValueError(f"'{mapping}' asks for the type '{kind}', which nothing is cast to.")
        casts[parts[0].strip(BLANKS) if len(parts) == 2 else None] = kind
    if None in casts and len(mappings) > 1:
        raise ValueError("casts the whole value, and then nothing else can be cast.")
    return casts


class Cast(FieldTransform):
    """Cast fields, or the whole key or value, to another type: numbers are truncated to fit, strings are parsed, all supported types cast to string.

    spec=port:int32,ok:boolean      {"port": "8080", "ok": 1}  ->  {"port": 8080, "ok": true}
    spec=string                     42  ->  "42"
    """

    java_name = "org.apache.kafka.connect.transforms.Cast"
    config_def = ConfigDef(
        Option("spec", LIST, HIGH, "What to cast: field:type pairs, or one type for the whole key or value.", check=_casts),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Cast a field's default instead of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

    def configure(self, config):
        casts = parse_spec(config["spec"])
        whole = casts.pop(None, None)
        if whole is not None:
            self.does(_WholeCast(whole))
        else:
            tree = PathTree.of({field_path.field_path(name, config): FieldCast(kind) for name, kind in casts.items()})
            self.does(_FieldsCast(tree, "Cast", self.where, config["replace.null.with.default"]))


class _Cast(Change):
    def __init__(self, kind):
        self.kind = kind
        self.by_class = _BY_CLASS[kind]

    def bare(self, value):
        return cast_schemaless(value, self.kind)

    def _function(self, schema, target):
        function = cast_functions.function(schema, self.kind)
        function.schema = _with_default(target, schema, function)
        return function


class FieldCast(_Cast):
    """The cast of a field."""

    def of(self, schema, has_schema=True):
        return self._function(schema, Schema(self.kind, optional=schema.optional))


class _WholeCast(_Cast):
    """The cast of a whole key or value; keeps the name of its schema."""

    def of(self, schema, has_schema=True):
        function = self._function(schema, schema.with_(type=self.kind, fields=None, key_schema=None, value_schema=None))
        if function.schema.logical:
            function.column = self._no_columns  # a column with a schema name is not treated as a plain number
        return function

    @staticmethod
    def _no_columns(column):
        raise NoColumns("the result keeps a schema name that has no column type")


class _FieldsCast(FieldsChanged):
    def copy(self, schema, checked, inside=False):
        copy = super().copy(schema, checked, inside)
        if schema.default is not None:
            raise DataError("Cast cannot cast fields inside of a struct that is the default of its own schema.")
        return copy


def _with_default(target, source, cast):
    """The target schema with the cast default of the source."""
    if source.default is None:
        return target.with_(default=None)
    default = cast.row(source.default)
    try:
        validate_value(target, default)
    except DataError as error:
        raise SchemaBuilderError(f"The default does not fit the schema: {error}") from error
    return target.with_(default=default)


def cast_schemaless(value, kind):
    if value is None:
        return None
    cast = _BY_CLASS[kind].get(value.__class__)
    if cast is None:
        raise DataError(f"Cast cannot cast a {type(value).__name__} without a schema. Types that can be cast: {', '.join(SOURCES)}.")
    return cast(value)


# Schemaless values are cast by their class.
_BY_CLASS = {kind: {found: cast_functions.function(Schema(own), kind).row for found, own in _KINDS.items()} for kind in TARGETS}
