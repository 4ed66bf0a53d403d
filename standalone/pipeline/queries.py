"""A link that is an SQL statement (transforms/sql.py): run in Spark over many records at once, each of which gives none, one or several.

The statement must work on each record by itself: of its plan only selecting, filtering and exploding are let pass. The number of its
record travels with each result as one more column, which the statement does not see. Where a job fails, its records are halved until
those are found that it fails on.
"""

import json

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data.arrow import arrow_type, to_arrow
from standalone.data.batch import values_of
from standalone.data.schema import Schema, SchemaBuilder
from standalone.data.struct import Struct
from standalone.data.struct_column import Shaped, StructColumn
from standalone.errors import ConnectError, DataError
from standalone.pipeline.ends import ByRows
from standalone.pipeline.frame import Frame, columnar
from standalone.pipeline.jobs import in_pieces
from standalone.pipeline.sql_types import from_sql, to_sql
from standalone.wire import NO_TIMESTAMP

_ROW = "__row"
_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP, _KEY = "_topic", "_partition", "_offset", "_timestamp", "_key"
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_BY_RECORD = {_LOGICAL + name for name in ("Project", "Filter", "Generate", "SubqueryAlias", "View", "LateralJoin")}


class NoSpark(ConnectError):
    """There is no Spark to run the statement. The task fails by it: its records are not to blame."""


class Query:
    """One statement at work. One thread uses it."""

    def __init__(self, statement, holder, for_all=True):
        """`for_all`: no predicate says for which records it is."""
        self._statement = statement
        self._holder = holder
        self._for_all = for_all
        self._wanted = [name for name in (_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP, _KEY) if name in statement]
        self._base = self._session = None
        self._untouched = {}  # layout of a table -> {name of a result: the field that it is, as it came}

    # ---------------------------------------------------------------- columns
    def frame(self, frame):
        """(the frame that comes out, for each of its rows the number of the row it is of, ascending). Raises ByRows or NotColumns."""
        if not self._for_all:
            raise ByRows
        try:
            return self._frame(frame)
        except DataError as error:
            raise ByRows from error

    def _frame(self, frame):
        if frame.value is None and frame.value_schema is None:
            return frame, np.arange(frame.count)
        fields = self._fields(frame)
        meta = self._meta(frame, fields)
        arrays = [to_sql(array, schema) for array, schema in fields.values()] + [array for _, array in meta]
        names = [*fields, *(name for name, _ in meta)]
        if _ROW in names:
            raise DataError(f"Sql cannot work on a value with a field '{_ROW}', which is its own.")
        table = pa.Table.from_arrays([pa.array(np.arange(frame.count)), *arrays], [_ROW, *names])
        session = self._own_session()
        with self._holder.job():
            result, kinds, untouched = self._run(session, table)
        kept = {name: fields[field] for name, field in untouched.items() if field in fields}
        return self._framed(frame, result, kinds, kept)

    def _fields(self, frame):
        """{name: (Arrow array, schema)} of the value's fields."""
        column, schema = (frame.value.column, frame.value.shape) if isinstance(frame.value, Shaped) else (frame.value, frame.value_schema)
        if schema is None:
            raise ByRows
        if schema.type != s.STRUCT or schema.logical:
            raise DataError(f"Sql works on values that have fields, structs or maps, and this one is of type {schema.name or schema.type}.")
        if column is None:
            raise ByRows
        column = columnar(column, schema, frame.count)
        if not isinstance(column, StructColumn):
            if column.null_count:
                raise ByRows  # a null passes
            column = StructColumn(schema, column.flatten(), frame.count)
        parts = zip(schema.fields, column.parts)
        return {field.name: (_whole(to_arrow(part, field.schema, frame.count)), field.schema) for field, part in parts}

    def _meta(self, frame, taken):
        """[(name, Arrow array)] of what the record has beside its value, as far as the statement asks for it."""
        count = frame.count
        wanted = [name for name in self._wanted if name not in taken]
        arrays = {
            _TOPIC: lambda: _one_or_all(frame.topic, count, pa.string()),
            _PARTITION: lambda: _one_or_all(frame.partition, count, pa.int32()),
            _OFFSET: lambda: pa.nulls(count, pa.int64()) if frame.offsets is None else pa.array(frame.offsets, pa.int64()),
            _TIMESTAMP: lambda: to_sql(_times(frame), s.timestamp_schema(optional=True)),
            _KEY: lambda: self._key(frame),
        }
        return [(name, arrays[name]()) for name in wanted]

    def _key(self, frame):
        column, schema = (frame.key.column, frame.key.shape) if isinstance(frame.key, Shaped) else (frame.key, frame.key_schema)
        if column is not None and schema is None:
            raise ByRows
        if column is None:
            return pa.nulls(frame.count, pa.string())
        return to_sql(_whole(to_arrow(columnar(column, schema, frame.count), schema, frame.count)), schema)

    # ---------------------------------------------------------------- Spark
    def _run(self, session, table):
        """(what the statement makes of the table, Spark's types by name, which results are fields as they came)"""
        session.createDataFrame(in_pieces(table, self._holder.cores)).createOrReplaceTempView("record")
        frame = self._selected(session)
        key = str(table.schema)
        if key not in self._untouched:
            self._untouched[key] = self._check(frame)
        return frame.toArrow(), {field.name: field for field in frame.schema.fields}, self._untouched[key]

    def spark_plan(self):
        """Spark's own words for its last job, from what is asked of it to what it runs; None where there was none."""
        return None if self._session is None else self._selected(self._session)._jdf.queryExecution().toString()

    def _own_session(self):
        """Of the same Java machine, but with a `record` of its own."""
        base = self._holder.wait()
        if base is None:
            raise NoSpark(f"Sql needs Spark, which cannot be had here: {self._holder.failure or 'it has ended'}")
        if base is not self._base:
            self._base, self._session = base, base.newSession()
            self._untouched.clear()
        return self._session

    def _selected(self, session):
        """The statement's DataFrame, with the number of the record."""
        from pyspark.errors import PySparkException
        from pyspark.sql import DataFrame

        java, inner = session._jvm, session._jsparkSession
        catalyst = java.org.apache.spark.sql.catalyst
        try:
            plan = inner.sessionState().sqlParser().parsePlan(self._statement)
            if plan.getClass().getSimpleName() != "Project":
                raise DataError(f"Sql works on one record at a time, and '{self._statement}' is no plain SELECT … FROM record … WHERE ….")
            number = catalyst.analysis.UnresolvedAttribute.quoted(_ROW)
            plan = catalyst.plans.logical.Project(plan.projectList().appended(number), plan.child())
            return DataFrame(java.org.apache.spark.sql.classic.Dataset.ofRows(inner, plan), session)
        except PySparkException as error:
            raise DataError(f"Spark cannot do '{self._statement}' on this record: {_first_line(error)}") from error

    def _check(self, frame):
        """{name of a result: the field that it is, as it came}. Raises DataError unless each result hangs on one record alone."""
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
                made[name] = array.take(pa.array(rows)), schema
            elif name != _ROW:
                column = table.column(table.column_names.index(name))
                made[name] = from_sql(_whole(column), kinds[name].dataType, kinds[name].nullable)
        taken = {name: made.pop(name) for name in (_TOPIC, _PARTITION, _TIMESTAMP, _KEY) if name in made and self._is_meta(name, frame)}
        if self._is_meta(_OFFSET, frame):
            made.pop(_OFFSET, None)
        out = frame.take(rows).with_(count=len(rows), **self._value(frame, made, len(rows)))
        return out.with_(**self._changes(frame, out, taken)), rows

    @staticmethod
    def _is_meta(name, frame):
        """Whether that name is the record's, and not of a field that the value had before."""
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
            changes["topic"] = topics[0] if len(set(topics)) == 1 else topics
        if _PARTITION in taken:
            partitions = taken[_PARTITION][0].cast(pa.int32()).to_pylist()
            changes["partition"] = partitions[0] if len(set(partitions)) == 1 else partitions
        if _TIMESTAMP in taken:
            array, schema = taken[_TIMESTAMP]
            if schema.name != s.TIMESTAMP:
                raise DataError(f"'{self._statement}' makes a _timestamp of type {schema.name or schema.type}; it must be a timestamp.")
            changes["timestamps"] = array.fill_null(NO_TIMESTAMP).to_numpy(zero_copy_only=False)
        if _KEY in taken and not (frame.key is None and taken[_KEY][0].null_count == out.count):
            array, schema = taken[_KEY]
            if frame.key is None or frame.key_schema is not None:
                changes.update(key=array, key_schema=schema)
            else:
                changes.update(key=values_of(Shaped(schema, array), None, out.count), key_schema=None)
        return changes

    # ---------------------------------------------------------------- rows
    def records(self, records):
        """For each of these records the list of those that come of it, or the exception that it fails with."""
        outcomes = [None] * len(records)
        groups = {}
        for at, record in enumerate(records):
            try:
                if record.value is None:
                    outcomes[at] = [record]
                else:
                    groups.setdefault(_alike(record), []).append(at)
            except DataError as error:
                outcomes[at] = error
        for places in groups.values():
            self._do([records[at] for at in places], places, outcomes)
        return outcomes

    def _do(self, records, places, outcomes):
        try:
            results = self._made_of(records)
        except NoSpark:
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
        count = len(records)
        first = records[0]
        value_schema, key_schema = first.value_schema, first.key_schema
        times = np.array([NO_TIMESTAMP if record.timestamp is None else record.timestamp for record in records], np.int64)
        frame = Frame(
            count,
            [record.topic for record in records],
            partition=[record.partition for record in records],
            value=_column([record.value for record in records], value_schema),
            value_schema=value_schema,
            key=_column([record.key for record in records], key_schema),
            key_schema=key_schema,
            timestamps=times,
            offsets=np.array([record.offset for record in records], np.int64) if hasattr(first, "offset") else None,
        )
        out, rows = self._frame(frame)
        results = [[] for _ in records]
        values, keys = values_of(out.value, out.value_schema, out.count), values_of(out.key, out.key_schema, out.count)
        for at, (row, value, key) in enumerate(zip(rows.tolist(), values, keys)):
            time = int(out.timestamps[at])
            results[row].append(
                records[row].with_(
                    topic=out.topic[at] if isinstance(out.topic, list) else out.topic,
                    partition=out.partition[at] if isinstance(out.partition, list) else out.partition,
                    timestamp=None if time == NO_TIMESTAMP else time,
                    key=key,
                    key_schema=out.key_schema,
                    value=value,
                    value_schema=out.value_schema,
                )
            )
        return results


def _whole(column):
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _one_or_all(given, count, kind):
    return pa.array(given, kind) if isinstance(given, list) else pa.repeat(pa.scalar(given, kind), count)


def _times(frame):
    if frame.timestamps is None:
        return pa.nulls(frame.count, pa.int64())
    unset = frame.timestamps == NO_TIMESTAMP
    return pa.array(frame.timestamps, pa.int64(), mask=unset if unset.any() else None)


def _failure(statement, error):
    failed = DataError(f"Spark failed '{statement}' on this record: {_first_line(error)}")
    failed.__cause__ = error
    return failed


def _first_line(error):
    return str(error).strip().split("\n")[0][:500]


def _column(values, schema):
    """Values as a frame has them; those without a schema by the shape that they have in common."""
    if schema is not None or all(value is None for value in values):
        return None if all(value is None for value in values) else values
    shape = _shape(next(value for value in values if value is not None))
    return Shaped(shape, pa.array(values, arrow_type(shape)))


def _alike(record):
    """What records must share to go through one job."""
    value = record.value_schema if record.value_schema is not None else _shape(record.value)
    key = record.key_schema if record.key_schema is not None or record.key is None else _shape(record.key)
    return value, record.value_schema is None, key, record.key_schema is None


_SCALARS = {bool: Schema.BOOLEAN, str: Schema.STRING, bytes: Schema.BYTES, float: Schema.FLOAT64, int: Schema.INT64}


def _shape(value):
    """The schema that a value without one has by its looks. Raises DataError where it is of no one type."""
    if value is None:
        return Schema.OPTIONAL_STRING
    for kind, schema in _SCALARS.items():
        if isinstance(value, kind):
            return schema
    if isinstance(value, dict):
        builder = SchemaBuilder.struct()
        for name, item in value.items():
            if not isinstance(name, str):
                raise DataError("Sql works on maps whose keys are texts.")
            builder.field(name, _shape(item))
        return builder.optional().build()
    if isinstance(value, list):
        shapes = list(dict.fromkeys(_shape(item) for item in value if item is not None))
        if len(shapes) > 1:
            raise DataError("Sql works on lists whose items are all of one type.")
        return SchemaBuilder.array(shapes[0] if shapes else Schema.OPTIONAL_STRING).optional().build()
    if isinstance(value, Struct):
        return value.schema
    raise DataError(f"Sql cannot work on a value of type {type(value).__name__} that has no schema.")


