"""What a Connect type is to Arrow and to Spark. The Arrow type (data/arrow.py) says it; Spark's follows from that one.

| Connect | Arrow | Spark |
|---|---|---|
| int8 … int64, float32, float64, boolean | the like | byte … long, float, double, boolean |
| string, bytes | string, binary | string, binary |
| Decimal | struct {unscaled, scale} | struct<unscaled: binary, scale: int>: Spark's own stops at 38 digits |
| Date, Time, Timestamp | int64 | long, milliseconds: Spark's own stop at the year 9999 |
| struct, array, map | struct, list, map | struct, array, map |
"""

from standalone.data import schema as s
from standalone.data.arrow import arrow_type


def spark_type(schema):
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(arrow_type(schema))


def has_parts(schema):
    """Whether values of it are made of named parts that can go different ways."""
    return schema is not None and schema.type == s.STRUCT and bool(schema.fields)


def some_value(kind):
    """A Spark column that holds one value, not null, of that Spark type: it stands where no expression looks."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return F.struct(*(some_value(field.dataType).alias(field.name) for field in kind.fields))
    if isinstance(kind, t.ArrayType):
        return F.array().cast(kind)
    if isinstance(kind, t.MapType):
        return F.create_map().cast(kind)
    if isinstance(kind, t.BooleanType):
        return F.lit(False)
    if isinstance(kind, (t.StringType, t.BinaryType)):
        return F.lit("").cast(kind)
    return F.lit(0).cast(kind)
