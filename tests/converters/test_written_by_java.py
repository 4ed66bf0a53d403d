"""Values that Avro's own Java library and protoc's Java classes wrote: tests/golden/written-by-java.txt, which writers/record records."""

import decimal
import math

import pytest

from standalone import ByteColumn, Instant, Struct
from standalone.converters.avro.converter import AvroConverter
from standalone.converters.protobuf.converter import ProtobufConverter
from standalone.data.column import values_of
from standalone.schema_registry.client import RegistrySchema
from tests.converters.fake_registry import FakeRegistry, with_registry
from tests.suite.golden import GOLDEN

LINES = dict(line.split(" ") for line in (GOLDEN / "written-by-java.txt").read_text().splitlines())
LINES = {name: bytes.fromhex(text) for name, text in LINES.items()}
AS_REGISTERED = {"auto__register__schemas": "false", "use__schema__id": "1", "id__compatibility__strict": "false"}
AVRO, PROTOBUF = (GOLDEN / "writers" / "event.avsc").read_text(), (GOLDEN / "writers" / "order.proto").read_text()


def converter(kind, text, **config):
    registry = FakeRegistry()
    registry.register("t-value", RegistrySchema(text, kind.kind))
    return with_registry(kind, registry, **AS_REGISTERED, **config)


def plain(value):
    """Structs as dicts, however deep."""
    if isinstance(value, Struct):
        return {name: plain(each) for name, each in value.to_dict().items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def avro_message(name):
    return b"\0\0\0\0\1" + LINES[name]


def protobuf_message(name):
    return b"\0\0\0\0\1\2\2" + LINES[name]  # the second message of its file


# --- Avro ------------------------------------------------------------------------------------------------------------


def event(number, **more):
    positive = number > 0
    return {
        "flag": number < 0,
        "i": max(-(1 << 31), min((1 << 31) - 1, number)),
        "l": number,
        "f": pytest.approx(3.4028234663852886e38) if positive else -0.0,
        "d": math.inf if positive else -1.5,
        "text": "",
        "raw": b"\0\xff\x7f",
        "maybe": None,
        "either": {"long": None, "string": "text"} if positive else None,
        "colour": "GREEN" if positive else "RED",
        "hash": b"\1\2\3\4",
        "lines": [],
        "tags": {},
        "price": decimal.Decimal("0.00"),
        "day": Instant(20_000 * 86_400_000 if positive else -86_400_000),
        "clock": Instant(86_399_999),
        "at": Instant(253_402_300_799_999 if positive else -1),
        "micros": number,
        **more,
    }


SKUS = [("a", 1), ("b", -64), ("c", 64), ("d", 8192), ("e", 1 << 30), ("f", 0), ("a long one, of more than a block's bytes", 7)]
EVENTS = {
    "avro-0": event(
        -7,
        text="é€😀",
        maybe="there",
        either={"long": 5, "string": None},
        lines=[{"sku": sku, "count": count} for sku, count in SKUS],
        tags={f"key {at}": None if at % 3 == 0 else f"value {at}" for at in range(20)},
        price=decimal.Decimal("-12345678901234567890.12"),
    ),
    "avro-2": event((1 << 63) - 1),
    "avro-3": event(-(1 << 63)),
}


@pytest.mark.parametrize("blocked", ["", "-blocked"])
@pytest.mark.parametrize("name", EVENTS)
def test_what_avros_java_library_wrote_is_read(name, blocked):
    assert plain(converter(AvroConverter, AVRO).to_connect("t", avro_message(name + blocked))[1]) == EVENTS[name]


@pytest.mark.parametrize("name", [*EVENTS, "avro-1"])
def test_what_it_wrote_is_written_again_to_the_byte(name):
    made = converter(AvroConverter, AVRO, enhanced__avro__schema__support="true")
    assert made.from_connect("t", *made.to_connect("t", avro_message(name))) == avro_message(name)


def test_what_it_wrote_is_read_by_columns_as_by_rows():
    made = converter(AvroConverter, AVRO)
    messages = [avro_message(name) for name in LINES if name.startswith("avro")]
    schema, column, bad = made.decode("t", ByteColumn.of(messages))
    assert bad is None and repr(values_of(column, schema, len(messages))) == repr([made.to_connect("t", each)[1] for each in messages])


# --- Protobuf --------------------------------------------------------------------------------------------------------

NOTHING = {
    **dict.fromkeys(("i32", "i64", "u32", "u64", "s32", "s64", "f32", "f64", "sf32", "sf64"), 0),
    **{"single": 0.0, "real": 0.0, "flag": False, "text": "", "raw": b"", "maybe": None, "colour": "RED", "numbers": [], "lines": []},
    **{"counts": {}, "payment_0": None, "at": None, "wrapped": None},
}
ORDERS = {
    "protobuf-0": {
        **{"i32": -1, "i64": -(1 << 63), "u32": (1 << 32) - 1, "u64": -1, "s32": -(1 << 31), "s64": -2, "f32": (1 << 32) - 3, "f64": 7},
        **{"sf32": -4, "sf64": -5, "single": 0.5, "real": -0.0, "flag": True, "text": "é€😀", "raw": b"\0\xff", "maybe": "", "colour": "GREEN"},
        **{"numbers": [0, -1, 300], "lines": [{"sku": "a", "count": 9}, {"sku": "", "count": 0}], "counts": {"x": -1}},
        **{"payment_0": {"card": None, "voucher": {"sku": "v", "count": 0}}, "at": Instant(12_345), "wrapped": {"value": "w"}},
    },
    "protobuf-1": NOTHING,
    "protobuf-2": NOTHING | {"payment_0": {"card": "4111", "voucher": None}, "counts": {"a": 2, "b": 1}, "wrapped": {"value": ""}},
}


@pytest.mark.parametrize("name", ORDERS)
def test_what_protocs_java_classes_wrote_is_read(name):
    assert plain(converter(ProtobufConverter, PROTOBUF).to_connect("t", protobuf_message(name))[1]) == ORDERS[name]


@pytest.mark.parametrize("name", ["protobuf-0", "protobuf-1"])  # the entries of a map have no order of their own
def test_what_they_wrote_is_written_again_to_the_byte(name):
    made = converter(ProtobufConverter, PROTOBUF, wrapper__for__nullables="true", optional__for__nullables="true")
    assert made.from_connect("t", *made.to_connect("t", protobuf_message(name))) == protobuf_message(name)
