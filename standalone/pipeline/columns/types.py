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


def has_parts(schema):
    """Whether values of it are made of named parts that can go different ways."""
    return schema is not None and schema.type == s.STRUCT and bool(schema.fields)
