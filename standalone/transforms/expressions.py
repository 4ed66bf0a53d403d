"""Shared by the columnar forms of transforms: types, literals, and conditions for values that violate their schema.

Connect types have their Arrow type (data/arrow.py) in columns: a Decimal is a struct of unscaled bytes and scale; Date, Time and
Timestamp are milliseconds.
"""

import decimal

from standalone import F, Instant, misfit_within
from standalone.data import arrow
from standalone.data.arrow import arrow_type
from standalone.data.schema import ARRAY, DECIMAL, MAP, STRUCT


def literal(value, schema):
    """A value of the schema as an expression, the same in every row."""
    if value is None:
        return F.lit(None).cast(arrow_type(schema))
    if schema.name == DECIMAL:
        unscaled, scale = arrow.unscaled_bytes(decimal.Decimal(value))
        return F.struct(F.lit(unscaled).alias("unscaled"), F.lit(scale).cast("int").alias("scale"))
    if schema.logical:
        return F.lit(Instant.of(value).ms).cast("long")
    if schema.type == STRUCT:
        stored = zip(schema.fields, value.values)
        return F.struct(*(literal(item, field.schema).alias(field.name) for field, item in stored)).cast(arrow_type(schema))
    if schema.type == ARRAY:
        return F.array(*(literal(item, schema.value_schema) for item in value)).cast(arrow_type(schema))
    if schema.type == MAP:
        entries = ((literal(key, schema.key_schema), literal(item, schema.value_schema)) for key, item in value.items())
        return F.create_map(*(column for entry in entries for column in entry)).cast(arrow_type(schema))
    return F.lit(bytes(value) if isinstance(value, (bytearray, memoryview)) else value).cast(arrow_type(schema))


def misfit(column, schema):
    """A condition for rows with a null that the schema forbids, at any depth; None if there cannot be any.

    In a column types and widths are always right; only nulls can be wrong.
    """
    wrong = _misfit_inside(column, schema)
    if schema.optional:
        return None if wrong is None else column.isNotNull() & wrong
    return column.isNull() if wrong is None else column.isNull() | F.coalesce(wrong, F.lit(False))


def _misfit_inside(column, schema):
    if schema.type == STRUCT:
        return any_of(
            misfit(column.getField(field.name), field.schema)
            for field in schema.fields
            if not field.schema.optional and field.schema.default is None or field.schema.type in (STRUCT, ARRAY, MAP)
        )
    said = None
    if schema.type == ARRAY:
        said = _any_misfit(column, schema.value_schema)
    elif schema.type == MAP:
        keys = schema.key_schema.with_(optional=True)  # Arrow and Spark allow no null keys
        said = any_of([_any_misfit(F.map_keys(column), keys), _any_misfit(F.map_values(column), schema.value_schema)])
    return None if said is None else misfit_within(column, schema, said)


def _any_misfit(items, schema):
    if schema.optional and schema.type not in (STRUCT, ARRAY, MAP):
        return None
    # Spark 4.3 fails on nulls if a lambda reads a numeric array directly from an Arrow buffer; `reverse` copies the array first.
    return F.exists(F.reverse(items), lambda item: any_of([misfit(item, schema), F.lit(False)]))


def any_of(conditions):
    """Boolean columns combined by "or"; ignores None, and returns None if all are None."""
    joined = None
    for condition in conditions:
        if condition is not None:
            joined = condition if joined is None else joined | condition
    return joined
