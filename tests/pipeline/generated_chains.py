"""Chains, schemas and records out of a seed: what a property test of both engines runs on.

hypothesis draws the seeds alone: of choices as many as these it makes the same few cases again and again. What is here reads like its
strategies: `draw(one_of(A, B))`.
"""

import decimal

from standalone import (
    ConfigError,
    Header,
    Instant,
    Schema,
    SchemaBuilder,
    SinkRecord,
    SourceRecord,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
    to_float32,
)
from standalone.data import schema as s
from standalone.pipeline.chain import Link
from standalone.predicates.has_header_key import HasHeaderKey
from standalone.predicates.record_is_tombstone import RecordIsTombstone
from standalone.predicates.topic_name_matches import TopicNameMatches
from standalone.transforms.cast import Cast
from standalone.transforms.drop_headers import DropHeaders
from standalone.transforms.extract_field import ExtractField
from standalone.transforms.filter import Filter
from standalone.transforms.flatten import Flatten
from standalone.transforms.header_from import HeaderFrom
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.insert_field import InsertField
from standalone.transforms.insert_header import InsertHeader
from standalone.transforms.mask_field import MaskField
from standalone.transforms.regex_router import RegexRouter
from standalone.transforms.replace_field import ReplaceField
from standalone.transforms.set_schema_metadata import SetSchemaMetadata
from standalone.transforms.timestamp_converter import TimestampConverter
from standalone.transforms.timestamp_router import TimestampRouter
from standalone.transforms.value_to_key import ValueToKey

NAMES = ["a", "b", "A", "c.d", "e`f", "g h", "ü", "`", "n"]
DAY_MS = 86_400_000
MOMENTS = [0, 1, 1_700_000_000_123, 1_700_006_400_000, -1, 951_782_400_000, 5 * DAY_MS, 253_402_300_800_000, -62_135_596_800_000]
TEXTS = ["", "x", "12", "-7", "+5", " 5", "300", "99999999999", "true", "TRUE", "1.5", "1e3", "NaN", "inf", "2023-11-14", "ü€😀", "14/11/2023 10:11", "a\x00b"]
INTS = [0, 1, -1, 7, 100, 127, -128]
FLOATS = [0.0, -0.0, 1.5, -2.25, 0.1, 1e10, 3.4e38, 2e23, float("nan"), float("inf"), -1e-5]
DECIMALS = ["0", "1.50", "-12.345", "99999999999999999999.9", "7E+2", "0.0000001"]
FORMATS = ["yyyy-MM-dd", "dd/MM/yyyy HH:mm", "EEE MMM d yyyy hh:mm:ss.SSS a", "yyyy-MM-dd'T'HH:mm:ss.SSSX"]
TARGETS = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"]
SCALES = {s.INT8: 1, s.INT16: 1 << 8, s.INT32: 1 << 24, s.INT64: 1 << 56}
V2 = {"field.syntax.version": "V2"}

# --- Drawing -------------------------------------------------------------------------------------------------------


def composite(function):
    """A function of `draw` and more as one of more that is itself drawn."""

    def prepared(*args):
        return lambda random: function(lambda drawn: drawn(random), *args)

    return prepared


def sampled_from(items):
    return lambda random: random.choice(items)


def integers(low, high):
    return lambda random: random.randint(low, high)


def booleans():
    return lambda random: random.random() < 0.5


def lists(drawn, min_size=0, max_size=3, unique=True):
    def items(random):
        found = [drawn(random) for _ in range(random.randint(min_size, max_size))]
        return list(dict.fromkeys(found)) if unique else found

    return items


# --- Schemas and values --------------------------------------------------------------------------------------------

_PLAIN = [Schema(kind) for kind in s.PRIMITIVES] + [date_schema(), time_schema(), timestamp_schema(), timestamp_schema(), decimal_schema(2)]


@composite
def schemas(draw, depth=2):
    """Of any type; structs are likely at the top."""
    kinds = ["plain"] * 6 + (["struct", "array", "map"] if depth else [])
    kind = draw(sampled_from(kinds)) if depth < 2 else draw(sampled_from(["struct"] * 9 + ["plain"]))
    optional = draw(booleans())
    if kind == "struct":
        builder = SchemaBuilder.struct()
        for name in draw(lists(sampled_from(NAMES), min_size=1, max_size=5 if depth == 2 else 3, unique=True)):
            builder.field(name, draw(schemas(depth - 1)))
        return builder.build().with_(optional=optional, name=draw(sampled_from([None, None, "Place"])))
    if kind == "array":
        return SchemaBuilder.array(draw(schemas(0))).build().with_(optional=optional)
    if kind == "map":
        return SchemaBuilder.map(Schema.STRING, draw(schemas(0))).build().with_(optional=optional)
    schema = draw(sampled_from(_PLAIN)).with_(optional=optional)
    if draw(integers(0, 4)) == 0:
        schema = schema.with_(default=draw(lambda random: value_of(schema.with_(optional=False), random)))
    return schema


def value_of(schema, random):
    if schema.optional and random.random() < 0.15:
        return None
    if schema.name == s.DECIMAL:
        return decimal.Decimal(random.choice(DECIMALS))
    if schema.logical:
        moment = random.choice(MOMENTS)
        return Instant(moment // DAY_MS * DAY_MS if schema.name == s.DATE else moment % DAY_MS if schema.name == s.TIME else moment)
    if schema.type in SCALES:
        return random.choice(INTS) * random.choice([1, SCALES[schema.type]])
    if schema.type == s.FLOAT32:
        return to_float32(random.choice(FLOATS))
    if schema.type == s.FLOAT64:
        return random.choice(FLOATS)
    if schema.type == s.BOOLEAN:
        return random.random() < 0.5
    if schema.type == s.STRING:
        return random.choice(TEXTS)
    if schema.type == s.BYTES:
        return random.choice([b"", b"x", b"\x80\xff"])
    if schema.type == s.ARRAY:
        return [value_of(schema.value_schema, random) for _ in range(random.randrange(3))]
    if schema.type == s.MAP:
        return {name: value_of(schema.value_schema, random) for name in random.choice([[], ["k"], ["k", "l"]])}
    return Struct.trusted(schema, [value_of(field.schema, random) for field in schema.fields])


# --- Records -------------------------------------------------------------------------------------------------------

_HEADERS = [Header("trace", "1", Schema.STRING), Header("host", "web1", Schema.STRING), Header("n", None)]


def batch_of(key_schema, value_schema, is_sink, rows, random):
    """Records that are alike: of one topic or of several, with headers or without."""
    topics = random.choice([["web"], ["web"], ["web", "db-1", ""]])
    times = random.choice([[None], [1_700_000_000_123], [None, 0, -5, 951_782_399_999]])
    headers = random.choice([[()], [(), tuple(_HEADERS), (_HEADERS[0], _HEADERS[0])]])
    partition = random.choice([0, 7] if is_sink else [None, 0, 7])
    records = []
    for row in range(rows):
        parts = {
            "partition": partition,
            "key_schema": key_schema,
            "key": None if key_schema is None else value_of(key_schema, random),
            "value_schema": value_schema,
            "value": value_of(value_schema, random),
            "timestamp": random.choice(times),
            "headers": random.choice(headers),
        }
        topic = random.choice(topics)
        records.append(SinkRecord(topic, offset=row + 5, timestamp_type=0, **parts) if is_sink else SourceRecord(topic, **parts))
    return records


def behind_links(links, record):
    """What the row forms make of it: a record, None where it is dropped, or the error."""
    for link in links:
        try:
            if link.predicate is None or link.predicate.test(record) is not link.negate:
                record = link.transform.apply(record)
        except Exception as error:
            return error
        if record is None:
            return None
    return record


# --- Chains --------------------------------------------------------------------------------------------------------


def _insert_field(draw, names, deep):
    marks = sampled_from(["", "!", "?"])
    kinds = draw(lists(sampled_from(["topic", "partition", "offset", "timestamp", "static"]), min_size=1, max_size=3, unique=True))
    props = {f"{kind}.field": draw(sampled_from(["x", "y.z", *names])) + draw(marks) for kind in kinds}
    return InsertField, {**props, "static.value": draw(sampled_from(["s", "", "12"]))}


def _replace_field(draw, names, deep):
    some = lists(sampled_from(names), max_size=2, unique=True)
    renames = [f"{name}:{draw(sampled_from(['r', 'q.`x', 'a']))}" for name in draw(some) if ":" not in name]
    return ReplaceField, {"exclude": ",".join(draw(some)), "include": ",".join(draw(some)), "renames": ",".join(renames), **deep}


def _cast(draw, names, deep):
    if draw(integers(0, 4)) == 0:
        return Cast, {"spec": draw(sampled_from(TARGETS))}
    casts = [f"{name}:{draw(sampled_from(TARGETS))}" for name in draw(lists(sampled_from(names), min_size=1, max_size=3, unique=True))]
    return Cast, {"spec": ",".join(casts), **deep}


def _mask_field(draw, names, deep):
    props = {"fields": ",".join(draw(lists(sampled_from(names), min_size=1, max_size=2, unique=True))), **deep}
    replacement = draw(sampled_from([None, None, "7", "x"]))
    return MaskField, props if replacement is None else {**props, "replacement": replacement}


def _timestamp_converter(draw, names, deep):
    return TimestampConverter, {
        "field": draw(sampled_from(["", *names])),
        "target.type": draw(sampled_from(["string", "unix", "Date", "Time", "Timestamp"])),
        "format": draw(sampled_from(FORMATS)),
        "unix.precision": draw(sampled_from(["milliseconds", "seconds", "microseconds", "nanoseconds"])),
        **deep,
    }


def _extract_field(draw, names, deep):
    return ExtractField, {"field": draw(sampled_from(names)), **deep}


def _value_to_key(draw, names, deep):
    return ValueToKey, {"fields": ",".join(draw(lists(sampled_from(names), min_size=1, max_size=2, unique=True))), **deep}


def _header_from(draw, names, deep):
    fields = draw(lists(sampled_from(names), min_size=1, max_size=2, unique=True))
    operation = draw(sampled_from(["copy", "move"]))
    return HeaderFrom, {"fields": ",".join(fields), "headers": ",".join(["trace", "h"][: len(fields)]), "operation": operation, **deep}


_OTHERS = [
    (HoistField, {"field": "a"}),
    (HoistField, {"field": "c.`d"}),
    (Flatten, {}),
    (Flatten, {"delimiter": "`"}),
    (SetSchemaMetadata, {"schema.name": "New", "schema.version": "2"}),
    (InsertHeader, {"header": "trace", "value.literal": "12"}),
    (DropHeaders, {"headers": "trace,x"}),
    (RegexRouter, {"regex": "(\\w+)-(\\d)|web", "replacement": "r.$1"}),
    (TimestampRouter, {"timestamp.format": "yyyyMMdd HH"}),
]
_FIELDS = [_insert_field, _replace_field, _cast, _cast, _mask_field, _timestamp_converter, _timestamp_converter, _extract_field, _value_to_key, _header_from]
_PREDICATES = [
    (HasHeaderKey, {"name": "trace"}),
    (RecordIsTombstone, {}),
    (TopicNameMatches, {"pattern": "web.*"}),
]


@composite
def links(draw, schemas_there, alias):
    deep = draw(sampled_from([{}, {}, V2]))
    where = draw(sampled_from(["Value", "Value", "Value", "Key"])) if schemas_there["Key"] is not None else "Value"
    schema = schemas_there[where]
    if draw(integers(0, 3)):
        names = _paths(schema) if deep else [field.name for field in schema.fields] if schema is not None and schema.type == s.STRUCT else []
        kind, props = draw(sampled_from(_FIELDS))(draw, [*names, *names, *names, "a", "n"], deep)
    else:
        kind, props = draw(sampled_from(_OTHERS))
    needs_predicate = draw(integers(0, 9)) == 0
    if needs_predicate:
        kind, props = Filter, {}
    if "replace.null.with.default" in {option.name for option in kind.config_def} and draw(booleans()):
        props = {**props, "replace.null.with.default": "false"}
    try:
        transform = getattr(kind, where, kind).of(props)
    except ConfigError:
        transform, props = Flatten.Value.of({}), {}
    predicate = None
    keeps_schema = isinstance(transform, (MaskField, InsertHeader, DropHeaders, RegexRouter, TimestampRouter))
    if needs_predicate or draw(integers(0, 1 if keeps_schema else 12)) == 0:
        which, said = draw(sampled_from(_PREDICATES))
        predicate = which.of(said)
    return Link(f"{alias}:{type(transform).__qualname__} {props}", transform, predicate, draw(booleans()))


def _paths(schema, before=""):
    """All paths of a schema, in the syntax of V2."""
    found = []
    for field in schema.fields if schema is not None and schema.type == s.STRUCT else ():
        path = f"{before}`{field.name}`" if "." in field.name or field.name.startswith("`") else before + field.name
        found += [path, *_paths(field.schema, path + ".")]
    return found


@composite
def cases(draw, examples, rows):
    """(links, that many batches of records, all of one schema). Each link is drawn for what comes out of those before it."""
    value_schema = draw(schemas())
    key_schema = draw(schemas()) if draw(booleans()) else None
    is_sink = draw(booleans())
    batches = draw(lambda random: [batch_of(key_schema, value_schema, is_sink, rows, random) for _ in range(examples)])
    chain, records = [], [record for batch in batches for record in batch]
    for at in range(draw(sampled_from([1, 2, 3, 4]))):
        there = {"Key": records[0].key_schema, "Value": records[0].value_schema}
        for attempt in range(6):  # most of what is drawn would fail on every record, and prove little
            link = draw(links(there, at))
            behind = [made for record in records if (made := behind_links([link], record)) is not None and not isinstance(made, Exception)]
            if behind:
                break
        chain.append(link)
        records = behind or records
    return chain, batches
