"""The two forms of every function are one: each is run by row and by Spark over special and generated values, in one body.

What Spark makes is what the row form makes, wherever the columnar form does not leave a value to the rows; and a value that is an
error by row is left to the rows.
"""

import decimal
import importlib
import math
import pkgutil
import random
import struct

import pyarrow as pa
import pytest

import standalone.predicates
import standalone.transforms
from standalone import (
    ConnectError,
    F,
    Float32,
    Float64,
    Function,
    Instant,
    NoColumns,
    Schema,
    SchemaBuilder,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from standalone.data import arrow
from standalone.data.scalars import CLASSES, WIDTHS
from standalone.expression import FLOAT_TEXT
from standalone.pipeline.spark.columns import SparkColumns
from standalone.predicates.topic_name_matches import TopicNameMatches
from standalone.transforms import cast_functions
from standalone.transforms.cast_functions import TARGETS
from standalone.transforms.date_format import DateFormat
from standalone.transforms.extract_field import ExtractField
from standalone.transforms.flatten import Flatten
from standalone.transforms.header_from import HeaderFrom
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.mask_field import MaskField
from standalone.transforms.regex_router import RegexRouter
from standalone.transforms.replace_field import ReplaceField
from standalone.transforms.set_schema_metadata import SetSchemaMetadata
from standalone.transforms.timestamp_converter import PER_SECOND, SCHEMAS, Convert
from standalone.transforms.value_to_key import ValueToKey

DRAW = random.Random(23)
FORMAT = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSSX")
PERSON = SchemaBuilder.struct().field("name", Schema.OPTIONAL_STRING).field("age", Schema.OPTIONAL_INT32).build()
ORDER = SchemaBuilder.struct().field("id", Schema.INT64).field("by", PERSON).field("paid", Schema.OPTIONAL_BOOLEAN).build()


def integers(bits):
    half = 1 << bits - 1
    return [0, 1, -1, 7, half - 1, -half, *((DRAW.getrandbits(bits) - half) >> DRAW.randrange(bits) for _ in range(60))]


def floats():
    near = [DRAW.uniform(-1, 1) * 10 ** DRAW.randint(-5, 25) for _ in range(60)]
    return [0.0, -0.0, 0.9, -0.9, 127.5, -128.5, 1e10, 3e38, -1e19, math.inf, -math.inf, math.nan, *near]


def texts():
    numbers = [str(each) for each in [*integers(8), *integers(32), *integers(64), *floats()]]
    mangled = [text[:at] + DRAW.choice(" +-.x0eEfdٓ٣\n") + text[at:] for text in numbers for at in [DRAW.randint(0, len(text))]]
    return ["", " ", "true", "TRUE", "yes", "NaN", "nan", "-Infinity", "inf", "1.5f", "0x1p3", "+7", "9" * 25, *numbers, *mangled]


def moments():
    return [0, -1, 86_399_999, 86_400_000, *(DRAW.randint(-(1 << 42), 1 << 42) for _ in range(60)), 1 << 62, -(1 << 62)]


def values_of(schema):
    """Special and generated values of a schema; not null."""
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        return [decimal.Decimal(number).scaleb(-2) for number in [*integers(16), *integers(50), *integers(90)]]
    if schema.logical:
        whole_days = [ms // 86_400_000 * 86_400_000 for ms in moments()]
        return [Instant(ms) for ms in [*moments(), *whole_days, *(ms % 86_400_000 for ms in moments())]]
    if schema.type in WIDTHS:
        return [CLASSES[schema.type](number) for number in integers(WIDTHS[schema.type])]
    if schema.type == "float32":
        return [Float32(struct.unpack("f", struct.pack("f", each if abs(each) < 3.4e38 else math.copysign(math.inf, each)))[0]) for each in floats()]
    if schema.type == "struct":
        columns = [values_of(field.schema) for field in schema.fields]
        optional = [field.schema.optional for field in schema.fields]
        return [
            Struct.trusted(schema, [None if may and DRAW.random() < 0.3 else DRAW.choice(column) for column, may in zip(columns, optional)])
            for _ in range(60)
        ]
    return {
        "float64": lambda: [Float64(each) for each in floats()],
        "boolean": lambda: [True, False],
        "string": texts,
        "bytes": lambda: [b"", b"\x00", *(DRAW.randbytes(DRAW.randint(1, 120)) for _ in range(30))],
    }[schema.type]()


def stored(value, schema):
    """A value as Arrow and Spark hold it; numbers by their bits."""
    if value is None:
        return None
    if schema.type == "struct":
        return {field.name: stored(item, field.schema) for field, item in zip(schema.fields, value.values)}
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        unscaled, scale = arrow.unscaled_bytes(decimal.Decimal(value))
        return {"unscaled": unscaled, "scale": scale}
    return Instant.of(value).ms if schema.logical else value


def shown(value):
    """Something to compare: floats as their bits distinguish them, but for those of NaN."""
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return repr(float(value)) if isinstance(value, float) else value


def by_row(function, value):
    try:
        return shown(stored(function.row(value), function.schema))
    except ConnectError:
        return ConnectError


def check_pairs(functions, schema, spark):
    """Run functions of values of that schema by row and, in one job, by Spark; how many values Spark did for each."""
    values = values_of(schema)
    said, refused = [], []
    for function in functions:
        try:
            made, failed = function.column(F.col("v"))
        except (NoColumns, ConnectError):
            refused.append(function)
            continue
        if made.function != FLOAT_TEXT:  # a kernel writes it, after the job
            said.append((function, made, F.lit(False) if failed is None else F.coalesce(failed, F.lit(True))))
    for function in refused:
        assert {by_row(function, value) for value in values} == {ConnectError}, type(function)
    if not said:
        return {}
    columns = [pa.array([stored(value, schema) for value in values], arrow.arrow_type(schema)), pa.array(range(len(values)))]
    frame = spark.createDataFrame(pa.table(columns, names=["v", "row"]))
    picked = [SparkColumns().of(each).alias(f"c{at}") for at, each in enumerate(each for _, *pair in said for each in pair)]
    table = frame.select("row", *picked).toArrow().sort_by("row")
    done = {}
    for at, (function, _, _) in enumerate(said):
        made, failed = table[f"c{2 * at}"].to_pylist(), table[f"c{2 * at + 1}"].to_pylist()
        kept = [(value, shown(one)) for value, one, is_failed in zip(values, made, failed) if not is_failed]
        expected = [(value, by_row(function, value)) for value, _ in kept]
        wrong = [(value, one, other) for (value, one), (_, other) in zip(kept, expected) if one != other]
        assert not wrong, f"{type(function).__name__} of {schema.name or schema.type}: (value, Spark, row) {wrong[:5]}"
        done[function] = len(kept) / len(values)
    return done


SOURCES = [
    *(Schema(kind) for kind in (*TARGETS, "bytes")),
    *(decimal_schema(2), date_schema(), time_schema(), timestamp_schema()),
]


@pytest.mark.spark
@pytest.mark.parametrize("schema", SOURCES, ids=lambda schema: schema.name or schema.type)
def test_casts(schema, spark_holder):
    functions = [cast_functions.function(schema, kind) for kind in TARGETS]
    for function in functions:
        function.schema = Schema(function.kind)
    done = check_pairs(functions, schema, spark_holder.ready())
    for function, share in done.items():
        assert share > 0.1, f"{type(function).__name__} leaves nearly all values to the rows"
    if not schema.logical and schema.type not in ("string", "bytes"):
        assert set(done.values()) == {1.0}  # numbers are all Spark's


@pytest.mark.spark
@pytest.mark.parametrize("schema", [pair[0] for pair in SCHEMAS.values()], ids=lambda schema: schema.name or schema.type)
def test_conversions_between_forms_of_a_point_in_time(schema, spark_holder):
    changes = [Convert(target, per_second, FORMAT) for target in SCHEMAS for per_second in PER_SECOND.values()]
    done = check_pairs([change.of(schema) for change in changes], schema, spark_holder.ready())
    assert len(done) == len(changes)


@pytest.mark.spark
@pytest.mark.parametrize("schema", [*SOURCES, ORDER], ids=lambda schema: schema.name or schema.type)
def test_masks(schema, spark_holder):
    props = [{"fields": "f"}, {"fields": "f", "replacement": "12"}]
    changes = [MaskField.Value.of(each).change for each in props]
    wrapped = SchemaBuilder.struct().field("f", schema).build()
    functions = []
    for change in changes:
        try:
            functions.append(change.of(wrapped))
        except ConnectError:
            continue
    check_pairs(functions, wrapped, spark_holder.ready())


@pytest.mark.spark
@pytest.mark.parametrize(
    "transform",
    [
        HoistField.Value.of({"field": "f"}),
        Flatten.Value.of({"delimiter": "."}),
        ExtractField.Value.of({"field": "by.name", "field.syntax.version": "V2"}),
        ReplaceField.Value.of({"exclude": "paid", "renames": "id:number"}),
        SetSchemaMetadata.Value.of({"schema.name": "N"}),
        ValueToKey.of({"fields": "paid,id"}),
        ValueToKey.of({"fields": "by.name", "field.syntax.version": "V2"}),
        HeaderFrom.Value.of({"fields": "id", "headers": "h", "operation": "copy"}),
        HeaderFrom.Value.of({"fields": "id", "headers": "h", "operation": "move"}),
        ReplaceField.Value.of({"exclude": "by.age", "renames": "by.name:called", "field.syntax.version": "V2"}),
    ],
    ids=lambda transform: type(transform).__qualname__,
)
def test_edits_of_structs(transform, spark_holder):
    done = check_pairs([transform.change.of(ORDER)], ORDER, spark_holder.ready())
    assert list(done.values()) == [1.0]


@pytest.mark.spark
@pytest.mark.parametrize("regex", ["web-(.*)", "(?<all>.*)", "a|ab", "[0-9.]+", ".", ""])
def test_topics(regex, spark_holder):
    replacement = "${all}!" if "<all>" in regex else "$1-copy" if "(" in regex else "new"
    functions = [RegexRouter.of(regex=regex, replacement=replacement).fact.function]
    functions += [TopicNameMatches.of(pattern=regex).fact.function] if regex else []
    done = check_pairs(functions, Schema.STRING, spark_holder.ready())
    assert set(done.values()) == {1.0}


CHECKED = {
    *("Refused", "NumberOfNumber", "NumberOfText", "NumberOfBytes", "NumberOfPoint", "NumberOfDecimal", "TextOfText", "TextOfWhole"),
    *("TextOfBoolean", "TextOfFloat", "TextOfBytes", "TextOfPoint", "TextOfDecimal"),  # casts
    *("_Routed", "_Matches"),  # of topics
    *("Converted", "NoPoint", "_Mask", "_Hoisted", "FieldAt", "_Flattened", "_FlattenedShape", "StructCopy", "_StructOf", "_Same"),
}


def test_no_function_is_left_out():
    for module in pkgutil.iter_modules(standalone.transforms.__path__):
        importlib.import_module(f"standalone.transforms.{module.name}")
    for module in pkgutil.iter_modules(standalone.predicates.__path__):
        importlib.import_module(f"standalone.predicates.{module.name}")

    def below(kind):
        return {each for child in kind.__subclasses__() for each in (child, *below(child))}

    found = {kind.__name__ for kind in below(Function) if kind.__module__.startswith(("standalone.transforms.", "standalone.predicates.")) and not kind.__subclasses__()}
    assert found == CHECKED


def test_a_decimal_of_any_size_is_cast_or_left_to_the_rows():
    assert any(len(arrow.unscaled_bytes(value)[0]) > 8 for value in values_of(decimal_schema(2)))
