"""TimestampConverter: points in time from one form into another, by rows and by columns."""

import pytest
from pytest import param

from standalone import (
    ConfigError,
    ConnectError,
    DataError,
    Instant,
    Int32,
    Int64,
    Schema,
    SchemaBuilder,
    SourceRecord,
    Struct,
    date_schema,
    time_schema,
    timestamp_schema,
)
from standalone.testing import check_transform
from standalone.transforms.timestamp_converter import TimestampConverter

MS = 1_700_000_000_123
LONG_MAX = (1 << 63) - 1
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSX"
TEXT = "2023-11-14T22:13:20.123Z"
SCHEMAS = {"string": Schema.STRING, "unix": Schema.INT64, "Date": date_schema(), "Time": time_schema(), "Timestamp": timestamp_schema()}
VALUES = {
    "string": TEXT,
    "unix": MS,
    "Date": Instant(1_699_920_000_000),
    "Time": Instant(80_000_123),
    "Timestamp": Instant(MS),
}


def record(value, schema=None):
    return SourceRecord("t", value, value_schema=schema)


def of(schema, value):
    """A record with the field `at` of that schema."""
    whole = SchemaBuilder.struct().name("Event").field("at", schema).field("id", Schema.INT64).build()
    return record(Struct(whole, {"at": value, "id": 1}), whole)


def converter(target, **more):
    return TimestampConverter.Value.of({"target.type": target, "format": ISO, **more})


@pytest.mark.spark
@pytest.mark.parametrize("target", SCHEMAS)
@pytest.mark.parametrize("form", ["string", "unix", "Timestamp"])
def test_each_form_becomes_each_other(form, target, spark_holder):
    before, after = record(VALUES[form], SCHEMAS[form]), record(VALUES[target], SCHEMAS[target])
    check_transform(converter(target), before, after, spark_holder)
    before, after = of(SCHEMAS[form], VALUES[form]), of(SCHEMAS[target], VALUES[target])
    check_transform(converter(target, field="at"), before, after, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "form, target, ms",
    [("Date", "unix", 1_699_920_000_000), ("Date", "Time", 0), ("Time", "unix", 80_000_123), ("Time", "Date", 0), ("Time", "Timestamp", 80_000_123)],
)
def test_dates_and_times(form, target, ms, spark_holder):
    after = record(ms if target == "unix" else Instant(ms), SCHEMAS[target])
    check_transform(converter(target), record(VALUES[form], SCHEMAS[form]), after, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "precision, number, ms",
    [
        ("seconds", 1_700_000_000, 1_700_000_000_000),
        ("seconds", -5, -5000),
        ("microseconds", 1_700_000_000_123_456, MS),
        ("microseconds", -1, 0),  # towards zero
        ("nanoseconds", 1_700_000_000_123_456_789, MS),
        ("nanoseconds", -1_999_999, -1),
        ("seconds", LONG_MAX // 1000 + 1, LONG_MAX),  # as far as a long goes
        ("seconds", -LONG_MAX, -LONG_MAX - 1),
    ],
)
def test_numbers_count_what_unix_precision_says(precision, number, ms, spark_holder):
    transform = converter("Timestamp", **{"unix.precision": precision})
    check_transform(transform, record(number, Schema.INT64), record(Instant(ms), timestamp_schema()), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "precision, ms, number",
    [
        ("seconds", 1999, 1),
        ("seconds", -1999, -1),
        ("microseconds", MS, MS * 1000),
        ("nanoseconds", MS, MS * 1_000_000),
        ("nanoseconds", LONG_MAX // 1000, LONG_MAX),
        ("nanoseconds", -LONG_MAX // 1000, -LONG_MAX - 1),
    ],
)
def test_numbers_are_written_so_too(precision, ms, number, spark_holder):
    transform = converter("unix", **{"unix.precision": precision})
    check_transform(transform, record(Instant(ms), timestamp_schema()), record(number, Schema.INT64), spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "text, ms, by_columns",
    [
        param("2024-02-30", 1_709_251_200_000, False, id="a day too many"),
        param("2024-2-3", 1_706_918_400_000, False, id="short numbers"),
        param("2024-02-03T10:00", 1_706_918_400_000, False, id="a rest that the pattern does not ask for"),
        param("1500-01-01", -14_830_992_000_000, False, id="the Julian calendar"),
    ],
)
def test_texts_are_read_leniently(text, ms, by_columns, spark_holder):
    transform = converter("unix", format="yyyy-MM-dd")
    check_transform(transform, record(text, Schema.STRING), record(ms, Schema.INT64), spark_holder, by_columns)


@pytest.mark.spark
@pytest.mark.parametrize("ms, text, by_columns", [(253_402_300_800_000, "10000-01-01", True), (-12_219_292_800_001, "1582-10-04", False)])
def test_far_years_become_text(ms, text, by_columns, spark_holder):
    transform = converter("string", format="yyyy-MM-dd")
    check_transform(transform, record(ms, Schema.INT64), record(text, Schema.STRING), spark_holder, by_columns)


def test_the_key():
    before = SourceRecord("t", "v", key=MS, key_schema=Schema.INT64, value_schema=Schema.STRING)
    transform = TimestampConverter.Key.of({"target.type": "Timestamp"})
    check_transform(transform, before, before.with_(key=Instant(MS), key_schema=timestamp_schema()))


OPTIONAL = {"unix": Schema.OPTIONAL_INT64, "Timestamp": timestamp_schema(optional=True)}


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, after",
    [
        param({}, of(Schema.OPTIONAL_INT64, None), of(OPTIONAL["Timestamp"], None), id="in a field"),
        param({}, of(Schema.OPTIONAL_INT64.with_(default=MS), None), of(OPTIONAL["Timestamp"], Instant(MS)), id="its default is converted"),
        param(
            {"replace.null.with.default": "false"},
            of(Schema.OPTIONAL_INT64.with_(default=MS), None),
            of(OPTIONAL["Timestamp"], None),
            id="or not",
        ),
    ],
)
def test_a_null_stays_one(props, before, after, spark_holder):
    check_transform(converter("Timestamp", field="at", **props), before, after, spark_holder)


def test_a_whole_null_gets_the_schema_all_the_same():
    before = record(None, Schema.OPTIONAL_INT64)
    check_transform(converter("Timestamp"), before, record(None, timestamp_schema(optional=True)))
    before, after = (of(schema, None).with_(value=None) for schema in (Schema.OPTIONAL_INT64, OPTIONAL["Timestamp"]))
    check_transform(converter("Timestamp", field="at"), before, after)
    check_transform(converter("Timestamp"), record(None), record(None))


INNER = SchemaBuilder.struct().optional().field("at", Schema.INT64).build()
OUTER = SchemaBuilder.struct().field("in", INNER).field("id", Schema.INT8).build()
INNER_MADE = SchemaBuilder.struct().optional().field("at", Schema.STRING).build()
OUTER_MADE = SchemaBuilder.struct().field("in", INNER_MADE).field("id", Schema.INT8).build()


@pytest.mark.spark
@pytest.mark.parametrize("inner, made", [({"at": MS}, {"at": TEXT}), (None, None)])
def test_a_nested_field(inner, made, spark_holder):
    before = record(Struct(OUTER, {"in": inner and Struct(INNER, inner), "id": 1}), OUTER)
    after = record(Struct(OUTER_MADE, {"in": made and Struct(INNER_MADE, made), "id": 1}), OUTER_MADE)
    check_transform(converter("string", field="in.at", **{"field.syntax.version": "V2"}), before, after, spark_holder)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, before, error",
    [
        param({}, record("yesterday", Schema.STRING), DataError, id="a text that is not a date"),
        param({"format": ""}, record(TEXT, Schema.STRING), ConnectError, id="a text, and no format"),
        param({}, record(5, Schema.INT32), ConnectError, id="an int"),
        param({"field": "at"}, of(Schema.OPTIONAL_INT32, None), ConnectError, id="an int, even where it is null"),
        param({"field": "at"}, record(MS, Schema.INT64), DataError, id="a field of a number"),
        param({"field": "at"}, of(Schema.BOOLEAN, True), ConnectError, id="a boolean"),
    ],
)
def test_what_cannot_be_converted(props, before, error, spark_holder):
    check_transform(converter("Timestamp", **props), before, error, spark_holder)


@pytest.mark.parametrize(
    "value, made",
    [
        param(MS, Instant(MS), id="a long"),
        param(Int64(MS), Instant(MS), id="a long by its class"),
        param(TEXT, Instant(MS), id="a text"),
        param(Instant(MS), Instant(MS), id="a point in time"),
        param(Int32(5), DataError, id="an int"),
        param(True, DataError, id="a boolean"),
        param([1], DataError, id="a list"),
    ],
)
def test_values_without_a_schema_tell_by_their_class(value, made):
    if made is DataError:
        check_transform(converter("Timestamp"), record(value), DataError)
        return
    check_transform(converter("Timestamp"), record(value), record(made))
    check_transform(converter("Timestamp", field="at"), record({"at": value, "b": 1}), record({"at": made, "b": 1}))


def test_a_long_without_a_schema_has_its_class():
    assert type(converter("unix").apply(record(TEXT)).value) is Int64


def test_a_field_that_a_map_lacks_is_there_as_a_null():
    check_transform(converter("unix", field="at"), record({"b": 1}), record({"b": 1, "at": None}))


@pytest.mark.spark
def test_maps_of_one_shape(check_shape):
    shape = SchemaBuilder.struct().field("at", Schema.INT64).field("b", Schema.STRING).build()
    check_shape(converter("string", field="at"), [{"at": MS, "b": "x"}, {"at": 0, "b": "y"}], shape)
    check_shape(converter("string", field="nope"), [{"at": MS, "b": "x"}], shape, by_columns=False)


@pytest.mark.parametrize(
    "props",
    [
        {},
        {"target.type": "time"},
        {"target.type": "string"},
        {"target.type": "string", "format": " "},
        {"target.type": "unix", "format": "bogus b"},
        {"target.type": "unix", "unix.precision": "minutes"},
    ],
    ids=str,
)
def test_what_is_refused_at_configure(props):
    with pytest.raises(ConfigError):
        TimestampConverter.Value.of(props)


def test_an_error_names_the_text_and_the_format():
    with pytest.raises(DataError, match="'2023/11'.*yyyy-MM"):
        converter("unix", format="yyyy-MM").apply(record("2023/11", Schema.STRING))
