"""Schemas, shared by all records that have them.

A `Schema` is immutable. Build one with `SchemaBuilder`, or use a constant (`Schema.STRING`, `Schema.OPTIONAL_INT64`).
Logical types (Decimal, Date, Time, Timestamp) are schemas of a primitive type with a name that gives the meaning.
"""

import decimal
import math

from standalone.errors import DataError, SchemaBuilderError

INT8, INT16, INT32, INT64 = "int8", "int16", "int32", "int64"
FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES = "float32", "float64", "boolean", "string", "bytes"
ARRAY, MAP, STRUCT = "array", "map", "struct"

PRIMITIVES = (INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES)
TYPES = PRIMITIVES + (ARRAY, MAP, STRUCT)

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
LOGICAL = {DECIMAL: BYTES, DATE: INT32, TIME: INT32, TIMESTAMP: INT64}
SCALE = "scale"  # Decimal's parameter

_EXACT = {FLOAT64: float, BOOLEAN: bool, STRING: str, BYTES: bytes}


class Field:
    """A field of a struct: its name, index and schema."""

    __slots__ = ("name", "index", "schema")

    def __init__(self, name, index, schema):
        self.name = name
        self.index = index
        self.schema = schema

    def __eq__(self, other):
        return isinstance(other, Field) and (self.name, self.index, self.schema) == (other.name, other.index, other.schema)

    def __hash__(self):
        return hash((self.name, self.index))

    def __repr__(self):
        return f"Field({self.name!r}, {self.schema!r})"


class Schema:
    """A type, optional or required, with default, and for structs, arrays and maps the inner schemas.

    `schema["f"]` is the schema of field f, `"f" in schema` whether it exists.
    """

    __slots__ = (
        "type",
        "optional",
        "default",
        "name",
        "version",
        "doc",
        "parameters",
        "fields",
        "key_schema",
        "value_schema",
        "exact",  # the class whose values always fit, without further checks; None if there is none
        "_by_name",
        "_hash",
    )

    def __init__(
        self,
        type,
        optional=False,
        default=None,
        name=None,
        version=None,
        doc=None,
        parameters=None,
        fields=None,
        key_schema=None,
        value_schema=None,
    ):
        self.type = type
        self.optional = optional
        self.default = default
        self.name = name
        self.version = version
        self.doc = doc
        self.parameters = dict(parameters) if parameters else None
        self.fields = tuple(fields) if fields is not None else (() if type == STRUCT else None)
        self.key_schema = key_schema
        self.value_schema = value_schema
        self._by_name = {field.name: field for field in self.fields} if self.fields is not None else None
        self._hash = None
        self.exact = None if name in LOGICAL else _EXACT.get(type)

    def field(self, name):
        """The Field of that name, or None."""
        if self._by_name is None:
            self._must_be_struct()
        return self._by_name.get(name)

    def __getitem__(self, name):
        if self._by_name is None:
            self._must_be_struct()
        return self._by_name[name].schema

    def __contains__(self, name):
        self._must_be_struct()
        return name in self._by_name

    def _must_be_struct(self):
        if self.type != STRUCT:
            raise DataError(f"A schema of type {self.type} has no fields: only structs have.")

    def with_(self, **changes):
        """Return a copy with these attributes changed."""
        return Schema(**{**self._attributes(), **changes})

    def __reduce__(self):
        return Schema, tuple(self._attributes().values())  # without the hash, which differs in another process

    def _attributes(self):
        return {
            "type": self.type,
            "optional": self.optional,
            "default": self.default,
            "name": self.name,
            "version": self.version,
            "doc": self.doc,
            "parameters": self.parameters,
            "fields": self.fields,
            "key_schema": self.key_schema,
            "value_schema": self.value_schema,
        }

    @property
    def is_primitive(self):
        return self.type in PRIMITIVES

    @property
    def logical(self):
        """The name if it is that of a logical type; else None."""
        return self.name if self.name in LOGICAL else None

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Schema) or hash(self) != hash(other):
            return False
        mine, theirs = self._attributes(), other._attributes()
        one, other_one = mine.pop("default"), theirs.pop("default")
        return type(one) is type(other_one) and _is_same(one, other_one) and mine == theirs

    def __hash__(self):
        if self._hash is None:
            self._hash = hash((self.type, self.optional, self.name, self.version, self.fields, self.key_schema, self.value_schema))
        return self._hash

    def __repr__(self):
        shown = [self.name or self.type] + (["optional"] if self.optional else [])
        if self.fields:
            shown.append("{" + ", ".join(f"{field.name}: {field.schema!r}" for field in self.fields) + "}")
        if self.value_schema is not None:
            inner = f"{self.key_schema!r} -> " if self.key_schema is not None else ""
            shown.append(f"[{inner}{self.value_schema!r}]")
        return f"Schema({' '.join(shown)})"


def _is_same(a, b):
    """Whether two defaults are equal in Java: NaN equals itself, 0.0 differs from -0.0, and 1.0 from 1.00 by its scale."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float) and isinstance(b, float):
        return a != a and b != b or a == b and math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, decimal.Decimal) and isinstance(b, decimal.Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and _is_same(item, b[key]) for key, item in a.items())
    return a == b


class SchemaBuilder:
    """Builds a schema step by step: SchemaBuilder(STRUCT).name("Order").field("id", Schema.INT64).build()."""

    def __init__(self, type, key_schema=None, value_schema=None):
        if type is None:
            raise SchemaBuilderError("A schema needs a type.")
        if type not in TYPES:
            raise SchemaBuilderError(f"'{type}' is not a type of a schema. Types: {', '.join(TYPES)}.")
        self._said = {"type": type, "key_schema": key_schema, "value_schema": value_schema}
        self._fields = {} if type == STRUCT else None

    @classmethod
    def struct(cls):
        return cls(STRUCT)

    @classmethod
    def array(cls, value_schema):
        if value_schema is None:
            raise SchemaBuilderError("An array needs the schema of its items.")
        return cls(ARRAY, value_schema=value_schema)

    @classmethod
    def map(cls, key_schema, value_schema):
        if key_schema is None or value_schema is None:
            raise SchemaBuilderError("A map needs the schemas of its keys and of its values.")
        return cls(MAP, key_schema=key_schema, value_schema=value_schema)

    @property
    def type(self):
        return self._said["type"]

    def _say(self, what, value):
        if what in self._said:
            raise SchemaBuilderError(f"The schema's {what} is already set and cannot be changed.")
        self._said[what] = value
        return self

    def optional(self):
        return self._say("optional", True)

    def required(self):
        return self._say("optional", False)

    def default(self, value):
        """Set the default for nulls. Call optional() first: null is not a default of a required schema."""
        from standalone.data.struct import validate_value

        if value is not None and self.type == STRUCT:
            raise SchemaBuilderError("A struct schema cannot have a default: the struct would need the finished schema.")
        if value is None and not self._said.get("optional"):
            raise SchemaBuilderError("Null cannot be the default of a required schema.")
        try:
            validate_value(self._schema(), value)
        except DataError as error:
            raise SchemaBuilderError(f"The default does not fit the schema: {error}") from error
        return self._say("default", value)

    def name(self, name):
        return self._say("name", name)

    def version(self, version):
        return self._say("version", version)

    def doc(self, doc):
        return self._say("doc", doc)

    def parameter(self, name, value):
        parameters = self._said.setdefault("parameters", {})
        if name in parameters:
            raise SchemaBuilderError(f"The parameter '{name}' is already set and cannot be changed.")
        parameters[name] = value
        return self

    def parameters(self, parameters):
        for name, value in parameters.items():
            self.parameter(name, value)
        return self

    def field(self, name, schema):
        if self._fields is None:
            raise SchemaBuilderError(f"A schema of type {self.type} has no fields: only structs have.")
        if not name:
            raise SchemaBuilderError("A field needs a name.")
        if schema is None:
            raise SchemaBuilderError(f"The field '{name}' needs a schema.")
        if name in self._fields:
            raise SchemaBuilderError(f"There are two fields '{name}'.")
        self._fields[name] = Field(name, len(self._fields), schema)
        return self

    def _schema(self):
        return Schema(fields=self._fields.values() if self._fields is not None else None, **self._said)

    def build(self):
        return self._schema()


for _type in PRIMITIVES:
    setattr(Schema, _type.upper(), Schema(_type))
    setattr(Schema, "OPTIONAL_" + _type.upper(), Schema(_type, optional=True))


# Logical types. Decimal's values are decimal.Decimal; those of the other three are Instants.


def decimal_schema(scale, **attributes):
    return Schema(BYTES, name=DECIMAL, version=1, parameters={SCALE: str(scale)}, **attributes)


def date_schema(**attributes):
    return Schema(INT32, name=DATE, version=1, **attributes)


def time_schema(**attributes):
    return Schema(INT32, name=TIME, version=1, **attributes)


def timestamp_schema(**attributes):
    return Schema(INT64, name=TIMESTAMP, version=1, **attributes)
