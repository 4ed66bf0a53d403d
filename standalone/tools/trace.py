"""Traces records through a chain: each record before and after every link, its serialized form, and what the chain is compiled to.

A trace consists of JSON values. The rows engine runs one link at a time, so the trace shows exactly what a task does.
"""

import base64
import decimal
import math

import numpy as np

from standalone.data.arrow import NotColumns
from standalone.data.java_text import java_text
from standalone.data.scalars import Instant
from standalone.data.struct import MOMENTS, Struct
from standalone.pipeline.batch_run import SinkOrigin, SourceOrigin
from standalone.pipeline.columns.batch import ColumnBatch
from standalone.pipeline.columns.segments import ByRows
from standalone.pipeline.conversion import Conversion
from standalone.pipeline.pipeline import ONLY_SPARK, Pipeline
from standalone.pipeline.rows.engine import RowsEngine, class_name, listed
from standalone.pipeline.spark.sql import Query
from standalone.stage import QueryTransform, StageFailed
from standalone.wire import NO_TIMESTAMP

CHANGED, UNCHANGED, SKIPPED, GONE, FAILED = "changed", "unchanged", "skipped", "dropped", "failed"


class Preview:
    """Traces records through a chain without side effects. A SessionHolder is required if a link is an SQL statement."""

    def __init__(self, chain, holder=None):
        self._ends = RowsEngine(chain._replace(links=[]))
        queries = {link.alias: Query(link.transform.statement, holder) for link in chain.links if isinstance(link.transform, QueryTransform)}
        self._links = [(link, RowsEngine(chain._replace(links=[link]), queries=queries)) for link in chain.links]

    def source(self, record):
        """The trace of a SourceRecord up to its serialized form."""
        steps = [{"step": "polled", "record": shown_record(record)}]
        changed = self._through_links(record, steps)
        if not changed:
            return {"outcome": steps[-1]["outcome"], "steps": steps}
        written = []
        for each in changed:
            try:
                key, value, headers = self._ends.encode(each, 0)
            except StageFailed as failure:
                steps.append({"step": failure.stage, "class": failure.name, "outcome": FAILED, "error": shown_error(failure)})
                return {"outcome": FAILED, "steps": steps}
            written.append(_shown_place(each.topic, each.partition, each.timestamp) | _shown_bytes(key, value, headers))
        return {"outcome": "written", "steps": steps, "written": written[0] if len(written) == 1 else written}

    def sink(self, topic, partition, records, row):
        """The trace of one row of wire.Records from its bytes to the sink task."""
        key, value, headers = (None if part is None else part[row] for part in (records.keys, records.values, records.headers))
        time = NO_TIMESTAMP if records.timestamps is None else int(records.timestamps[row])
        fetched = _shown_place(topic, partition, None if time == NO_TIMESTAMP else time) | {"offset": int(records.offsets[row])}
        steps = [{"step": "fetched", "bytes": fetched | _shown_bytes(key, value, headers)}]
        try:
            record = self._ends.decode(topic, partition, records, row)
        except StageFailed as failure:
            steps.append({"step": failure.stage, "class": failure.name, "outcome": FAILED, "error": shown_error(failure)})
            return {"outcome": FAILED, "steps": steps}
        steps.append({"step": "converted", "record": shown_record(record)})
        changed = self._through_links(record, steps)
        return {"outcome": "put" if changed else steps[-1]["outcome"], "steps": steps}

    def _through_links(self, record, steps):
        """The records after all links: several if a link splits the record, none if it is dropped or fails."""
        records = [record]
        for link, engine in self._links:
            step = {"step": link.alias, "class": class_name(link.transform)}
            steps.append(step)
            made, outcomes = [], set()
            for each in records:
                try:
                    changed = listed(engine.transform(each, 0))
                except StageFailed as failure:
                    step.update(outcome=FAILED, error=shown_error(failure))
                    return []
                outcomes.add(_outcome(link, each, changed))
                made += changed
            if not made:
                step["outcome"] = GONE
                return []
            step["outcome"] = outcomes.pop() if len(outcomes) == 1 else CHANGED
            shown = [shown_record(each) for each in made]
            step.update({"record": shown[0]} if len(shown) == 1 else {"records": shown})
            records = made
        return records


def _outcome(link, record, changed):
    """The result of one link for a record."""
    if not changed:
        return GONE
    if changed[0] is record and link.predicate is not None and bool(link.predicate.test(record)) is bool(link.negate):
        return SKIPPED
    return UNCHANGED if changed == [record] else CHANGED


# --- Records as JSON values ----------------------------------------------------------------------------------------


def shown_record(record):
    return _shown_place(record.topic, record.partition, record.timestamp) | {
        "key": _shown_part(record.key_schema, record.key),
        "value": _shown_part(record.value_schema, record.value),
        "headers": [{"name": header.name, **_shown_part(header.schema, header.value)} for header in record.headers],
    }


def shown_error(failure):
    return {"stage": failure.stage, "class": failure.java_class, "message": str(failure.error)}


def _shown_place(topic, partition, timestamp):
    return {"topic": topic, "partition": partition, "timestamp": timestamp}


def _shown_part(schema, value):
    return {"schema": schema_text(schema), "value": plain(value)}


def _shown_bytes(key, value, headers):
    shown_headers = [{"name": name, "value": shown_bytes(data)} for name, data in headers or ()]
    return {"key": shown_bytes(key), "value": shown_bytes(value), "headers": shown_headers}


def shown_bytes(data):
    """Bytes as text, or as {"base64": …} if they are not UTF-8."""
    if data is None:
        return None
    data = bytes(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def schema_text(schema):
    """A short form of a schema, such as `struct<id: int64, name: string?>`; None for no schema."""
    if schema is None:
        return None
    kind = schema.type.lower()
    if schema.fields:
        kind += "<" + ", ".join(f"{field.name}: {schema_text(field.schema)}" for field in schema.fields) + ">"
    elif schema.value_schema is not None or schema.key_schema is not None:
        inside = [schema_text(each) or "any" for each in (schema.key_schema, schema.value_schema) if each is not None]
        kind += f"<{', '.join(inside)}>"
    named = f"{schema.name}({kind})" if schema.name else kind
    return named + ("?" if schema.optional else "")


def plain(value):
    """A value as JSON. Types that JSON lacks become strings, and bytes {"base64": …}."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else java_text(value)
    if isinstance(value, Struct):
        return {field.name: plain(item) for field, item in zip(value.schema.fields, value.values)}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else java_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, MOMENTS):
        return {"ms": Instant.of(value).ms, "text": java_text(value)}
    return java_text(value)


# --- The compiled chain --------------------------------------------------------------------------------------------


def explain(chain, batches, holder):
    """A description of how the chain runs for these batches, and Spark's plans as [{title, spark}] of each job.

    `batches` are SourceBatches for a source, (topic, partition, wire.Records) for a sink. Starts the SessionHolder's session.
    """
    pipeline = Pipeline(chain, ONLY_SPARK, holder)
    plans = {}
    for batch in batches:
        if chain.kind == "source":
            pipeline.source(batch)
            columns, origin = ColumnBatch.of_source(batch), SourceOrigin(batch)
        else:
            pipeline.sink(*batch)
            engine = RowsEngine(chain)
            columns, _, _ = Conversion(chain, engine).decode(*batch)
            origin = SinkOrigin(engine, *batch, {})
        session = holder.ready()
        if session is not None and columns.count:
            for title, spark in _spark_plans(pipeline.segments, session, columns, origin):
                plans[title] = spark
    return pipeline.explain(), [{"title": title, "spark": spark} for title, spark in plans.items()]


def _spark_plans(segments, session, batch, origin):
    """(title, Spark's plan) of each job for that batch."""
    for segment in segments:
        try:
            spark = segment.spark_plan(session, batch)
            if spark is not None:
                topic = batch.topic if isinstance(batch.topic, str) else "multiple topics"
                key, value = (schema_text(schema) or "without schema" for schema in (batch.key_schema, batch.value_schema))
                yield f"{segment.title}, {topic}: key {key}, value {value}", spark
            batch, _, _ = segment.run(batch, origin, np.arange(batch.count))
        except (ByRows, NotColumns):
            return  # the pipeline's description says so
        if not isinstance(batch, ColumnBatch) or not batch.count:
            return
