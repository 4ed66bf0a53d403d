"""What of a chain edits the schema and what it computes: the rules one by one, and expressions out of a seed, as Spark alone computes them."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from pytest import param

from standalone import ByteColumn, F, Float32, Schema, SchemaBuilder, SourceRecord, Struct, Transform, to_float32
from standalone.converters.string import StringConverter
from standalone.data import schema as s
from standalone.data.column import to_arrow
from standalone.data.scalars import WIDTHS
from standalone.pipeline.chain import Link
from standalone.pipeline.columns.batch import ColumnBatch
from standalone.pipeline.columns.leaves import Leaf, Leaves
from standalone.pipeline.columns.outputs import Computed, FloatText
from standalone.pipeline.columns.plan import ColumnPlan
from standalone.pipeline.columns.prune import Declined, Pruner
from standalone.pipeline.spark.columns import SparkColumns
from standalone.testing import columns_of, records_of
from tests.suite.night import IS_NIGHT

# --- The rules -----------------------------------------------------------------------------------------------------

SEEDS = 800 if IS_NIGHT else 250
A, N, T, B = Leaf("a", Schema.INT32, False), Leaf("n", Schema.OPTIONAL_INT64, True), Leaf("t", Schema.OPTIONAL_STRING, True), Leaf("b", Schema.BOOLEAN, False)
X = Leaf("x", Schema.FLOAT64, False)
a, n, t, b, x = (F.col(leaf.name) for leaf in (A, N, T, B, X))
here = F.struct(a.alias("a"), F.struct(n.alias("n"), t.alias("t")).alias("in"))


def pruner():
    return Pruner([A, N, T, B, X])


@pytest.mark.parametrize(
    "expression, node",
    [
        param(a, "a", id="a leaf"),
        param(F.lit("web"), "'web'", id="a literal"),
        param(here, "{a: a, in: {n: n, t: t}}", id="a struct"),
        param(here.getField("in").getField("t"), "t", id="a field of a struct that was just made"),
        param(F.struct(a.alias("p"), F.upper(t).alias("q")).getField("p"), "a", id="a field beside one that is computed"),
        param(F.lit(None).cast("string").getField("t"), "None", id="a field of nothing"),
        param(a.cast("int"), "a", id="a cast to its own type"),
        param(F.lit(7).cast("bigint"), "7", id="a literal of that type"),
        param(F.lit(None).cast("double"), "None", id="null is of any type"),
        param(F.when(a.isNotNull(), n), "n", id="when something that always is"),
        param(F.when(a.isNull(), n).otherwise(t), "t", id="when something that never is"),
        param(F.when(n.isNotNull(), n), "n", id="when it is not null it is itself"),
        param(F.when(F.lit(None).cast("boolean"), n).otherwise(t), "t", id="when null is not when"),
        param(F.when(n.isNull(), t).when(F.lit(True), t), "t", id="when it makes no difference"),
        param(F.when(n.isNull(), F.lit(1)).otherwise(F.lit(1)), "1", id="nor with literals"),
        param(F.coalesce(F.lit(None), a, n), "a", id="the first that is not null"),
        param(F.coalesce(F.lit(None), F.lit(None).cast("int")), "None", id="all are null"),
        param(F.coalesce(here, F.lit(None)), "{a: a, in: {n: n, t: t}}", id="a struct is not null"),
    ],
)
def test_what_is_an_edit_of_the_schema(expression, node):
    assert str(pruner().node(expression)) == node


@pytest.mark.parametrize(
    "condition, mask",
    [
        param(n.isNull(), "n is null", id="null"),
        param(n.isNotNull(), "n is not null", id="not null"),
        param(~n.isNull(), "n is not null", id="not, of null"),
        param(a.isNull(), "False", id="what never is null"),
        param(here.isNull() | F.lit(None).isNull(), "True", id="a struct never, null always"),
        param(n.isNull() | t.isNull() | n.isNull(), "n, t is null", id="or, each once"),
        param(n.isNotNull() & t.isNotNull(), "n, t is not null", id="and"),
        param(n.isNull() | True, "True", id="or true"),
        param(n.isNull() | False, "n is null", id="or false"),
        param(n.isNull() & False, "False", id="and false"),
        param(True & n.isNull(), "n is null", id="and true, from the left"),
        param(~(n.isNull() | t.isNull()), "n, t is not null", id="neither"),
        param(~~(n.isNull() | t.isNull()), "n, t is null", id="not, twice"),
        param(F.when(a.isNull(), t.isNull()).otherwise(F.lit(True)), "True", id="otherwise always"),
        param(n.isNull() | (a > 1), "c1 or n is null", id="or what is computed"),
        param(b, "b", id="a boolean that came"),
    ],
)
def test_conditions_that_only_ask_for_nulls(condition, mask):
    assert str(pruner().mask(condition)) == mask


@pytest.mark.parametrize(
    "expression, reads",
    [
        param(F.upper(t), "t", id="a function"),
        param(a + 1, "a", id="arithmetic"),
        param(a != 1, "a", id="a comparison"),
        param(F.concat(t, t), "t", id="texts are joined"),
        param(a.cast("string"), "a", id="a cast"),
        param(t.cast("int"), "t", id="a text as a number"),
        param(x.cast("int").cast("tinyint"), "x", id="a cast of a cast"),
        param(F.lit("7").cast("int"), "", id="a literal of another type"),
        param(F.lit(300).cast("tinyint"), "", id="a literal that does not fit"),
        param(F.lit(0.1).cast("float"), "", id="a double as a float"),
        param(F.lit(1).cast("decimal(10,2)"), "", id="a literal as another type of Spark's"),
        param(a.cast("decimal(10,2)"), "a", id="a column as another type of Spark's"),
        param(F.lit([1, 2]), "", id="a literal of an unusual type"),
        param(F.when(n.isNull(), F.lit(0)).otherwise(n), "n", id="a value by a condition"),
        param(F.when(n.isNull(), F.lit(-0.0)).otherwise(F.lit(0.0)), "n", id="zero and zero below it"),
        param(F.when(n.isNull(), F.lit(True)).otherwise(F.lit(1)), "n", id="true is not 1"),
        param(F.when(n.isNotNull(), a), "a n", id="null where another is"),
        param(F.when(b, a), "a b", id="a value by a boolean that came"),
        param(F.coalesce(n, F.lit(0)), "n", id="nulls are replaced"),
        param(F.struct(a), "a", id="a struct without names"),
        param(F.struct(a.alias("a"), n.alias("a")).getField("a"), "a n", id="one of two fields of a name"),
        param(n.isNull() & t.isNull(), "n t", id="both are null"),
        param(F.upper(here.getField("in").getField("t")), "t", id="of a struct only the field that it needs"),
        param(F.transform(F.split(t, ","), lambda each: F.concat(each, n.cast("string"))), "n t", id="a function over items"),
    ],
)
def test_what_is_computed_sends_the_leaves_that_it_reads(expression, reads):
    node = pruner().node(expression)
    assert isinstance(node, Computed) and sorted(node.reads) == reads.split()


def test_what_a_link_made_goes_by_its_name():
    each = pruner()
    made = each.settle(here)
    each.next_link()
    inner = each.settle(made.getField("in"))
    each.next_link()
    assert str(each.node(inner.getField("n"))) == "n"


def test_what_an_earlier_link_computed_is_needed_and_not_said_again():
    each = pruner()
    made = each.settle(F.upper(t))
    each.next_link()
    node = each.node(F.length(made))
    (needed,) = node.needs
    assert not node.reads and needed.reads == {"t"} and repr(node.expression) == f"length(col('{needed.name}'))"


def test_the_text_of_floats_is_written_behind_the_job_and_nothing_computes_with_it():
    from standalone.expression import float_text

    text = float_text(x, s.FLOAT64)
    assert isinstance(pruner().node(text), FloatText) and str(pruner().node(text.cast("string"))) == "text of x"
    with pytest.raises(Declined, match="text of floating-point numbers"):
        pruner().node(F.upper(text))


@pytest.mark.parametrize("expression", [a.cast("bigint"), n.cast("tinyint"), n.cast("double"), F.when(n.isNotNull(), n.cast("int"))])
def test_a_number_of_another_type_is_spark_s(expression):
    assert isinstance(pruner().node(expression), Computed)


def test_a_column_that_is_not_there_is_said():
    with pytest.raises(ValueError, match="there is no column z"):
        pruner().node(F.upper(F.col("z")))


@pytest.mark.parametrize(
    "expression, schema",
    [
        param(here, Schema.STRING, id="no struct"),
        param(here, SchemaBuilder.struct().field("a", Schema.INT32).build(), id="other fields"),
        param(n.isNull(), Schema.BOOLEAN, id="a condition as a value"),
    ],
)
def test_what_does_not_fit_the_schema_of_a_value_is_spark_s(expression, schema):
    assert isinstance(pruner().value(expression, schema), Computed)


# --- Expressions out of a seed -------------------------------------------------------------------------------------

FIELDS = {
    "i": Schema.INT32, "j": Schema.OPTIONAL_INT64, "k": Schema.OPTIONAL_INT8, "s": Schema.STRING, "o": Schema.OPTIONAL_STRING,
    "b": Schema.BOOLEAN, "c": Schema.OPTIONAL_BOOLEAN, "d": Schema.FLOAT64, "f": Schema.OPTIONAL_FLOAT32, "p": Schema.OPTIONAL_INT32,
}  # fmt: skip
SPARK = {
    s.INT8: "tinyint", s.INT16: "smallint", s.INT32: "int", s.INT64: "bigint", s.FLOAT32: "float", s.FLOAT64: "double", s.BOOLEAN: "boolean",
    s.STRING: "string",
}  # fmt: skip
LITERALS = {s.BOOLEAN: [True, False], s.STRING: ["", "x"], s.FLOAT64: [0.0, -0.0, 1.5]}
ROWS = [
    {"i": 7, "j": 1 << 40, "k": -128, "s": "a", "o": "ü", "b": True, "c": False, "d": 1.5, "f": Float32(0.5), "p": 3},
    {"i": -(1 << 31), "j": None, "k": 1, "s": "", "o": None, "b": False, "c": None, "d": math.nan, "f": None, "p": None},
    {"i": 300, "j": -1, "k": None, "s": "b", "o": "", "b": True, "c": True, "d": -0.0, "f": to_float32(3e38), "p": 0},
    {"i": 0, "j": None, "k": None, "s": "", "o": None, "b": False, "c": None, "d": -1e300, "f": Float32("-inf"), "p": -1},
    {"i": (1 << 31) - 1, "j": -(1 << 63), "k": 127, "s": "ü", "o": "x", "b": True, "c": False, "d": 2147483648.0, "f": Float32(-2.5), "p": None},
]


class Drawn:
    """An expression of a type, and its value in a row by Python."""

    def __init__(self, expression, kind, of):
        self.expression, self.kind, self.of = expression, kind, of


def drawn(random, kind, depth, fields=FIELDS):
    """A Drawn of that type, over fields of the value."""
    makers = [_leaf, _leaf, _literal] if not depth else [_leaf, _literal, _chosen, _coalesced, _cast, _field]
    if kind == s.BOOLEAN and depth:
        makers += [_asked, _asked, _asked, _inverted, _joined, _joined, _not_zero]
    return random.choice(makers)(random, kind, depth - 1, fields)


def _leaf(random, kind, depth, fields):
    names = [name for name, schema in fields.items() if schema.type == kind]
    if not names:
        return _literal(random, kind, depth, fields)
    name = random.choice(names)
    return Drawn(F.col("value").getField(name), kind, lambda row: row[name])


def _literal(random, kind, depth, fields):
    value = random.choice([None, *LITERALS.get(kind, [0, 1, -5])]) if kind != s.FLOAT32 else None
    bare = kind in (s.BOOLEAN, s.STRING) and value is not None and random.random() < 0.5
    return Drawn(F.lit(value) if bare else F.lit(value).cast(SPARK[kind]), kind, lambda row: value)


def _chosen(random, kind, depth, fields):
    pairs = [(drawn(random, s.BOOLEAN, depth, fields), drawn(random, kind, depth, fields)) for _ in range(random.choice([1, 1, 2]))]
    otherwise = drawn(random, kind, depth, fields) if random.random() < 0.6 else None
    expression = F.when(pairs[0][0].expression, pairs[0][1].expression)
    for condition, value in pairs[1:]:
        expression = expression.when(condition.expression, value.expression)
    if otherwise is not None:
        expression = expression.otherwise(otherwise.expression)

    def of(row):
        found = next((value for condition, value in pairs if condition.of(row)), otherwise)
        return None if found is None else found.of(row)

    return Drawn(expression, kind, of)


def _coalesced(random, kind, depth, fields):
    parts = [drawn(random, kind, depth, fields) for _ in range(random.choice([1, 2, 3]))]
    return Drawn(
        F.coalesce(*(part.expression for part in parts)),
        kind,
        lambda row: next((value for part in parts if (value := part.of(row)) is not None), None),
    )


def _cast(random, kind, depth, fields):
    sources = [s.BOOLEAN, s.INT8, s.INT16, s.INT32, s.INT64, *([] if kind in (s.STRING, s.BOOLEAN) else [s.FLOAT32, s.FLOAT64])]
    if kind == s.BOOLEAN:
        sources = [s.BOOLEAN]
    inner = drawn(random, random.choice(sources), depth, fields)
    return Drawn(inner.expression.cast(SPARK[kind]), kind, lambda row: cast(inner.of(row), inner.kind, kind))


def _field(random, kind, depth, fields):
    first, other = drawn(random, kind, depth, fields), drawn(random, random.choice(list(SPARK)), depth, fields)
    made = F.struct(first.expression.alias("p"), F.struct(other.expression.alias("q")).alias("inner"))
    return Drawn(made.getField("p"), kind, first.of)


def _asked(random, kind, depth, fields):
    inner, is_null = drawn(random, random.choice(list(SPARK)), depth, fields), random.random() < 0.5
    expression = inner.expression.isNull() if is_null else inner.expression.isNotNull()
    return Drawn(expression, kind, lambda row: (inner.of(row) is None) is is_null)


def _inverted(random, kind, depth, fields):
    inner = drawn(random, kind, depth, fields)
    return Drawn(~inner.expression, kind, lambda row: None if (value := inner.of(row)) is None else not value)


def _joined(random, kind, depth, fields):
    one, two, decisive = drawn(random, kind, depth, fields), drawn(random, kind, depth, fields), random.random() < 0.5
    expression = one.expression | two.expression if decisive else one.expression & two.expression

    def of(row):
        both = one.of(row), two.of(row)
        return decisive if decisive in both else None if None in both else not decisive

    return Drawn(expression, kind, of)


def _not_zero(random, kind, depth, fields):
    inner = drawn(random, random.choice([s.INT8, s.INT32, s.INT64]), depth, fields)
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
    """A struct of expressions over the fields of the value."""

    def __init__(self, every):
        self._every = every

    def columns(self, columns):
        schema = SchemaBuilder.struct()
        for at, each in enumerate(self._every):
            schema.field(f"f{at}", Schema(each.kind, optional=True))
        value = F.struct(*(over(each.expression, columns.value.getField).alias(f"f{at}") for at, each in enumerate(self._every)))
        return columns.with_(value=value, value_schema=schema.build())


def over(expression, field_of):
    """The expression with what the function gives in the place of each field of the column "value"."""
    if expression.function == "Column.getField" and expression.given[0].function == "col":
        return field_of(expression.given[1])
    given = [over(each, field_of) if hasattr(each, "function") else each for each in expression.given]
    return type(expression)(expression.function, *given)


def planned(*links):
    batch = columns_of(records())
    leaves = Leaves(batch, set())
    return ColumnPlan([Link(f"link {at}", link) for at, link in enumerate(links)], leaves, batch), leaves, batch


def made_by(links, holder=None):
    """The rows of what the links make of the records' values."""
    plan, leaves, batch = planned(*links)
    changed, dropped, failed = plan.run(batch, leaves, holder)
    assert dropped is None and failed is None
    return [list(record.value.values) for record in records_of(changed, records())]


def told(values):
    return [repr(float(value)) if isinstance(value, float) else repr(value) for value in values]


def test_edits_of_the_schema_are_what_their_expressions_say():
    edits = 0
    for seed in range(SEEDS):
        each = of_seed(seed)
        if not planned(Made([each]))[0].computes:
            edits += 1
            found = [row[0] for row in made_by([Made([each])])]
            assert told(found) == told(each.of(row) for row in ROWS), f"seed {seed}: {each.expression!r}"
    assert edits > SEEDS * 0.19, f"only {edits} of {SEEDS} were edits: this proves little"


def spark_alone(holder, *links):
    """What Spark makes of the expressions as they were said, link after link, each of all columns of the one before."""
    with holder.job() as session:
        values = [record.value for record in records()]
        frame = session.createDataFrame(pa.Table.from_struct_array(to_arrow(values, values[0].schema)))
        for every in links:
            spark = SparkColumns()
            frame = frame.select(*(spark.of(over(each.expression, F.col)).alias(f"f{at}") for at, each in enumerate(every)))
        return [list(row) for row in frame.collect()]


@pytest.mark.spark
@pytest.mark.parametrize("first", range(0, 180, 60))
def test_pruned_or_not_spark_computes_the_same(spark_holder, first):
    every = [of_seed(seed) for seed in range(first, first + 60)]
    assert planned(Made(every))[0].computes
    found, alone = made_by([Made(every)], spark_holder), spark_alone(spark_holder, every)
    for at, each in enumerate(every):
        said = f"seed {first + at}: {each.expression!r}"
        assert told(row[at] for row in found) == told(row[at] for row in alone), said
        assert told(row[at] for row in found) == told(each.of(row) for row in ROWS), said


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_and_so_it_does_where_a_later_link_needs_what_an_earlier_one_made(spark_holder, seed):
    source = random.Random(seed)
    every = [drawn(source, kind, 3) for kind in SPARK for _ in range(4)]
    fields = {f"f{at}": Schema(each.kind, optional=True) for at, each in enumerate(every)}
    later = [drawn(source, kind, 3, fields) for kind in SPARK for _ in range(4)]
    last = [drawn(source, kind, 2, {f"f{at}": Schema(each.kind, optional=True) for at, each in enumerate(later)}) for kind in SPARK]
    found, alone = made_by([Made(every), Made(later), Made(last)], spark_holder), spark_alone(spark_holder, every, later, last)
    for at, each in enumerate(last):
        assert told(row[at] for row in found) == told(row[at] for row in alone), f"field {at}: {each.expression!r}"


class Kept(Transform):
    """Keeps the rows of a condition."""

    def __init__(self, condition):
        self._condition = condition

    def columns(self, columns):
        return columns.with_(keep=over(self._condition.expression, columns.value.getField))


def kept_by(condition, holder=None):
    """What the condition says of each row: whether it is kept, or None."""
    plan, leaves, batch = planned(Kept(condition))
    _, dropped, failed = plan.run(batch, leaves, holder)
    dropped = np.zeros(len(ROWS), bool) if dropped is None else dropped
    failed = np.zeros(len(ROWS), bool) if failed is None else failed
    return [None if bad else not gone for bad, gone in zip(failed.tolist(), dropped.tolist())]


def test_conditions_without_spark_keep_the_rows_that_they_say():
    done = 0
    for seed in range(SEEDS):
        condition = drawn(random.Random(seed), s.BOOLEAN, 4)
        if not planned(Kept(condition))[0].computes:
            done += 1
            assert kept_by(condition) == [condition.of(row) for row in ROWS], f"seed {seed}: {condition.expression!r}"
    assert done > SEEDS * 0.12, f"only {done} of {SEEDS} needed no Spark: this proves little"


@pytest.mark.spark
def test_conditions_by_spark_keep_the_rows_that_they_say(spark_holder):
    conditions = [drawn(random.Random(seed), s.BOOLEAN, 4) for seed in range(30)]
    computed = [condition for condition in conditions if planned(Kept(condition))[0].computes][:5]
    assert len(computed) == 5
    for condition in computed:
        assert kept_by(condition, spark_holder) == [condition.of(row) for row in ROWS], repr(condition.expression)


# --- What is not a key or a value ----------------------------------------------------------------------------------


class Placed(Transform):
    """Parts of the record, by functions that say them of the value's column."""

    def __init__(self, **parts):
        self._parts = parts

    def columns(self, columns):
        return columns.with_(**{name: said(columns.value) for name, said in self._parts.items()})


def placed(frame=None, **parts):
    frame = frame or columns_of(records())
    leaves = Leaves(frame, set())
    plan = ColumnPlan([Link("placed", Placed(**parts))], leaves, frame)
    assert not plan.computes
    return plan.run(frame, leaves, None)[0]


def field(name):
    return lambda value: value.getField(name)


@pytest.mark.parametrize(
    "expression, topics",
    [
        param(field("s"), [row["s"] for row in ROWS], id="a text"),
        param(lambda value: F.lit("all"), "all", id="one for all"),
    ],
)
def test_a_topic_out_of_a_field(expression, topics):
    assert placed(topic=expression).topic == topics


def test_a_topic_out_of_texts_as_they_were_read():
    frame = ColumnBatch(2, "t", value=ByteColumn.of([b"web", b"\xff"]), value_schema=Schema.STRING)
    assert placed(frame, topic=lambda value: value).topic == ["web", "\ufffd"]


def test_a_partition_and_a_timestamp_out_of_fields():
    changed = placed(partition=field("p"), timestamp=field("j"))
    assert changed.partition == [row["p"] for row in ROWS]
    assert changed.timestamps.tolist() == [-1 if row["j"] is None else row["j"] for row in ROWS]


def test_half_a_letter_in_a_literal_is_what_it_is_by_rows():
    schema = Schema.STRING
    given = records()
    frame = columns_of(given)
    leaves = Leaves(frame, set())

    class Said(Transform):
        def columns(self, columns):
            return columns.with_(value=F.lit("a\ud83d"), value_schema=schema)

    plan = ColumnPlan([Link("said", Said())], leaves, frame)
    changed, _, _ = plan.run(frame, leaves, None)
    converter = StringConverter.of()
    written, _ = converter.encode("t", schema, changed.value, frame.count)
    assert list(written) == [converter.from_connect("t", schema, "a\ud83d")] * frame.count
