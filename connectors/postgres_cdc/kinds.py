"""Column types as Debezium has them: PostgreSQL type -> schema of its values, and parser of PostgreSQL's text format."""

import base64
import binascii
import decimal
import json
import struct
from dataclasses import dataclass
from typing import Any, Callable

from connectors.postgres_cdc import texts
from standalone import DataError, Instant, Schema, Struct, date_schema, decimal_schema, time_schema, timestamp_schema, to_float32

_VERSIONED = {"version": 1}
_MONTH_DAYS = 365.25 / 12
_UNBOUNDED_BITS = 2_147_483_647
_WKB_POINT = struct.Struct("<BIdd")
# Values of PostgreSQL's infinity in its Java driver.
_INFINITE_MICROS = {texts.INFINITY: 9_223_372_036_825_200_000, texts.MINUS_INFINITY: -9_223_372_036_832_400_000}
_INFINITE_MS = {text: micros // 1000 for text, micros in _INFINITE_MICROS.items()}
_INFINITE_DAYS = {texts.INFINITY: (1 << 31) - 1, texts.MINUS_INFINITY: -(1 << 31)}
_MAX_INT64, _MIN_INT64 = (1 << 63) - 1, -(1 << 63)

ADAPTIVE, ADAPTIVE_MICROS, ISO, CONNECT, NANOS = "adaptive", "adaptive_time_microseconds", "isostring", "connect", "nanoseconds"

_VARIABLE = Schema(
    "struct", name="io.debezium.data.VariableScaleDecimal", version=1, doc="Variable scaled decimal",
    fields=None,
)  # fmt: skip


def _fields(*named):
    from standalone import Field

    return [Field(name, at, schema) for at, (name, schema) in enumerate(named)]


VARIABLE_SCALE = _VARIABLE.with_(fields=_fields(("scale", Schema.INT32), ("value", Schema.BYTES)))
POINT = Schema(
    "struct", name="io.debezium.data.geometry.Point", version=1, doc="Geometry (POINT)",
    fields=_fields(("x", Schema.FLOAT64), ("y", Schema.FLOAT64), ("wkb", Schema.OPTIONAL_BYTES), ("srid", Schema.OPTIONAL_INT32)),
)  # fmt: skip


@dataclass(frozen=True)
class TypeInfo:
    """A type in the catalog."""

    oid: int
    name: str
    kind: str  # b(ase), e(num), d(omain), r(ange) …
    element: int = 0  # element type of an array
    base: int = 0  # base type of a domain
    base_modifier: int = -1
    labels: tuple = ()  # labels of an enum


@dataclass(frozen=True)
class Kind:
    """How to read a column's values. `absent` replaces a required value that is not known."""

    schema: Schema
    parse: Callable[[str], Any]
    absent: Any = None
    unavailable: Any = None  # replaces an unchanged value that the server did not send


@dataclass(frozen=True)
class Handling:
    """Options that affect values."""

    numeric: str = "precise"
    time: str = ADAPTIVE
    interval: str = "numeric"
    binary: str = "bytes"
    hstore: str = "json"
    money_digits: int = 2
    keeps_unknown: bool = False
    placeholder: str = "__debezium_unavailable_value"


def under(kind, schema):
    """Rebuild the values' schema for their column or array: a struct must have exactly that schema."""
    if schema.type != "struct":
        return kind
    absent = None if kind.absent is None else Struct.trusted(schema, kind.absent.values)
    return Kind(schema, lambda text: Struct.trusted(schema, kind.parse(text).values), absent, kind.unavailable)


class Kinds:
    """Maps types to Kinds; `info(oid)` returns a TypeInfo."""

    def __init__(self, handling, info):
        self._handling, self._info = handling, info

    def of(self, oid, modifier):
        """Return the Kind of a column, or None if it is left out."""
        info = self._info(oid)
        if info.kind == "d":
            return self.of(info.base, info.base_modifier)
        if info.element:
            return self._array(info, modifier)
        if info.kind == "e":
            return self._text("io.debezium.data.Enum", absent=info.labels[0] if info.labels else "", parameters={"allowed": ",".join(info.labels)})
        made = _BY_NAME.get(info.name)
        if made is not None:
            return made(self, modifier)
        if info.kind in "rm":
            return self._text()
        if self._handling.keeps_unknown:
            return self._bytes(lambda text: text.encode())
        return None

    # --- Strings and bytes --------------------------------------------------------------------------------------------------
    def _text(self, name=None, absent="", parse=str, **more):
        schema = Schema("string", name=name, **(_VERSIONED if name else {}), **more)
        return Kind(schema, parse, absent, self._handling.placeholder)

    def _bytes(self, parse):
        """Bytes in the format of binary.handling.mode."""
        form = BINARY_FORMS[self._handling.binary]
        placeholder = self._handling.placeholder.encode()
        if form is None:
            return Kind(Schema.BYTES, parse, b"", placeholder)
        return Kind(Schema.STRING, lambda text: form(parse(text)), "", form(placeholder))

    def bytea(self, _):
        return self._bytes(lambda text: bytes.fromhex(text[2:]))

    def bits(self, modifier):
        if modifier == 1:
            return Kind(Schema.BOOLEAN, lambda text: text == "1", False)
        return self.varying_bits(modifier)

    def varying_bits(self, modifier):
        length = modifier if modifier > 0 else _UNBOUNDED_BITS
        schema = Schema("bytes", name="io.debezium.data.Bits", version=1, parameters={"length": str(length)})
        return Kind(schema, lambda text: int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little"), b"")

    def hstore(self, _):
        if self._handling.hstore == "map":
            schema = Schema("map", key_schema=Schema.STRING, value_schema=Schema.OPTIONAL_STRING)
            return Kind(schema, texts.hstore, {}, {self._handling.placeholder: self._handling.placeholder})
        return self._text("io.debezium.data.Json", "{}", lambda text: json.dumps(texts.hstore(text), ensure_ascii=False, separators=(",", ":")))

    # --- Numbers ---------------------------------------------------------------------------------------------------------
    def numeric(self, modifier):
        if modifier < 4:
            return self._decimal(None, None)
        precision, scale = modifier - 4 >> 16 & 0xFFFF, (modifier - 4 & 0x7FF ^ 1024) - 1024
        return self._decimal(precision, scale)

    def money(self, _):
        def parse(text):
            number = decimal.Decimal("".join(each for each in text if each.isdigit() or each == "."))
            return number.copy_negate() if text.startswith(("-", "(")) else number

        return self._decimal(None, self._handling.money_digits, parse)

    def _decimal(self, precision, scale, read=decimal.Decimal):
        mode = self._handling.numeric
        if mode == "double":
            return Kind(Schema.FLOAT64, lambda text: float(read(text)), 0.0)
        if mode == "string":
            return Kind(Schema.STRING, lambda text: str(read(text)) if read is not decimal.Decimal else text, "0", self._handling.placeholder)
        if scale is None:
            return Kind(VARIABLE_SCALE, lambda text: _variable(read(text)), _variable(decimal.Decimal(0)))
        parameters = {"scale": str(scale), **({"connect.decimal.precision": str(precision)} if precision is not None else {})}
        schema, unit = decimal_schema(scale).with_(parameters=parameters), decimal.Decimal(1).scaleb(-scale)

        def parse(text):
            return _finite(read(text), text).quantize(unit, context=_WIDE)

        return Kind(schema, parse, decimal.Decimal(0).scaleb(-scale))

    # --- Times -----------------------------------------------------------------------------------------------------------
    def date(self, _):
        mode = self._handling.time
        if mode == CONNECT:
            return Kind(date_schema(), lambda text: Instant(_days(text) * 86_400_000), Instant(0))
        if mode == ISO:
            return self._text("io.debezium.time.IsoDate", "1970-01-01Z", lambda text: f"{texts.iso_day(_days(text))}Z")
        return Kind(Schema("int32", name="io.debezium.time.Date", version=1), _days, 0)

    def time(self, modifier):
        mode = self._handling.time
        if mode == CONNECT:
            return Kind(time_schema(), lambda text: Instant(texts.time_micros(text) // 1000), Instant(0))
        if mode == ISO:
            return self._text("io.debezium.time.IsoTime", "00:00:00Z", lambda text: f"{texts.iso_time(texts.time_micros(text) % texts.DAY_MICROS)}Z")
        if mode == ADAPTIVE and 0 <= modifier <= 3:
            return Kind(Schema("int32", name="io.debezium.time.Time", version=1), lambda text: texts.time_micros(text) // 1000, 0)
        if mode == NANOS:
            return Kind(Schema("int64", name="io.debezium.time.NanoTime", version=1), lambda text: texts.time_micros(text) * 1000, 0)
        return Kind(Schema("int64", name="io.debezium.time.MicroTime", version=1), texts.time_micros, 0)

    def timestamp(self, modifier):
        mode = self._handling.time
        if mode == CONNECT:
            return Kind(timestamp_schema(), lambda text: Instant(_millis(text)), Instant(0))
        if mode == ISO:
            return self._text("io.debezium.time.IsoTimestamp", "1970-01-01T00:00:00Z", _iso_moment)
        if mode in (ADAPTIVE, ADAPTIVE_MICROS) and 0 <= modifier <= 3:
            return Kind(Schema("int64", name="io.debezium.time.Timestamp", version=1), _millis, 0)
        if mode == NANOS:
            return Kind(Schema("int64", name="io.debezium.time.NanoTimestamp", version=1), _nanos, 0)
        return Kind(Schema("int64", name="io.debezium.time.MicroTimestamp", version=1), _moment, 0)

    def zoned_timestamp(self, modifier):
        digits = modifier if modifier >= 0 else 6

        def parse(text):
            return text if text in _INFINITE_MS else f"{texts.iso_moment(texts.moment_micros(text), digits)}Z"

        return self._text("io.debezium.time.ZonedTimestamp", parse("1970-01-01 00:00:00"), parse)

    def zoned_time(self, _):
        def parse(text):
            return f"{texts.iso_time(texts.zoned_time_micros(text) % texts.DAY_MICROS)}Z"

        return self._text("io.debezium.time.ZonedTime", "00:00:00Z", parse)

    def interval(self, _):
        if self._handling.interval == "string":
            return self._text("io.debezium.time.Interval", "P0Y0M0DT0H0M0S", _iso_interval)
        return Kind(Schema("int64", name="io.debezium.time.MicroDuration", version=1), _micro_duration, 0)

    # --- Composite types -----------------------------------------------------------------------------------------------
    def point(self, _):
        return Kind(POINT, _point, _point("(0,0)"))

    def _array(self, info, modifier):
        item = self.of(info.element, modifier)
        if item is None:
            return None
        item = under(item, item.schema.with_(optional=True))
        schema = Schema("array", value_schema=item.schema.with_(optional=True))
        unavailable = self._unavailable_items(item)
        return Kind(schema, lambda text: [None if each is None else item.parse(_one(each)) for each in texts.array(text)], [], unavailable)

    def _unavailable_items(self, item):
        if item.unavailable is not None:
            return [item.unavailable]
        if item.schema.type in ("int32", "int64") and item.schema.name is None:
            return list(self._handling.placeholder.encode())
        return []


def _one(item):
    if isinstance(item, list):
        raise DataError("multidimensional arrays are not supported, as their type does not show the dimensions")
    return item


_WIDE = decimal.Context(prec=200_000, Emax=999_999, Emin=-999_999)


def _finite(number, text):
    if not number.is_finite():
        raise DataError(f"decimal.handling.mode=precise cannot represent {text}: set it to string or double.")
    return number


def _variable(number):
    sign, digits, exponent = _finite(number, str(number)).as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return Struct.trusted(VARIABLE_SCALE, [-exponent, unscaled.to_bytes(size, "big", signed=True)])


def _days(text):
    return _INFINITE_DAYS[text] if text in _INFINITE_DAYS else texts.days(text)


def _moment(text):
    return _INFINITE_MICROS[text] if text in _INFINITE_MICROS else texts.moment_micros(text)


def _iso_moment(text):
    return text if text in _INFINITE_MS else f"{texts.iso_moment(texts.moment_micros(text))}Z"


def _millis(text):
    return _INFINITE_MS[text] if text in _INFINITE_MS else texts.moment_micros(text) // 1000


def _nanos(text):
    if text in _INFINITE_MS:
        return _MAX_INT64 if text == texts.INFINITY else _MIN_INT64
    return texts.moment_micros(text) * 1000


def _micro_duration(text):
    years, months, days, hours, minutes, micros = texts.interval(text)
    whole_days = (years * 12 + months) * _MONTH_DAYS + days
    return int((whole_days * 24 + hours) * 3_600_000_000) + minutes * 60_000_000 + micros


def _iso_interval(text):
    years, months, days, hours, minutes, micros = texts.interval(text)
    sign, (seconds, fraction) = "-" if micros < 0 else "", divmod(abs(micros), 1_000_000)
    shown = f"{sign}{seconds}.{fraction:06d}".rstrip("0").rstrip(".") if fraction else f"{sign}{seconds}"
    return f"P{years}Y{months}M{days}DT{hours}H{minutes}M{shown}S"


def _point(text):
    x, y = map(float, text.strip("()").split(","))
    return Struct.trusted(POINT, [x, y, _WKB_POINT.pack(1, 1, x, y), None])


def _whole(schema):
    return lambda kinds, modifier: Kind(schema, int, 0)


def _named(name=None, absent=""):
    return lambda kinds, modifier: kinds._text(name, absent)


BINARY_FORMS = {
    "bytes": None,
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "hex": lambda data: binascii.hexlify(data).decode(),
}
_BY_NAME = {
    "bool": lambda kinds, modifier: Kind(Schema.BOOLEAN, lambda text: text[0] == "t", False),
    "int2": _whole(Schema.INT16), "int4": _whole(Schema.INT32), "int8": _whole(Schema.INT64), "oid": _whole(Schema.INT64),
    "float4": lambda kinds, modifier: Kind(Schema.FLOAT32, lambda text: to_float32(float(text)), 0.0),
    "float8": lambda kinds, modifier: Kind(Schema.FLOAT64, float, 0.0),
    "numeric": Kinds.numeric, "money": Kinds.money, "bytea": Kinds.bytea, "bit": Kinds.bits, "varbit": Kinds.varying_bits,
    "date": Kinds.date, "time": Kinds.time, "timetz": Kinds.zoned_time, "timestamp": Kinds.timestamp, "timestamptz": Kinds.zoned_timestamp,
    "interval": Kinds.interval, "point": Kinds.point, "hstore": Kinds.hstore,
    "json": _named("io.debezium.data.Json", "{}"), "jsonb": _named("io.debezium.data.Json", "{}"), "xml": _named("io.debezium.data.Xml"),
    "uuid": _named("io.debezium.data.Uuid"), "ltree": _named("io.debezium.data.Ltree"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "citext", "inet", "cidr", "macaddr", "macaddr8"), _named()),
}  # fmt: skip
