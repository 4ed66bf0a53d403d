"""What transforms cache for the next record never shows in it."""

import pytest

from standalone import DataError, Float32, Int8, Int16, Int32, Int64, Schema, SchemaBuilder, SourceRecord, Struct
from standalone.data.java_numbers import narrowed, parse_floating, parse_whole, to_single
from standalone.data.values import to_text
from standalone.transforms.cast import Cast
from standalone.transforms.cast_functions import TARGETS
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.replace_field import ReplaceField

VALUES = [
    *(True, 0, 7, -1, 127, 128, -128, -129, 300, 1 << 31, (1 << 63) - 1, -(1 << 63)),
    *(0.0, -0.0, 0.9, -128.5, 127.9, 1e10, 1e300, float("inf"), float("nan")),
    *(Int8(5), Int16(300), Int32(-70_000), Int64(1 << 40), Float32(1.5)),
    *("12", "-12", "+7", "0012", "99999999999999999999", "1.5", "٣", "", " 1", "true", "x", b"\x01", None),
]


def outcome(work):
    try:
        found = work()
    except (DataError, ValueError):
        return DataError
    return type(found), repr(found)


def cast_slowly(value, kind):
    """A cast with nothing cached: by Java's parsers and narrowing alone."""
    if value is None or kind == "string":
        return to_text(value)
    if isinstance(value, bytes):
        raise DataError("no number")
    if kind == "boolean":
        return value.lower() == "true" if isinstance(value, str) else bool(narrowed(value, "int64"))
    if isinstance(value, str):
        return parse_floating(value, kind) if kind.startswith("float") else parse_whole(value, kind)
    return narrowed(value, kind) if kind.startswith("int") else float(value) if kind == "float64" else to_single(value)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_casts_kept_by_class_are_those_of_one_value(kind, value):
    field, whole = Cast.Value.of({"spec": f"f:{kind}"}), Cast.Value.of({"spec": kind})
    expected = outcome(lambda: cast_slowly(value, kind))
    assert outcome(lambda: field.apply(SourceRecord("t", {"f": value})).value["f"]) == expected
    assert outcome(lambda: whole.apply(SourceRecord("t", value)).value) == expected


def test_names_that_are_equal_are_not_always_the_same():
    replace = ReplaceField.Value.of({"exclude": "gone", "renames": "old:new"})
    for name in ("old", 1, True, 1.0):
        ((found, value),) = replace.apply(SourceRecord("t", {name: "x", "gone": 1})).value.items()
        assert (type(found), found, value) == (type(name), "new" if name == "old" else name, "x")


def test_maps_whose_names_change_all_the_time():
    replace = ReplaceField.Value.of({"exclude": "gone"})
    for number in range(2500):
        assert replace.apply(SourceRecord("t", {f"f{number}": number, "gone": 1})).value == {f"f{number}": number}


def test_schemas_that_take_turns():
    hoist = HoistField.Value.of({"field": "f"})
    for schema, value in [(Schema.STRING, "a"), (Schema.INT64, 1), (Schema.STRING, "b"), (Schema.INT64, 2)] * 2:
        expected = Struct(SchemaBuilder.struct().field("f", schema).build(), {"f": value})
        made = hoist.apply(SourceRecord("t", value, value_schema=schema))
        assert (made.value_schema, made.value) == (expected.schema, expected)


def test_a_value_that_does_not_fit_its_schema_is_not_hoisted():
    hoist = HoistField.Value.of({"field": "f"})
    for schema, value in [(Schema.INT32, "a"), (Schema.INT8, 300), (Schema.STRING, None)]:
        with pytest.raises(DataError, match="Field 'f'"):
            hoist.apply(SourceRecord("t", value, value_schema=schema))
