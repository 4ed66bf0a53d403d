"""Cast: fields, or the whole key or value, as another type."""

from standalone import (
    BOOLEAN,
    HIGH,
    LIST,
    MEDIUM,
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
from standalone.data.java_numbers import BLANKS, narrowed, parse_floating, parse_whole, to_single
from standalone.data.scalars import CLASSES, WIDTHS, Float64
from standalone.data.struct import validate_value
from standalone.data.values import convert, to_text
from standalone.errors import SchemaBuilderError
from standalone.transforms import cast_columns, field_path
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_copy import PerSchema, StructCopy, left_to_rows, need_names, need_struct_schema, struct_schema

WHOLE = (s.INT8, s.INT16, s.INT32, s.INT64)
FLOATING = (s.FLOAT32, s.FLOAT64)
TARGETS = (*WHOLE, *FLOATING, s.BOOLEAN, s.STRING)
_SOURCES = (*TARGETS, s.BYTES)
_KINDS = {  # of values without a schema; what is not here is not cast
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
_POINTS = {name: Schema(s.LOGICAL[name], name=name) for name in (s.DATE, s.TIME, s.TIMESTAMP)}


def _casts(name, value):
    """types, or field:type pairs"""
    try:
        parse_spec(value)
    except ValueError as error:
        raise ConfigError.of({name: f"{error} Types: {', '.join(TARGETS)}."}) from None


def parse_spec(mappings):
    """{field: type}, with None as the field where the whole value is cast. Raises ValueError."""
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
    """Cast fields, or the whole key or value, to another type: numbers lose what does not fit, texts are read, all can become text.

    spec=port:int32,ok:boolean      {"port": "8080", "ok": 1}  ->  {"port": 8080, "ok": true}
    spec=string                     42  ->  "42"
    """

    java_name = "org.apache.kafka.connect.transforms.Cast"
    config_def = ConfigDef(
        Option("spec", LIST, HIGH, "What to cast: field:type pairs, or one type for the whole key or value.", check=_casts),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Cast a field's default in the place of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

    def configure(self, config):
        casts = parse_spec(config["spec"])
        self.whole = casts.pop(None, None)
        self.fields = PathTree.of({field_path.field_path(name, config): kind for name, kind in casts.items()})
        self._casts = _map_casts(self.fields)
        self.fills_defaults = config["replace.null.with.default"]
        self._plans = PerSchema(self._whole_plan if self.whole else lambda schema: self._copy(schema, self.fields, inside=False))

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            if self.whole:
                return self.with_part(record, None, cast_schemaless(value, self.whole))
            field_path.need_map(value, "Cast", self.where)
            return self.with_part(record, None, _cast_map(value, self._casts))
        if self.whole is None:
            if schema.type == s.STRUCT:
                plan = self._plans.of(schema)
                field_path.need_struct(value, "Cast", self.where)
                return self.with_part(record, plan.target, plan.row(value))
            raise DataError(f"Cast needs a struct where the {self.where} has a schema; found a {schema.name or schema.type}.")
        target, cast = self._plans.of(schema)
        return self.with_part(record, target, cast.row(value))

    def _whole_plan(self, schema):
        """(the schema after the cast, what casts its values)."""
        cast = FieldCast(schema, self.whole)
        return _with_default(schema.with_(type=self.whole, fields=None, key_schema=None, value_schema=None), schema, cast), cast

    def _copy(self, schema, tree, inside, checked=True):
        """A StructCopy with the casts in it."""
        fields, changes = [], {}
        for field in schema.fields:
            below, made = tree.inside.get(field.name), field.schema
            if below is not None and below.said:
                cast = changes[field.name] = FieldCast(field.schema, below.said)
                made = _with_default(Schema(below.said, optional=field.schema.optional), field.schema, cast)
            elif below is not None:
                need_struct_schema(field, "Cast")
                copy = changes[field.name] = self._copy(field.schema, below, inside=True, checked=checked)
                made = copy.target
            fields.append((field.name, made))
        if schema.default is not None:
            raise DataError("Cast cannot cast fields inside of a struct that is the default of its own schema.")
        target = struct_schema(fields, like=schema).with_(optional=schema.optional)
        return StructCopy(target, schema.fields, self.fills_defaults, changes, checked)

    # Column meaning: an expression for each cast (cast_columns.py).
    def columns(self, columns):
        if self.is_null(columns):
            return columns
        known, value, has_schema = self.known_part(columns) if self.whole else self.known_struct(columns)
        with left_to_rows(DataError):
            if self.whole:
                target, cast = self._whole_plan(known)
                if target.logical:  # the whole keeps its name, and no column of that name is taken for a plain number
                    raise NoColumns(f"the result is a {target.type} under the name {target.name}")
            else:
                need_names(known, self.fields.inside, has_schema)
                cast = self._copy(known, self.fields, inside=False, checked=has_schema)
                target = cast.target
            made, failed = cast.column(value)
        # A null keeps its old schema beside rows that have the new one: the rows engine takes such rows.
        return self.with_known_part(columns, target, made, [value.isNull(), failed], has_schema)


def _with_default(target, source, cast):
    """The target with the default of the source, cast."""
    if source.default is None:
        return target.with_(default=None)
    default = cast.row(source.default)
    try:
        validate_value(target, default)
    except DataError as error:
        raise SchemaBuilderError(f"The default does not fit the schema: {error}") from error
    return target.with_(default=default)


class FieldCast:
    """A cast of values of one schema to one type, in both meanings. It takes no null."""

    def __init__(self, schema, kind):
        self._schema = schema
        self._kind = kind
        self.row = self._row_meaning()
        self.keeps_nulls = schema.type in FLOATING and kind == s.STRING  # a condition around it would be more than moving

    def _row_meaning(self):
        schema, kind = self._schema, self._kind
        if schema.type not in _SOURCES:

            def refuse(value):
                raise DataError(f"Cast cannot cast a {schema.name or schema.type}. Types that can be cast: {', '.join(_SOURCES)}.")

            return refuse
        if kind == s.STRING:
            return lambda value: to_text(value, schema)
        if schema.name in _POINTS:
            number = Schema(s.LOGICAL[schema.name])
            return lambda value: cast_value(convert(number, schema, value), kind)
        return lambda value: cast_value(value, kind)

    def column(self, column):
        return cast_columns.cast(column, self._schema, self._kind)


def _map_casts(tree):
    """[(name, the type it is cast to, the casts by class)] of the fields at one place; with None as the type the casts further inside."""
    return [
        (name, below.said, _BY_CLASS[below.said]) if below.said else (name, None, _map_casts(below)) for name, below in tree.inside.items()
    ]


def _cast_map(value, casts):
    changed = dict(value)
    for name, kind, how in casts:
        item = value.get(name)
        if kind is not None:  # also where there is no such key: Java then puts a null
            cast = how.get(item.__class__)
            try:
                changed[name] = cast_schemaless(item, kind) if cast is None else cast(item)
            except DataError as error:
                field_path.say_field(name, error)
                raise
        elif item is not None:
            field_path.need_map(item, "Cast", f"field '{name}'")
            try:
                changed[name] = _cast_map(item, how)
            except DataError as error:
                field_path.say_field(name, error)
                raise
    return changed


def cast_schemaless(value, kind):
    if value is None:
        return None
    if type(value) not in _KINDS:
        raise DataError(f"Cast cannot cast a {type(value).__name__} without a schema. Types that can be cast: {', '.join(_SOURCES)}.")
    return to_text(value) if kind == s.STRING else cast_value(value, kind)


def cast_value(value, kind):
    """A number, boolean or text as a number or boolean, as Java's Number and its parsers do it. Raises DataError."""
    try:
        if isinstance(value, str):
            return _READERS[kind](value, kind)
        if isinstance(value, (int, float)):
            return _MAKERS[kind](value, kind)
        if isinstance(value, (bytes, bytearray, memoryview)) or not hasattr(value, "__float__"):
            raise DataError(f"Cast cannot make {kind} of a {type(value).__name__}: only of numbers, booleans and texts.")
        return _MAKERS[kind](value, kind)
    except ValueError as error:
        raise DataError(f"Cast cannot read '{value}' as {kind}: {error}.") from None


def _double_of(value, kind):
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


_READERS = {
    **dict.fromkeys(WHOLE, parse_whole),
    **dict.fromkeys(FLOATING, parse_floating),
    s.BOOLEAN: lambda text, kind: text.lower() == "true",
}
_MAKERS = {
    **dict.fromkeys(WHOLE, narrowed),
    s.FLOAT64: _double_of,
    s.FLOAT32: lambda value, kind: value if isinstance(value, Float32) else to_single(value),
    s.BOOLEAN: lambda value, kind: bool(narrowed(value, s.INT64)),
}


def _quick_casts(kind):
    """Casts of what maps mostly hold, by class, as cast_schemaless does them."""
    if kind == s.STRING:
        return {str: str, int: int.__repr__}
    if kind == s.FLOAT64:
        return {float: float, int: lambda value: _double_of(value, kind), str: lambda value: cast_value(value, kind)}
    if kind in WHOLE:
        made, half = CLASSES[kind], 1 << WIDTHS[kind] - 1

        def number(value):
            return made(value) if -half <= value < half else narrowed(value, kind)

        return {bool: number, int: number, float: number, str: lambda value: cast_value(value, kind)}
    return {}


_BY_CLASS = {kind: _quick_casts(kind) for kind in TARGETS}
