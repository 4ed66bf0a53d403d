"""MaskField: replace the values of fields by an empty or a fixed value."""

import datetime
import decimal
import functools
import re

from standalone import (
    BOOLEAN,
    HIGH,
    LIST,
    LOW,
    MEDIUM,
    NULL_IS_REFUSED,
    STRING,
    BigInt,
    Change,
    ConfigDef,
    DataError,
    FieldTransform,
    Float32,
    Float64,
    Function,
    Instant,
    Int8,
    Int16,
    Int32,
    Int64,
    Option,
    Schema,
    non_empty,
)
from standalone.data.schema import ARRAY, DECIMAL, MAP
from standalone.data.values import convert
from standalone.transforms import expressions, field_path
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_edit import FieldsChanged

# The empty value of each type, for both forms. Lists and maps become empty.
EMPTY = {
    "boolean": False,
    "int8": Int8(0),
    "int16": Int16(0),
    "int32": Int32(0),
    "int64": 0,
    "bigint": BigInt(0),
    "float32": Float32(0.0),
    "float64": 0.0,
    "decimal": decimal.Decimal(0),
    "date": Instant(0),
    "string": "",
    "list": None,
    "map": None,
}
_KINDS = {  # types of schemaless values
    bool: "boolean",
    Int8: "int8",
    Int16: "int16",
    Int32: "int32",
    Int64: "int64",
    int: "int64",
    BigInt: "bigint",
    Float32: "float32",
    Float64: "float64",
    float: "float64",
    decimal.Decimal: "decimal",
    Instant: "date",
    datetime.datetime: "date",
    datetime.date: "date",
    datetime.time: "date",
    str: "string",
    list: "list",
    dict: "map",
}


class MaskField(FieldTransform):
    """Replace the values of the named fields by the empty value of their type, or by `replacement`; null stays null.

    fields=card                          {"card": "4111", "name": "Ann"}  ->  {"card": "", "name": "Ann"}
    fields=card, replacement=hidden      {"card": "4111", "name": "Ann"}  ->  {"card": "hidden", "name": "Ann"}
    """

    java_name = "org.apache.kafka.connect.transforms.MaskField"
    config_def = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the fields to mask.", check=field_path.field_names),
        Option("replacement", STRING, LOW, "Replacement, for number and string fields only.", default=None, check=non_empty),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Replace a field's null by its default.", default=True),
        field_path.OWN_SYNTAX,
    )

    nulls = NULL_IS_REFUSED

    def computes(self):
        return False

    def configure(self, config):
        mask = Mask(config["replacement"])
        tree = PathTree.of({field_path.field_path(name, config): mask for name in config["fields"]})
        self.does(FieldsChanged(tree, "MaskField", self.where, config["replace.null.with.default"], retyped=False))


class Mask(Change):
    """The constant mask of a type."""

    def __init__(self, replacement):
        self.replacement = replacement
        self._replacements = {}

    def of(self, schema, has_schema=True):
        return _Mask(self, schema)

    def bare(self, value):
        return None if value is None else self.of_kind(_KINDS.get(type(value)), type(value).__name__)

    def of_kind(self, kind, found):
        """Raises DataError if the type has no mask."""
        if self.replacement is None:
            if kind not in EMPTY:
                raise DataError(f"MaskField cannot mask a {found}: it has no empty value. Remove the field from 'fields'.")
            return [] if kind == "list" else {} if kind == "map" else EMPTY[kind]
        if kind not in self._replacements:
            if kind not in _READERS:
                raise DataError(f"MaskField cannot replace a {found}: only numbers and texts can be replaced.")
            try:
                self._replacements[kind] = _READERS[kind](self.replacement)
            except (ValueError, ArithmeticError, DataError) as error:
                raise DataError(f"MaskField cannot put '{self.replacement}' there: it is no {found}.") from error
        return self._replacements[kind]


class _Mask(Function):
    def __init__(self, mask, schema):
        self._mask = mask
        self.schema = schema
        kind = "decimal" if schema.name == DECIMAL else "date" if schema.logical else schema.type
        self._what = ({ARRAY: "list", MAP: "map"}.get(kind, kind), schema.name or schema.type)

    def row(self, value):
        return self._mask.of_kind(*self._what)

    def column(self, column):
        return expressions.literal(self.row(None), self.schema), None


# --- Strings as numbers ----------------------------------------------------------------------------------------------

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")


def _decimal(text):
    """Parse as Java's BigDecimal does."""
    number = decimal.Decimal(text) if _DECIMAL.fullmatch(text) else None
    if number is None or not -(1 << 31) < -number.as_tuple().exponent < 1 << 31:
        raise ValueError(text)
    return number


def _big_int(text):
    """Parse as Java's BigInteger does."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        raise ValueError(text)
    return BigInt(text)


# Strings become numbers as in Cast: 1.5 is 1 as an int, and numbers too large for their type wrap.
_READERS = {
    **{kind: functools.partial(convert, Schema(kind), None) for kind in ("int8", "int16", "int32", "int64", "float32", "float64")},
    "bigint": _big_int,
    "decimal": _decimal,
    "string": str,
}
