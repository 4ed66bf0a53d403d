"""A record of every type, and what each format's readers make of it."""

import datetime
import decimal

from standalone import Instant, Schema, SchemaBuilder, Struct, date_schema, decimal_schema, time_schema, timestamp_schema

UTC = datetime.timezone.utc
INNER = SchemaBuilder("struct").name("Inner").optional().field("x", Schema.OPTIONAL_INT32).field("y", Schema.OPTIONAL_STRING).build()
EVERYTHING = (
    SchemaBuilder("struct")
    .name("Everything")
    .field("id", Schema.INT64)
    .field("country", Schema.OPTIONAL_STRING)
    .field("i8", Schema.INT8)
    .field("i16", Schema.OPTIONAL_INT16)
    .field("i32", Schema.INT32)
    .field("f64", Schema.OPTIONAL_FLOAT64)
    .field("f32", Schema.FLOAT32)
    .field("flag", Schema.BOOLEAN)
    .field("data", Schema.OPTIONAL_BYTES)
    .field("price", decimal_schema(2, optional=True))
    .field("day", date_schema(optional=True))
    .field("clock", time_schema())
    .field("at", timestamp_schema())
    .field("tags", SchemaBuilder.array(Schema.OPTIONAL_STRING).optional().build())
    .field("sizes", SchemaBuilder.map(Schema.STRING, Schema.INT32).optional().build())
    .field("inner", INNER)
    .build()
)
COUNTRIES = ("de", None, "fr")
START_MS = 1_709_208_000_000  # 2024-02-29 12:00 UTC
MINUTE_MS = 60_000


def value(number):
    """As it is in a record."""
    is_bare = number % 3 == 1
    values = {
        "id": number, "country": COUNTRIES[number % 3], "i8": number % 100 - 50, "i16": None if is_bare else -number, "i32": number * 1000,
        "f64": None if is_bare else number / 4, "f32": 0.5, "flag": number % 2 == 0, "data": None if is_bare else b"\x00\xff%d" % number,
        "price": None if is_bare else decimal.Decimal(number * 100 + 7).scaleb(-2) * (-1) ** number, "day": None if is_bare else Instant(86_400_000 * number),
        "clock": Instant(1000 * number), "at": Instant(START_MS + number * 10 * MINUTE_MS), "tags": None if is_bare else ["a", None, str(number)],
        "sizes": None if is_bare else {"s": number}, "inner": None if is_bare else Struct(INNER, {"x": number}),
    }  # fmt: skip
    return Struct(EVERYTHING, values)


def seen(number):
    """As readers of Parquet see it."""
    plain = value(number).to_dict()
    plain["inner"] = plain["inner"] and plain["inner"].to_dict()
    plain["day"] = plain["day"] and plain["day"].to_datetime().date()
    plain["clock"] = plain["clock"].to_datetime().time()
    plain["at"] = plain["at"].to_datetime()
    return plain


def seen_in_orc(number):
    plain = seen(number)
    return {**plain, "clock": plain["clock"].second * 1000 + plain["clock"].minute * 60_000, "at": plain["at"].replace(tzinfo=None)}


def seen_in_json(number):
    import base64

    plain = seen(number)
    record = value(number)
    raw = record["price"]
    scaled = None if raw is None else int(raw.scaleb(2))
    as_bytes = None if raw is None else scaled.to_bytes((scaled if scaled >= 0 else ~scaled).bit_length() // 8 + 1, "big", signed=True)
    return {
        **plain, "data": plain["data"] and base64.b64encode(plain["data"]).decode(), "price": as_bytes and base64.b64encode(as_bytes).decode(),
        "day": record["day"] and record["day"].ms // 86_400_000, "clock": record["clock"].ms, "at": record["at"].ms,
    }  # fmt: skip


def seen_in_csv(number):
    import base64
    import json

    plain = seen(number)

    def text(item):
        return "" if item is None else str(item)

    nested = {name: "" if plain[name] is None else json.dumps(plain[name], separators=(",", ":")) for name in ("tags", "sizes", "inner")}
    f64 = plain["f64"]
    return {
        **{name: text(item) for name, item in plain.items()}, **nested, "flag": str(plain["flag"]).lower(), "at": f"{plain['at']:%Y-%m-%dT%H:%M:%S}.000Z",
        "clock": f"{plain['clock']:%H:%M:%S}.000", "data": "" if plain["data"] is None else base64.b64encode(plain["data"]).decode(),
        "f64": "" if f64 is None else str(int(f64)) if f64 == int(f64) else str(f64),
    }  # fmt: skip
