"""Cast: fields or the whole as another type, by rows and by columns."""

import decimal
import math

import pytest
from pytest import param

from standalone import (
    BigInt,
    ConfigError,
    DataError,
    F,
    Float32,
    Instant,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    SchemaBuilder,
    SourceRecord,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from standalone.pipeline.chain import Link
from standalone.pipeline.spark.columns import SparkColumns
from standalone.testing import LeftToRows, check_transform, transform_columns
from standalone.transforms.cast import Cast
from standalone.transforms.cast_functions import function
from standalone.transforms.hoist_field import HoistField

V2 = {"field.syntax.version": "V2"}
NOON = Instant(1_700_000_000_123)


def record(value, schema=None):
    return SourceRecord("t", value, value_schema=schema)


def of(schema, value):
    """A record with the field `f` of that schema."""
    whole = SchemaBuilder.struct().name("Row").field("f", schema).field("id", Schema.INT64).build()
    return record(Struct(whole, {"f": value, "id": 1}), whole)


def check_field(schema, value, kind, cast, spark_holder, by_columns=True):
    if isinstance(cast, type):
        check_transform(Cast.Value.of(spec=f"f:{kind}"), of(schema, value), cast, spark_holder)
    else:
        check_transform(Cast.Value.of(spec=f"f:{kind}"), of(schema, value), of(Schema(kind), cast), spark_holder, by_columns)


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema, value, kind, cast",
    [
        param(Schema.INT32, 300, "int8", 44, id="an int loses its upper bits"),
        param(Schema.INT64, 5_000_000_000, "int32", 705_032_704, id="a long, too"),
        param(Schema.INT8, -5, "int64", -5, id="a byte becomes a long"),
        param(Schema.INT64, (1 << 53) + 1, "float64", 9007199254740992.0, id="a long becomes a double, rounded"),
        param(Schema.INT64, 9007199791611905, "float32", 9007200328482816.0, id="a long becomes a float, rounded once"),
        param(Schema.FLOAT64, 300.7, "int8", 44, id="a double loses the fraction, then upper bits"),
        param(Schema.FLOAT64, 1e10, "int16", -1, id="too large a double is the largest int first"),
        param(Schema.FLOAT64, -1e300, "int64", -(1 << 63), id="a double becomes the outermost long"),
        param(Schema.FLOAT64, math.nan, "int32", 0, id="what is no number is 0"),
        param(Schema.FLOAT64, 0.1, "float32", 0.10000000149011612, id="a double becomes a float"),
        param(Schema.FLOAT64, 1e300, "float32", math.inf, id="too large for a float"),
        param(Schema.FLOAT32, Float32(1.5), "float64", 1.5, id="a float becomes a double"),
        param(Schema.BOOLEAN, True, "int8", 1, id="true is 1"),
        param(Schema.BOOLEAN, False, "float32", 0.0, id="false is 0"),
        param(Schema.INT16, 256, "boolean", True, id="a number that is not 0 is true"),
        param(Schema.FLOAT64, 0.9, "boolean", False, id="a fraction alone is false"),
        param(Schema.BOOLEAN, True, "string", "true", id="a boolean as text"),
        param(Schema.INT64, -(1 << 63), "string", "-9223372036854775808", id="a long as text"),
        param(Schema.BYTES, bytes(90), "string", "A" * 120, id="bytes as base64, in one line"),
    ],
)
def test_numbers(schema, value, kind, cast, spark_holder):
    check_field(schema, value, kind, cast, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "text, kind, cast",
    [
        ("8080", "int32", 8080),
        ("+5", "int8", 5),
        ("-9223372036854775808", "int64", -(1 << 63)),
        ("128", "int8", DataError),
        (" 7", "int8", DataError),
        ("7.0", "int8", DataError),
        ("", "int64", DataError),
        ("1e3\n", "float64", 1000.0),
        ("1e400", "float64", math.inf),
        ("0x1.8p1", "float64", 3.0),
        ("1.5f", "float32", 1.5),
        ("-Infinity", "float32", -math.inf),
        ("1.00000017881393432617187499", "float32", 1.0000001192092896),
        ("inf", "float64", DataError),
        ("nan", "float32", DataError),
        ("1,5", "float64", DataError),
        ("TRUE", "boolean", True),
        ("yes", "boolean", False),
        ("text", "string", "text"),
    ],
)
def test_texts(text, kind, cast, spark_holder):
    rows_only = len(text) > 19
    check_field(Schema.STRING, text, kind, cast, spark_holder, by_columns=not rows_only or kind == "float32")


@pytest.mark.spark
@pytest.mark.parametrize("text", ["", "7", "-8", "0128", "12345678901234567890", "7\n", "\u0663"])
def test_a_text_that_is_no_plain_number_is_left_to_the_rows(text, spark_holder):
    spark = spark_holder.ready()
    made, left = function(Schema.STRING, "int8").column(F.col("v"))
    ((number, is_left),) = spark.createDataFrame([(text,)], "v string").select(*map(SparkColumns().of, (made, left))).collect()
    assert is_left or number == int(text)


@pytest.mark.spark
@pytest.mark.parametrize(
    "number, kind, cast, by_columns",
    [
        ("12.34", "int32", 12, True),
        ("-129.9", "int8", 127, True),
        ("0.9", "boolean", False, True),
        ("12.34", "float64", 12.34, True),
        ("-0.00", "float64", 0.0, True),
        ("12.34", "float32", 12.34000015258789, True),
        ("9007199254740993", "float64", 9007199254740992.0, False),
        ("-0.05", "string", "-0.05", True),
        ("1200", "string", "1200", True),
        ("-9223372036854775808", "string", "-9223372036854775808", True),
        ("1E+3", "string", "1E+3", False),
        ("0.0000001", "string", "1E-7", False),
        ("123456789012345678901.5", "int64", None, False),
    ],
)
def test_decimals(number, kind, cast, by_columns, spark_holder):
    number = decimal.Decimal(number)
    if cast is None:
        cast = (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)
    check_field(decimal_schema(2), number, kind, cast, spark_holder, by_columns)


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema, value, kind, cast",
    [
        (date_schema(), Instant(86_400_000 * 300), "int8", 44),
        (date_schema(), Instant(-86_400_000), "int64", -1),
        (date_schema(), Instant(1), "int64", DataError),
        (date_schema(), Instant(1_577_836_800_000), "string", "2020-01-01"),
        (time_schema(), Instant(45_296_789), "int32", 45_296_789),
        (time_schema(), Instant(86_400_001), "int32", DataError),
        (time_schema(), Instant(45_296_789), "string", "12:34:56.789Z"),
        (timestamp_schema(), NOON, "int64", NOON.ms),
        (timestamp_schema(), NOON, "float64", 1.700000000123e12),
        (timestamp_schema(), NOON, "boolean", True),
        (timestamp_schema(), NOON, "string", "2023-11-14T22:13:20.123Z"),
        (timestamp_schema(), Instant(-1), "string", "23:59:59.999Z"),
        (timestamp_schema(), Instant(253_402_300_800_000), "string", "10000-01-01"),
    ],
)
def test_points_in_time(schema, value, kind, cast, spark_holder):
    check_field(schema, value, kind, cast, spark_holder)


@pytest.mark.parametrize(
    "schema, value, text",
    [
        (Schema.FLOAT64, 2e23, "1.9999999999999998E23"),
        (Schema.FLOAT64, 1e7, "1.0E7"),
        (Schema.FLOAT32, Float32(0.10000000149011612), "0.1"),
        (Schema.FLOAT32, Float32(math.nan), "NaN"),
    ],
)
@pytest.mark.spark
def test_floats_become_text(schema, value, text, spark_holder):
    check_transform(Cast.Value.of(spec="f:string"), of(schema, value), of(Schema.STRING, text), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize("then, by_columns", [(HoistField.Value.of(field="x"), True), (Cast.Value.of(spec="f:float64"), False)])
def test_the_text_of_a_float_may_be_moved_and_not_be_read(then, by_columns, spark_holder):
    links = [Link("text", Cast.Value.of(spec="f:string")), Link("then", then)]
    before = of(Schema.FLOAT64, 2e23)
    if by_columns:
        assert transform_columns(links, [before], spark_holder) == [then.apply(links[0].transform.apply(before))]
    else:
        with pytest.raises(LeftToRows, match="text of floating-point numbers"):
            transform_columns(links, [before], spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, after",
    [
        param({"spec": "string"}, record(42, Schema.INT32), record("42", Schema.STRING), id="the whole value"),
        param(
            {"spec": " INT8 "},
            record(300, Schema.OPTIONAL_INT32.with_(name="N", version=2, doc="d", parameters={"a": "b"}, default=257)),
            record(Int8(44), Schema.OPTIONAL_INT8.with_(name="N", version=2, doc="d", parameters={"a": "b"}, default=Int8(1))),
            id="a whole keeps its name and its default",
        ),
        param({"spec": "int32"}, record(None, Schema.OPTIONAL_STRING), record(None, Schema.OPTIONAL_STRING), id="a null stays what it was"),
    ],
)
def test_the_whole(props, before, after, spark_holder):
    check_transform(Cast.Value.of(props), before, after, spark_holder)


def test_the_key():
    before = SourceRecord("t", "v", key="7", key_schema=Schema.STRING, value_schema=Schema.STRING)
    check_transform(Cast.Key.of(spec="int8"), before, before.with_(key=Int8(7), key_schema=Schema.INT8))


FILLED = SchemaBuilder.struct().field("f", Schema.OPTIONAL_STRING.with_(default="5")).build()
CAST = SchemaBuilder.struct().field("f", Schema.OPTIONAL_INT16.with_(default=Int16(5))).build()


@pytest.mark.spark
@pytest.mark.parametrize("fills, value", [("true", 5), ("false", None)])
def test_a_default_is_cast_too(fills, value, spark_holder):
    transform = Cast.Value.of({"spec": "f:int16", "replace.null.with.default": fills})
    check_transform(transform, record(Struct(FILLED), FILLED), record(Struct(CAST, {"f": value}), CAST), spark_holder)


def test_a_default_that_cannot_be_cast_is_an_error():
    schema = SchemaBuilder.struct().field("f", Schema.STRING.with_(default="x")).build()
    check_transform(Cast.Value.of(spec="f:int16"), record(Struct(schema, {"f": "5"}), schema), DataError)


INNER = SchemaBuilder.struct().optional().field("n", Schema.OPTIONAL_STRING).field("m", Schema.INT8).build()
OUTER = SchemaBuilder.struct().field("a.b", Schema.STRING).field("in", INNER).build()
INNER_CAST = SchemaBuilder.struct().optional().field("n", Schema.OPTIONAL_INT32).field("m", Schema.INT8).build()
OUTER_CAST = SchemaBuilder.struct().field("a.b", Schema.STRING).field("in", INNER_CAST).build()


@pytest.mark.spark
@pytest.mark.parametrize(
    "inner, inner_cast",
    [
        (Struct(INNER, {"n": "9", "m": 1}), Struct(INNER_CAST, {"n": 9, "m": 1})),
        (Struct(INNER, {"m": 1}), Struct(INNER_CAST, {"m": 1})),
        (None, None),
    ],
)
def test_a_nested_field(inner, inner_cast, spark_holder):
    before = record(Struct(OUTER, {"a.b": "x", "in": inner}), OUTER)
    after = record(Struct(OUTER_CAST, {"a.b": "x", "in": inner_cast}), OUTER_CAST)
    check_transform(Cast.Value.of({"spec": "in.n:int32", **V2}), before, after, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "spec, schema, value",
    [
        ("f:int8", SchemaBuilder.array(Schema.INT8).build(), [1]),
        ("f:string", SchemaBuilder.map(Schema.STRING, Schema.INT8).build(), {"a": 1}),
        ("f:int8", Schema.BYTES, b"1"),
        ("f:boolean", Schema.BYTES, b"1"),
    ],
)
def test_what_cannot_be_cast(spec, schema, value, spark_holder):
    check_transform(Cast.Value.of(spec=spec), of(schema, value), DataError, spark_holder)


def test_a_string_has_no_fields():
    check_transform(Cast.Value.of(spec="f:int8"), record("x", Schema.STRING), DataError)
    check_transform(Cast.Value.of(spec="f:int8"), record("x"), DataError)


@pytest.mark.parametrize(
    "value, kind, cast",
    [
        (Int32(300), "int8", Int8(44)),
        (7, "string", "7"),
        (Float32(2.5), "float64", 2.5),
        (True, "int64", Int64(1)),
        ("1.5", "float32", Float32(1.5)),
        (b"\x01\x02", "string", "AQI="),
        (None, "int8", None),
        (decimal.Decimal(1), "string", DataError),
        (BigInt(1), "int64", DataError),
        (NOON, "int64", DataError),
        ([1], "string", DataError),
        (b"1", "int8", DataError),
    ],
)
def test_values_without_a_schema(value, kind, cast):
    transform = Cast.Value.of(spec=f"f:{kind}")
    if cast is DataError:
        check_transform(transform, record({"f": value}), DataError)
        return
    made = transform.apply(record({"f": value, "g": 1})).value
    assert made == {"f": cast, "g": 1} and type(made["f"]) is type(cast)
    if value is not None:
        whole = Cast.Value.of(spec=kind).apply(record(value)).value
        assert whole == cast and type(whole) is type(cast)


def test_a_field_that_a_map_lacks_is_there_as_a_null():
    check_transform(Cast.Value.of(spec="nope:int8"), record({"g": 1}), record({"g": 1, "nope": None}))


@pytest.mark.spark
@pytest.mark.parametrize("spec, by_columns", [("n:int32,s:boolean", True), ("n:string", True), ("nope:int8", False)])
def test_maps_of_one_shape(spec, by_columns, check_shape):
    shape = SchemaBuilder.struct().field("n", Schema.INT64).field("s", Schema.STRING).field("x", Schema.FLOAT64).build()
    check_shape(Cast.Value.of(spec=spec), [{"n": 1, "s": "true", "x": 0.5}, {"n": 1 << 33, "s": "", "x": 1.5}], shape, by_columns)


@pytest.mark.parametrize(
    "spec", ["", "bogus", "f:bogus", "f:bytes", "f:array", "a:b:int8", "int8,int16", "int8,f:int8", ":", "f:", None], ids=str
)
def test_what_is_refused_at_configure(spec):
    with pytest.raises(ConfigError):
        Cast.Value.of({} if spec is None else {"spec": spec})

