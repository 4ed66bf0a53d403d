"""SQL links (transforms/sql.py): run in Spark over many records at once; each record yields none, one or several.

The statement must process each record independently: its plan may only select, filter and explode. Each result carries its record's number
in an extra column, which the statement does not see. If a job fails, its records are bisected to find those that make it
fail.
"""

import json
import threading

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data.arrow import NotColumns, arrow_type
from standalone.data.batch import columns_of
from standalone.data.column import columnar, fields_of, folded, null_count, one_piece, take, to_arrow, unshaped, values_of
from standalone.data.schema import SchemaBuilder
from standalone.data.shaping import shape_by_looks
from standalone.data.sql_types import from_sql, to_sql
from standalone.data.struct_column import Shaped, StructColumn
from standalone.errors import ConnectError, DataError, Stopped
from standalone.pipeline.columns.batch import ColumnBatch, arrow_each, arrow_times, source_batch, timestamps_of
from standalone.pipeline.columns.segments import NO_ROWS, ByRows, Segment
from standalone.pipeline.spark import job

_ROW = "__row"
_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP, _KEY = "_topic", "_partition", "_offset", "_timestamp", "_key"
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_BY_RECORD = {_LOGICAL + name for name in ("Project", "Filter", "Generate", "SubqueryAlias", "View", "LateralJoin")}

_CHANGED = ("topic", "partition", "timestamp", "key", "key_schema", "value", "value_schema")  # fields of a record that a statement may change

MOST_DEATHS = 5  # of Spark's Java process with the same records, before the task fails
MOST_WORDS = 5  # plans reported per statement
HEAP_WAS_FULL = 3  # exit code of a Java process that ran out of heap
_SMALLER = 4  # divisor of the chunk size after a crash: the heap may have been too small


class NoSpark(ConnectError):
    """Spark is not available to run the statement. This fails the task: the records are not the cause."""


class Query(Segment):
    """One running statement: its own segment, and the row form of its link."""

    computes = True
    title = "a statement of SQL"

    def __init__(self, statement, holder, for_all=True, low=0, stopping=None):
        """`for_all`: the link has no predicate. `stopping` is an event that ends waits for Spark."""
        super().__init__(low, 1)
        self._statement = statement
        self._holder = holder
        self._for_all = for_all
        self._stopping = stopping
        self._wanted = [name for name in (_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP, _KEY) if name in statement]
        self._base = self._session = None
        self._most_bytes = job.JOB_BYTES  # chunk size; reduced if Java's heap was too small
        self._words = {}  # table layout -> Spark's plan as text
        self._untouched = {}  # table layout -> {result name: the field that it passes through}
        self._analysis = threading.Lock()  # two batches may run at once, and both register the view `record`

    # ---------------------------------------------------------------- columns
    def run(self, batch, origin=None, rows=None):
        """Return (output batch, each output row's input row, no rows to redo). Raise ByRows, NotColumns or NoSpark."""
        if not self._for_all:
            raise ByRows("a predicate says for which records the statement is")
        try:
            made, numbers = self._made(batch)
        except (ByRows, NotColumns, NoSpark, Stopped):
            raise
        except Exception as error:  # the statement fails on some record: the rows engine finds out which
            raise ByRows(str(error)) from error
        return made, numbers, NO_ROWS

    def describe(self):
        return [f"Spark runs {self._statement}"]

    def _made(self, frame):
        if frame.value is None and frame.value_schema is None:
            return frame, np.arange(frame.count)
        fields = self._fields(frame)
        result, kinds, untouched = self._results(self._table(frame, fields))
        kept = {name: fields[field] for name, field in untouched.items() if field in fields}
        return self._framed(frame, result, kinds, kept)

    def _table(self, frame, fields):
        meta = self._meta(frame, fields)
        arrays = [to_sql(array, schema) for array, schema in fields.values()] + [array for _, array in meta]
        names = [*fields, *(name for name, _ in meta)]
        if _ROW in names:
            raise DataError(f"Sql cannot work on a value with a field '{_ROW}', which is its own.")
        return pa.Table.from_arrays([pa.array(np.arange(frame.count)), *arrays], [_ROW, *names])

    def _results(self, table):
        """Return (the statement's result for the table, Spark's types by name, results that are unchanged fields)."""
        found = []

        def work(base, chunk):
            frame, untouched = self._analysed(base, chunk)
            found[:] = [{field.name: field for field in frame.schema.fields}, untouched]
            return frame.toArrow()

        most_bytes, deaths = self._most_bytes, 0
        while True:
            self._await_spark()
            if deaths and self._holder.exit_code == HEAP_WAS_FULL:
                self._most_bytes = most_bytes  # later batches are likely similar
            try:
                tables = job.run(self._holder, table, work, most_bytes)
                return pa.concat_tables(tables), *found
            except job.SparkGone as error:
                deaths += 1
                if deaths == MOST_DEATHS:
                    raise NoSpark(
                        f"Spark's Java process ended {deaths} times under '{self._statement}' and {table.num_rows} records. "
                        "More spark.driver.memory may help; no record was skipped."
                    ) from error
                most_bytes = max(1, min(most_bytes, table.nbytes) // _SMALLER)

    def _await_spark(self):
        """Wait until a session runs. Raise NoSpark if it cannot start, Stopped if the task must stop."""
        while self._holder.wait(0.5) is None:
            if self._stopping is not None and self._stopping.is_set():
                raise Stopped("The task was stopped while it waited for Spark; its records are redelivered.")
            if self._holder.failure is not None:
                raise NoSpark(f"Sql needs Spark, which cannot be had here: {self._holder.failure}")

    def _analysed(self, base, table):
        """Return (the statement's DataFrame over the table, results that are unchanged fields)."""
        with self._analysis:
            if base is not self._base:
                self._base, self._session = base, base.newSession()  # the same JVM, but its own view `record`
                self._untouched.clear()
                self._words.clear()
            session = self._session
            job.sent(session, table, self._holder.cores).createOrReplaceTempView("record")
            try:
                frame = self._selected(session)
            finally:
                session.catalog.dropTempView("record")  # otherwise it would hold the batch until the next one
            key = str(table.schema)
            if key not in self._untouched:
                self._untouched[key] = self._check(frame)
                self._words[key] = frame._jdf.queryExecution().optimizedPlan().toString()
            return frame, self._untouched[key]

    def _fields(self, frame):
        """Return {name: (Arrow array, schema)} of the value's fields."""
        column, schema = unshaped(frame.value, frame.value_schema)
        if schema is None:
            raise ByRows("what it works on has no schema, and not all rows are known to have one shape")
        if schema.type != s.STRUCT or schema.logical:
            raise DataError(f"Sql works on values that have fields, structs or maps, and this one is of type {schema.name or schema.type}.")
        if column is None:
            raise ByRows("what it works on has no schema, and not all rows are known to have one shape")
        column = columnar(column, schema, frame.count)
        if null_count(column):
            raise ByRows("a null passes")
        return {field.name: (to_arrow(part, field.schema), field.schema) for field, part in zip(schema.fields, fields_of(column))}

    def _meta(self, frame, taken):
        """Return [(name, Arrow array)] of the record's metadata columns that the statement uses."""
        count = frame.count
        wanted = [name for name in self._wanted if name not in taken]
        arrays = {
            _TOPIC: lambda: arrow_each(frame.topic, count, pa.string()),
            _PARTITION: lambda: arrow_each(frame.partition, count, pa.int32()),
            _OFFSET: lambda: pa.nulls(count, pa.int64()) if frame.offsets is None else pa.array(frame.offsets, pa.int64()),
            _TIMESTAMP: lambda: to_sql(arrow_times(frame.timestamps, count), s.timestamp_schema(optional=True)),
            _KEY: lambda: self._key(frame),
        }
        return [(name, arrays[name]()) for name in wanted]

    def _key(self, frame):
        column, schema = unshaped(frame.key, frame.key_schema)
        if column is not None and schema is None:
            raise ByRows("what it works on has no schema, and not all rows are known to have one shape")
        if column is None:
            return pa.nulls(frame.count, pa.string())
        return to_sql(to_arrow(columnar(column, schema, frame.count), schema), schema)

    # ---------------------------------------------------------------- Spark
    def spark_plan(self, session, batch):
        table = self._table(batch, self._fields(batch))
        return self._analysed(session, table)[0]._jdf.queryExecution().toString()

    def spark_plans(self):
        return [(self._statement, words) for words in list(self._words.values())[-MOST_WORDS:]]

    def _selected(self, session):
        """Return the statement's DataFrame with the record number."""
        from pyspark.errors import PySparkException
        from pyspark.sql import DataFrame

        java, inner = session._jvm, session._jsparkSession
        catalyst = java.org.apache.spark.sql.catalyst
        try:
            plan = inner.sessionState().sqlParser().parsePlan(self._statement)
            if plan.getClass().getSimpleName() != "Project":
                raise DataError(f"Sql works on one record at a time, and '{self._statement}' is not a plain SELECT … FROM record … WHERE ….")
            number = catalyst.analysis.UnresolvedAttribute.quoted(_ROW)
            plan = catalyst.plans.logical.Project(plan.projectList().appended(number), plan.child())
            return DataFrame(java.org.apache.spark.sql.classic.Dataset.ofRows(inner, plan), session)
        except PySparkException as error:
            raise DataError(f"Spark cannot do '{self._statement}' on this record: {_first_line(error)}") from error

    def _check(self, frame):
        """Return {result name: the field that it passes through}. Raise DataError unless each result depends on one record only."""
        plan = frame._jdf.queryExecution().analyzed().toJSON()
        nodes = json.loads(plan)
        kinds = {node["class"] for node in nodes}
        strange = sorted(kind.rpartition(".")[2] for kind in kinds if kind not in _BY_RECORD and not kind.endswith(".LogicalRDD"))
        if strange or "expressions.ScalarSubquery" in plan or "expressions.Exists" in plan or "expressions.ListQuery" in plan:
            found = ", ".join(strange) or "a query within the query"
            raise DataError(f"Sql works on one record at a time, and '{self._statement}' looks at several ({found}).")
        names = [field.name for field in frame.schema.fields if field.name != _ROW]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"'{self._statement}' gives two columns the name {', '.join(twice)}. Say AS to give one another name.")
        fields = {output[0]["exprId"]["id"]: output[0]["name"] for output in nodes[-1]["output"]}
        results = ((result[0]["name"], result[-1]) for result in nodes[0]["projectList"] if len(result) <= 2)
        return {name: fields[last["exprId"]["id"]] for name, last in results if last.get("exprId", {}).get("id") in fields}

    # ---------------------------------------------------------------- the result
    def _framed(self, frame, table, kinds, kept):
        rows = table.column(table.num_columns - 1).to_numpy()
        order = None if (rows[1:] >= rows[:-1]).all() else np.argsort(rows, kind="stable")
        if order is not None:
            table, rows = table.take(pa.array(order)), rows[order]
        made = {}
        for name in dict.fromkeys(table.column_names):
            if name in kept:
                array, schema = kept[name]
                made[name] = take(array, rows), schema
            elif name != _ROW:
                column = table.column(table.column_names.index(name))
                made[name] = from_sql(one_piece(column), kinds[name].dataType, kinds[name].nullable)
        taken = {name: made.pop(name) for name in (_TOPIC, _PARTITION, _TIMESTAMP, _KEY) if name in made and self._is_meta(name, frame)}
        if self._is_meta(_OFFSET, frame):
            made.pop(_OFFSET, None)
        out = frame.take(rows).with_(count=len(rows), **self._value(frame, made, len(rows)))
        return out.with_(**self._changes(frame, out, taken)), rows

    @staticmethod
    def _is_meta(name, frame):
        """Whether that name is a metadata column, and not a field that the value had before."""
        schema = frame.value_schema or frame.value_shape
        return name not in schema

    def _value(self, frame, made, count):
        builder = SchemaBuilder.struct()
        for name, (_, schema) in made.items():
            builder.field(name, schema)
        schema = builder.build()
        column = StructColumn(schema, [array for array, _ in made.values()], count)
        if frame.value_schema is not None:
            return {"value": column, "value_schema": schema}
        if any(array.null_count for array, _ in made.values()):
            return {"value": values_of(Shaped(schema, column), None, count), "value_schema": None}
        return {"value": Shaped(schema, column), "value_schema": None}

    def _changes(self, frame, out, taken):
        changes = {}
        if _TOPIC in taken:
            topics = taken[_TOPIC][0].to_pylist()
            if None in topics or "" in topics:
                raise DataError(f"'{self._statement}' makes a topic that is null or empty.")
            changes["topic"] = folded(topics)
        if _PARTITION in taken:
            partitions = taken[_PARTITION][0].cast(pa.int32()).to_pylist()
            changes["partition"] = folded(partitions)
        if _TIMESTAMP in taken:
            array, schema = taken[_TIMESTAMP]
            if schema.name != s.TIMESTAMP:
                raise DataError(f"'{self._statement}' makes a _timestamp of type {schema.name or schema.type}; it must be a timestamp.")
            changes["timestamps"] = timestamps_of(array)
        if _KEY in taken and not (frame.key is None and taken[_KEY][0].null_count == out.count):
            array, schema = taken[_KEY]
            if frame.key is None or frame.key_schema is not None:
                changes.update(key=array, key_schema=schema)
            else:
                changes.update(key=values_of(Shaped(schema, array), None, out.count), key_schema=None)
        return changes

    # ---------------------------------------------------------------- rows
    def record(self, record):
        """Return the results of one record; raise its error."""
        (outcome,) = self.records([record])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def records(self, records):
        """Return for each record the list of its results, or its exception."""
        outcomes = [None] * len(records)
        groups = {}
        for at, record in enumerate(records):
            try:
                if record.value is None:
                    outcomes[at] = [record]
                else:
                    groups.setdefault(_alike(record), []).append(at)
            except DataError as error:
                outcomes[at] = DataError(f"Sql cannot work on this record. {error}")
        for places in groups.values():
            self._do([records[at] for at in places], places, outcomes)
        return outcomes

    def _do(self, records, places, outcomes):
        try:
            results = self._made_of(records)
        except (NoSpark, Stopped):
            raise
        except Exception as error:
            if len(records) == 1:
                outcomes[places[0]] = error if isinstance(error, ConnectError) else _failure(self._statement, error)
                return
            half = len(records) // 2
            self._do(records[:half], places[:half], outcomes)
            self._do(records[half:], places[half:], outcomes)
        else:
            for at, result in zip(places, results):
                outcomes[at] = result

    def _made_of(self, records):
        parts = columns_of(records)
        parts.update({name: _column(parts[name], parts[f"{name}_schema"]) for name in ("key", "value")})
        if hasattr(records[0], "offset"):
            parts["offsets"] = np.array([record.offset for record in records], np.int64)
        out, rows = self._made(ColumnBatch(len(records), **parts))
        results = [[] for _ in records]
        for row, made in zip(rows.tolist(), source_batch(out, None, None).records()):
            results[row].append(records[row].with_(**{name: getattr(made, name) for name in _CHANGED}))
        return results


def _failure(statement, error):
    failed = DataError(f"Spark failed '{statement}' on this record: {_first_line(error)}")
    failed.__cause__ = error
    return failed


def _first_line(error):
    return str(error).strip().split("\n")[0][:500]


def _column(values, schema):
    """Convert values to a column; those without a schema by their common shape."""
    if schema is not None or all(value is None for value in values):
        return None if all(value is None for value in values) else values
    shape = shape_by_looks(next(value for value in values if value is not None))
    return Shaped(shape, pa.array(values, arrow_type(shape)))


def _alike(record):
    """A key for records that can go through one job together."""
    value = record.value_schema if record.value_schema is not None else shape_by_looks(record.value)
    key = record.key_schema if record.key_schema is not None or record.key is None else shape_by_looks(record.key)
    return value, record.value_schema is None, key, record.key_schema is None
