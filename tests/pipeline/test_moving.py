"""What a plan makes of expressions without Spark: the rules one by one, and expressions out of a seed, by moving, by Spark and value by value."""

import math
import random

import numpy as np
import pytest
from pytest import param

from standalone import ByteColumn, F, Float32, Schema, SchemaBuilder, SourceRecord, Struct, Transform, to_float32
from standalone.converters.string import StringConverter
from standalone.data import schema as s
from standalone.data.scalars import WIDTHS
from standalone.pipeline.chain import Link
from standalone.pipeline.columns.plan import ColumnPlan
from standalone.pipeline.frame import Frame, Leaf, Leaves
from standalone.pipeline.moving import Moving, NotMoved
from standalone.testing import frame_of, records_of

# --- The rules -----------------------------------------------------------------------------------------------------

A, N, T, B = Leaf("a", Schema.INT32, False), Leaf("n", Schema.OPTIONAL_INT64, True), Leaf("t", Schema.OPTIONAL_STRING, True), Leaf("b", Schema.BOOLEAN, False)
X = Leaf("x", Schema.FLOAT64, False)
a, n, t, b, x = (F.col(leaf.name) for leaf in (A, N, T, B, X))
here = F.struct(a.alias("a"), F.struct(n.alias("n"), t.alias("t")).alias("in"))


def moving(**defined):
    return Moving([A, N, T, B, X], defined)


@pytest.mark.parametrize(
    "expression, node",
    [
        param(a, "a", id="a leaf"),
        param(F.lit("web"), "'web'", id="a literal"),
        param(here, "{a: a, in: {n: n, t: t}}", id="a struct"),
        param(here.getField("in").getField("t"), "t", id="a field of a struct that was just made"),
        param(F.lit(None).cast("string").getField("t"), "None", id="a field of nothing"),
        param(a.cast("int"), "a", id="a cast to its own type"),
        param(a.cast("bigint"), "a as int64", id="a cast"),
        param(x.cast("int").cast("tinyint"), "x as int32 as int8", id="a cast of a cast"),
        param(n.cast("bigint") != 0, "n as bool", id="a number as a boolean"),
        param(F.lit(7).cast("bigint"), "7", id="a literal of that type"),
        param(F.lit(None).cast("double"), "None", id="null is of any type"),
        param(F.when(a.isNotNull(), n), "n", id="when something that always is"),
        param(F.when(a.isNull(), n).otherwise(t), "t", id="when something that never is"),
        param(F.when(n.isNotNull(), n.cast("int")), "n as int32", id="when it is not null it is not null"),
        param(F.when(n.isNull(), t).when(F.lit(True), t), "t", id="when it makes no difference"),
        param(F.when(n.isNull(), F.lit(1)).otherwise(F.lit(1)), "1", id="nor with literals"),
        param(F.coalesce(F.lit(None), a, n), "a", id="the first that is not null"),
        param(F.coalesce(F.lit(None), F.lit(None).cast("int")), "None", id="all are null"),
        param(F.coalesce(here, F.lit(None)), "{a: a, in: {n: n, t: t}}", id="a struct is not null"),
    ],
)
def test_what_moves(expression, node):
    assert str(moving().node(expression)) == node


@pytest.mark.parametrize(
    "condition, mask",
    [
        param(n.isNull(), "n is null", id="null"),
        param(n.isNotNull(), "n is not null", id="not null"),
        param(~n.isNull(), "n is not null", id="not, of null"),
        param(a.isNull(), "False", id="what never is null"),
        param(here.isNull() | F.lit(None).isNull(), "True", id="a struct never, null always"),
        param(n.cast("string").isNull(), "n is null", id="a cast has the nulls of what is cast"),
        param(n.isNull() | t.isNull() | n.isNull(), "n is null or t is null", id="or, each once"),
        param(n.isNull() & t.isNull(), "(n is null) and (t is null)", id="and"),
        param(n.isNull() | True, "True", id="or true"),
        param(n.isNull() | False, "n is null", id="or false"),
        param(n.isNull() & False, "False", id="and false"),
        param(True & n.isNull(), "n is null", id="and true, from the left"),
        param(~(n.isNull() & t.isNull()), "none of ((n is null) and (t is null))", id="not both"),
        param(~~(n.isNull() & t.isNull()), "(n is null) and (t is null)", id="not, twice"),
        param(F.when(n.isNull(), t.isNull()).otherwise(False), "(n is null) and (t is null)", id="a condition by a condition"),
        param(F.when(a.isNull(), t.isNull()).otherwise(F.lit(True)), "True", id="otherwise always"),
    ],
)
def test_conditions_that_only_ask_for_nulls(condition, mask):
    assert str(moving().mask(condition)) == mask


@pytest.mark.parametrize(
    "expression, reason",
    [
        param(F.upper(t), "upper is computed", id="a function"),
        param(a + 1, "__add__ is computed", id="arithmetic"),
        param(F.col("z"), "there is no column z", id="a column that is not there"),
        param(t.cast("int"), "string is cast to int32", id="a text as a number"),
        param(F.lit("7").cast("int"), "a literal is cast", id="a literal of another type"),
        param(F.lit(300).cast("tinyint"), "a literal is cast", id="a literal that does not fit"),
        param(F.lit(0.1).cast("float"), "a literal is cast", id="a double as a float"),
        param(F.lit(1).cast("decimal(10,2)"), "a literal is cast", id="a literal as another type of Spark's"),
        param(a.cast("decimal(10,2)"), "int32 is cast to decimal", id="a column as another type of Spark's"),
        param(F.lit([1, 2]), "a literal of an unusual type", id="a literal of an unusual type"),
        param(F.when(n.isNull(), F.lit(0)).otherwise(n), "values differ by a condition", id="a value by a condition"),
        param(F.when(n.isNull(), F.lit(-0.0)).otherwise(F.lit(0.0)), "values differ by a condition", id="zero and zero below it"),
        param(F.when(n.isNull(), F.lit(True)).otherwise(F.lit(1)), "values differ by a condition", id="true is not 1"),
        param(F.when(n.isNotNull(), a), "values differ by a condition", id="null where another is"),
        param(F.when(b, a), "may be null", id="a boolean that came is a condition"),
        param(F.coalesce(n, F.lit(0)), "nulls are replaced", id="nulls are replaced"),
        param(F.struct(a), "a struct of parts without names", id="a struct without names"),
        param(F.struct(a.alias("a"), n.alias("a")).getField("a"), "may be null", id="one of two fields of a name"),
        param(a != 1, "values are compared", id="a comparison"),
        param(F.concat(t, t), "texts are joined", id="texts are joined"),
        param(F.when(n.isNull()), "not understood", id="what Spark would refuse"),
    ],
)
def test_what_is_left_to_spark_and_why(expression, reason):
    with pytest.raises(NotMoved, match=reason):
        moving().node(expression)


def test_what_a_link_made_goes_by_its_name():
    named = moving(value_0=here, value_1=F.col("value_0").getField("in"))
    assert str(named.node(F.col("value_1").getField("n"))) == "n"


@pytest.mark.parametrize(
    "expression, schema",
    [
        param(here, Schema.STRING, id="no struct"),
        param(here, SchemaBuilder.struct().field("a", Schema.INT32).build(), id="other fields"),
        param(n.isNull(), Schema.BOOLEAN, id="a condition as a value"),
    ],
)
def test_what_does_not_fit_the_schema_of_a_value_is_left_to_spark(expression, schema):
    with pytest.raises(NotMoved):
        moving().value(expression, schema)


def test_a_value_as_a_condition_is_left_to_spark():
    for expression in (b, F.lit(None), F.lit(1), n.cast("bigint") != 0):
        with pytest.raises(NotMoved):
            moving().mask(expression)


# --- Expressions out of a seed -------------------------------------------------------------------------------------

FIELDS = {
    "i": Schema.INT32, "j": Schema.OPTIONAL_INT64, "k": Schema.OPTIONAL_INT8, "s": Schema.STRING, "o": Schema.OPTIONAL_STRING,
    "b": Schema.BOOLEAN, "c": Schema.OPTIONAL_BOOLEAN, "d": Schema.FLOAT64, "f": Schema.OPTIONAL_FLOAT32,
}  # fmt: skip
SPARK = {
    s.INT8: "tinyint", s.INT16: "smallint", s.INT32: "int", s.INT64: "bigint", s.FLOAT32: "float", s.FLOAT64: "double", s.BOOLEAN: "boolean",
    s.STRING: "string",
}  # fmt: skip
LITERALS = {s.BOOLEAN: [True, False], s.STRING: ["", "x"], s.FLOAT64: [0.0, -0.0, 1.5]}
ROWS = [
    {"i": 7, "j": 1 << 40, "k": -128, "s": "a", "o": "ü", "b": True, "c": False, "d": 1.5, "f": Float32(0.5)},
    {"i": -(1 << 31), "j": None, "k": 1, "s": "", "o": None, "b": False, "c": None, "d": math.nan, "f": None},
    {"i": 300, "j": -1, "k": None, "s": "b", "o": "", "b": True, "c": True, "d": -0.0, "f": to_float32(3e38)},
    {"i": 0, "j": None, "k": None, "s": "", "o": None, "b": False, "c": None, "d": -1e300, "f": Float32("-inf")},
    {"i": (1 << 31) - 1, "j": -(1 << 63), "k": 127, "s": "ü", "o": "x", "b": True, "c": False, "d": 2147483648.0, "f": Float32(-2.5)},
]


class Drawn:
    """An expression of a type, and its value in a row by Python."""

    def __init__(self, expression, kind, of):
        self.expression, self.kind, self.of = expression, kind, of


def drawn(random, kind, depth):
    """A Drawn of that type."""
    makers = [_leaf, _leaf, _literal] if not depth else [_leaf, _literal, _chosen, _coalesced, _cast, _field]
    if kind == s.BOOLEAN and depth:
        makers += [_asked, _asked, _asked, _inverted, _joined, _joined, _not_zero]
    return random.choice(makers)(random, kind, depth - 1)


def _leaf(random, kind, depth):
    names = [name for name, schema in FIELDS.items() if schema.type == kind]
    if not names:
        return _literal(random, kind, depth)
    name = random.choice(names)
    return Drawn(F.col("value").getField(name), kind, lambda row: row[name])


def _literal(random, kind, depth):
    value = random.choice([None, *LITERALS.get(kind, [0, 1, -5])]) if kind != s.FLOAT32 else None
    bare = kind in (s.BOOLEAN, s.STRING) and value is not None and random.random() < 0.5
    return Drawn(F.lit(value) if bare else F.lit(value).cast(SPARK[kind]), kind, lambda row: value)


def _chosen(random, kind, depth):
    pairs = [(drawn(random, s.BOOLEAN, depth), drawn(random, kind, depth)) for _ in range(random.choice([1, 1, 2]))]
    otherwise = drawn(random, kind, depth) if random.random() < 0.6 else None
    expression = F.when(pairs[0][0].expression, pairs[0][1].expression)
    for condition, value in pairs[1:]:
        expression = expression.when(condition.expression, value.expression)
    if otherwise is not None:
        expression = expression.otherwise(otherwise.expression)

    def of(row):
        found = next((value for condition, value in pairs if condition.of(row)), otherwise)
        return None if found is None else found.of(row)

    return Drawn(expression, kind, of)


def _coalesced(random, kind, depth):
    parts = [drawn(random, kind, depth) for _ in range(random.choice([1, 2, 3]))]
    return Drawn(
        F.coalesce(*(part.expression for part in parts)),
        kind,
        lambda row: next((value for part in parts if (value := part.of(row)) is not None), None),
    )


def _cast(random, kind, depth):
    sources = [s.BOOLEAN, s.INT8, s.INT16, s.INT32, s.INT64, *([] if kind in (s.STRING, s.BOOLEAN) else [s.FLOAT32, s.FLOAT64])]
    if kind == s.BOOLEAN:
        sources = [s.BOOLEAN]
    inner = drawn(random, random.choice(sources), depth)
    return Drawn(inner.expression.cast(SPARK[kind]), kind, lambda row: cast(inner.of(row), inner.kind, kind))


def _field(random, kind, depth):
    first, other = drawn(random, kind, depth), drawn(random, random.choice(list(SPARK)), depth)
    made = F.struct(first.expression.alias("p"), F.struct(other.expression.alias("q")).alias("inner"))
    return Drawn(made.getField("p"), kind, first.of)


def _asked(random, kind, depth):
    inner, is_null = drawn(random, random.choice(list(SPARK)), depth), random.random() < 0.5
    expression = inner.expression.isNull() if is_null else inner.expression.isNotNull()
    return Drawn(expression, kind, lambda row: (inner.of(row) is None) is is_null)


def _inverted(random, kind, depth):
    inner = drawn(random, kind, depth)
    return Drawn(~inner.expression, kind, lambda row: None if (value := inner.of(row)) is None else not value)


def _joined(random, kind, depth):
    one, two, decisive = drawn(random, kind, depth), drawn(random, kind, depth), random.random() < 0.5
    expression = one.expression | two.expression if decisive else one.expression & two.expression

    def of(row):
        both = one.of(row), two.of(row)
        return decisive if decisive in both else None if None in both else not decisive

    return Drawn(expression, kind, of)


def _not_zero(random, kind, depth):
    inner = drawn(random, random.choice([s.INT8, s.INT32, s.INT64]), depth)
    return Drawn(inner.expression != 0, kind, lambda row: None if (value := inner.of(row)) is None else value != 0)


def cast(value, source, target):
    if value is None or source == target:
        return value
    if target == s.STRING:
        return str(value).lower()
    if target == s.FLOAT64:
        return float(value)
    if target == s.FLOAT32:
        with np.errstate(over="ignore"):
            return float(np.float32(np.float64(value) if isinstance(value, float) else np.int64(value)))
    if isinstance(value, float):
        bits = 64 if target == s.INT64 else 32
        value = 0 if math.isnan(value) else int(max(-(2.0 ** (bits - 1)), min(value, 2.0 ** (bits - 1))))
        value = min(value, (1 << bits - 1) - 1)
    half = 1 << WIDTHS[target] - 1
    return (int(value) + half) % (2 * half) - half


def of_seed(seed):
    source = random.Random(seed)
    return drawn(source, source.choice(list(SPARK)), 4)


def records():
    schema = SchemaBuilder.struct()
    for name, each in FIELDS.items():
        schema.field(name, each)
    schema = schema.build()
    return [SourceRecord("t", value_schema=schema, value=Struct(schema, row)) for row in ROWS]


class Made(Transform):
    """A struct of expressions over the value, which come with the links."""

    def __init__(self, every):
        self._every = every

    def columns(self, columns):
        schema = SchemaBuilder.struct()
        for at, each in enumerate(self._every):
            schema.field(f"f{at}", Schema(each.kind, optional=True))
        value = F.struct(*(_over(each.expression, columns.value).alias(f"f{at}") for at, each in enumerate(self._every)))
        return columns.with_(value=value, value_schema=schema.build())


def _over(expression, value):
    """The expression with that value in the place of the column "value"."""
    if expression.function == "col":
        return value
    given = [_over(each, value) if hasattr(each, "function") else each for each in expression.given]
    return type(expression)(expression.function, *given)


def plan_of(every, session=None, moving=True):
    given = records()
    frame = frame_of(given)
    leaves = Leaves(frame, set())
    return ColumnPlan([Link("made", Made(every))], leaves, frame, session, moving), leaves, frame, given


def made_by(plan, leaves, frame, given, holder=None):
    changed, dropped, failed = plan.run(frame, leaves, holder)
    assert dropped is None and failed is None
    return [list(record.value.values) for record in records_of(changed, given)]


def told(values):
    return [repr(float(value)) if isinstance(value, float) else repr(value) for value in values]


def test_what_moves_is_what_its_expression_says():
    moved = 0
    for seed in range(1500):
        each = of_seed(seed)
        plan, *rest = plan_of([each])
        if plan.is_compiled:
            moved += 1
            found = [row[0] for row in made_by(plan, *rest)]
            assert told(found) == told(each.of(row) for row in ROWS), f"seed {seed}: {each.expression!r}"
    assert moved > 400, f"only {moved} of 1500 moved: this proves little"


@pytest.mark.spark
def test_spark_says_the_same_of_them(spark_holder):
    every = [of_seed(seed) for seed in range(120)]
    plan, *rest = plan_of(every, spark_holder.ready(), moving=False)
    found = made_by(plan, *rest, spark_holder)
    for at, each in enumerate(every):
        assert told(row[at] for row in found) == told(each.of(row) for row in ROWS), f"seed {at}: {each.expression!r}"


class Kept(Transform):
    """Keeps the rows of a condition."""

    def __init__(self, condition):
        self._condition = condition

    def columns(self, columns):
        return columns.with_(keep=_over(self._condition.expression, columns.value))


def test_conditions_that_move_keep_the_rows_that_they_say():
    moved = 0
    for seed in range(1500):
        condition = drawn(random.Random(seed), s.BOOLEAN, 4)
        given = records()
        frame = frame_of(given)
        leaves = Leaves(frame, set())
        plan = ColumnPlan([Link("kept", Kept(condition))], leaves, frame)
        if plan.is_compiled:
            moved += 1
            _, dropped, failed = plan.run(frame, leaves, None)
            dropped = np.zeros(len(ROWS), bool) if dropped is None else dropped
            failed = np.zeros(len(ROWS), bool) if failed is None else failed
            expected = [condition.of(row) for row in ROWS]
            found = [None if bad else not gone for bad, gone in zip(failed.tolist(), dropped.tolist())]
            assert found == expected, f"seed {seed}: {condition.expression!r}"
    assert moved > 300, f"only {moved} of 1500 moved: this proves little"


# --- What is not a key or a value ----------------------------------------------------------------------------------


class Placed(Transform):
    """Parts of the record out of expressions over the value's fields."""

    def __init__(self, **parts):
        self._parts = parts

    def columns(self, columns):
        return columns.with_(**{name: _over(expression, columns.value) for name, expression in self._parts.items()})


def placed(frame=None, **parts):
    frame = frame or frame_of(records())
    leaves = Leaves(frame, set())
    plan = ColumnPlan([Link("placed", Placed(**parts))], leaves, frame)
    assert plan.is_compiled
    changed, _, _ = plan.run(frame, leaves, None)
    return changed


def field(name):
    return F.col("value").getField(name)


@pytest.mark.parametrize(
    "expression, topics",
    [
        param(field("s"), [row["s"] for row in ROWS], id="a text"),
        param(field("i").cast("string"), [str(row["i"]) for row in ROWS], id="a number"),
        param(F.lit("all"), "all", id="one for all"),
    ],
)
def test_a_topic_out_of_a_field(expression, topics):
    assert placed(topic=expression).topic == topics


def test_a_topic_out_of_texts_as_they_were_read():
    frame = Frame(2, "t", value=ByteColumn.of([b"web", b"\xff"]), value_schema=Schema.STRING)
    assert placed(frame, topic=F.col("value")).topic == ["web", "\ufffd"]


def test_a_partition_and_a_timestamp_out_of_fields():
    changed = placed(partition=field("k").cast("int"), timestamp=field("j"))
    assert changed.partition == [row["k"] for row in ROWS]
    assert changed.timestamps.tolist() == [-1 if row["j"] is None else row["j"] for row in ROWS]


def test_half_a_letter_in_a_literal_is_what_it_is_by_rows():
    schema = Schema.STRING
    given = records()
    frame = frame_of(given)
    leaves = Leaves(frame, set())

    class Said(Transform):
        def columns(self, columns):
            return columns.with_(value=F.lit("a\ud83d"), value_schema=schema)

    plan = ColumnPlan([Link("said", Said())], leaves, frame)
    changed, _, _ = plan.run(frame, leaves, None)
    converter = StringConverter.of()
    written, _ = converter.encode("t", schema, changed.value, frame.count)
    assert list(written) == [converter.from_connect("t", schema, "a\ud83d")] * frame.count
