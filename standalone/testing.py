"""The test kit: checks the row form and the columnar form of a stage together.

    check_transform(HoistField.Value.of(field="line"), record, expected, spark)
    check_converter(JsonConverter.of(), Schema.STRING, "foo", b'{"schema":...}')

Both fail if the two forms differ, or if an expected columnar form is missing.
"""

import numpy as np

from standalone.data.arrow import NotColumns
from standalone.data.column import columnar, values_of
from standalone.data.record import SinkRecord
from standalone.data.schema import BYTES, STRING
from standalone.local_worker import LocalWorker, LogRecord, apply_transforms, failing, wait_for  # noqa: F401
from standalone.pipeline.chain import Link
from standalone.pipeline.columns.batch import ColumnBatch
from standalone.pipeline.columns.leaves import Leaves
from standalone.pipeline.columns.plan import ColumnPlan
from standalone.pipeline.columns.prune import Declined
from standalone.pipeline.columns.segments import ByRows
from standalone.pipeline.conversion import decoded
from standalone.suites import SinkSuite, SourceSuite  # noqa: F401
from standalone.wire import NO_TIMESTAMP, ByteColumn

COPIES = 3  # of a record in a column, to find errors between adjacent rows
TOPIC = "topic"


def check_transform(transform, before, after, spark=None, by_columns=True):
    """Check that a transform turns `before` into `after`: a record, None if it is dropped, or the class of the error that it raises.

    With a SessionHolder as `spark` the columnar form is checked too. `by_columns=False` means that it has none for this record; errors are
    always raised by rows.
    """
    is_error = isinstance(after, type) and issubclass(after, Exception)
    _check_rows(lambda: transform.apply(before), after, is_error)
    if spark is None:
        return
    try:
        found = transform_columns([Link("checked", transform)], [before] * COPIES, spark)
    except LeftToRows as reason:
        assert is_error or not by_columns, f"by columns: {reason}"
        return
    assert not is_error, f"the columnar form returns {found[0]!r}, the row form fails"
    assert by_columns, f"the columnar form returns {found[0]!r}, but by_columns=False"
    assert found == [after] * COPIES, f"by columns: {found[0]!r}, expected {after!r}"


def check_converter(converter, schema, value, data, read=None, by_columns="both"):
    """Check that a converter serializes the value of a schema to `data`, and deserializes that to `read`, a (schema, value), or the original.

    `data` may be the class of an error instead. `by_columns` names the columnar forms that exist: "both", "encode", "decode" or "none".
    """
    is_error = isinstance(data, type)
    _check_rows(lambda: converter.from_connect(TOPIC, schema, value), data, is_error)
    column = encoded_column(converter, schema, value)
    _check_column(column, data, is_error, by_columns in ("both", "encode"), "encode")
    if is_error:
        return
    expected = (schema, value) if read is None else read
    found = converter.to_connect(TOPIC, data)
    assert found == expected, f"the row form read {found!r}, expected {expected!r}"
    _check_column(decoded_column(converter, data), expected, False, by_columns in ("both", "decode"), "decode")


def _check_rows(work, expected, is_error):
    try:
        found = work()
    except Exception as error:
        assert is_error and isinstance(error, expected), f"the row form failed: {type(error).__name__}: {error}"
    else:
        assert not is_error, f"the row form returns {found!r}, expected {expected.__name__}"
        assert found == expected, f"by rows: {found!r}, expected {expected!r}"


def _check_column(found, expected, is_error, is_there, what):
    if isinstance(found, LeftToRows):
        assert is_error or not is_there, f"{what}: {found}"
        return
    assert not is_error, f"{what} made {found!r}, but the row form fails"
    assert is_there, f"{what} made {found!r}, but by_columns excludes it"
    assert found == expected, f"{what}: {found!r}, expected {expected!r}"


# --- One case as a column ------------------------------------------------------------------------------------------


class LeftToRows(Exception):
    """There is no columnar form for this case, or it leaves the row to the rows engine; the message has the reason."""

    def __eq__(self, other):
        return isinstance(other, LeftToRows) and self.args == other.args

    __hash__ = Exception.__hash__


def transform_columns(links, records, spark):
    """Run Links on similar records by columns only: a list, with None for each dropped record. Raises LeftToRows."""
    batch = columns_of(records)
    try:
        leaves = Leaves(batch, set())
        changed, dropped, failed = ColumnPlan(links, leaves, batch).run(batch, leaves, spark)
    except (Declined, NotColumns) as reason:
        raise LeftToRows(str(reason)) from reason
    if failed is not None and failed.any():
        raise LeftToRows("the row is marked for the rows engine")
    made = records_of(changed, records)
    return made if dropped is None else [None if gone else record for record, gone in zip(made, dropped)]


def encoded_column(converter, schema, value):
    """The bytes of a value by `encode` alone, or LeftToRows."""
    if schema is None:
        return LeftToRows("a column without a schema is converted by rows")
    if value is None:
        column = None
    elif not schema.logical and (schema.type == STRING and isinstance(value, str) or schema.type == BYTES and isinstance(value, bytes)):
        try:
            column = ByteColumn.of([value.encode() if isinstance(value, str) else value] * COPIES)  # strings as UTF-8, as in files and the log
        except UnicodeEncodeError:
            return LeftToRows("text with an unpaired surrogate has no UTF-8 form: it is converted by rows")
    else:
        try:
            column = columnar([value] * COPIES, schema, COPIES)
        except NotColumns as reason:
            return LeftToRows(str(reason))
    encoded = converter.encode(TOPIC, schema, column, COPIES)
    if encoded is None:
        return LeftToRows(f"{type(converter).__name__} has no columnar form for it")
    texts, bad = encoded
    if bad is not None and len(bad):
        return LeftToRows("the row is marked for the rows engine")
    return None if texts is None else _the_one(list(texts))


def decoded_column(converter, data):
    """(schema, value) of bytes, read as a column by the columns engine, or LeftToRows."""
    try:
        schema, column, bad = decoded(converter, TOPIC, ByteColumn.of([data] * COPIES), COPIES)
    except ByRows:
        return LeftToRows(f"{type(converter).__name__} has no columnar form for it")
    if len(bad):
        return LeftToRows("the row is marked for the rows engine")
    return schema, _the_one(values_of(column, schema, COPIES))


def _the_one(items):
    assert all(repr(item) == repr(items[0]) for item in items), f"equal rows have different results: {items!r}"
    return items[0]


def columns_of(records):
    """Similar records as a ColumnBatch."""
    first = records[0]
    parts = {}
    for part in ("key", "value"):
        values = [getattr(record, part) for record in records]
        parts[part] = None if all(value is None for value in values) else values
        parts[f"{part}_schema"] = getattr(first, f"{part}_schema")
    times = [NO_TIMESTAMP if record.timestamp is None else record.timestamp for record in records]
    is_sink = isinstance(first, SinkRecord)
    return ColumnBatch(
        len(records),
        _one_or_all([record.topic for record in records]),
        partition=_one_or_all([record.partition for record in records]),
        timestamps=np.array(times, np.int64),
        headers=[record.headers for record in records] if any(record.headers for record in records) else None,
        offsets=np.array([record.offset for record in records], np.int64) if is_sink else None,
        timestamp_type=first.timestamp_type if is_sink else None,
        **parts,
    )


def _one_or_all(items):
    return items[0] if items.count(items[0]) == len(items) else items


def records_of(batch, records):
    """The records with the results from a ColumnBatch of the same length."""
    count = len(records)
    keys, values = values_of(batch.key, batch.key_schema, count), values_of(batch.value, batch.value_schema, count)
    topics, partitions = (part if isinstance(part, list) else [part] * count for part in (batch.topic, batch.partition))
    times = [NO_TIMESTAMP] * count if batch.timestamps is None else batch.timestamps.tolist()
    return [
        record.with_(
            topic=topic,
            partition=partition,
            key_schema=batch.key_schema,
            key=key,
            value_schema=batch.value_schema,
            value=value,
            timestamp=None if time == NO_TIMESTAMP else time,
            headers=headers,
        )
        for record, topic, partition, key, value, time, headers in zip(
            records, topics, partitions, keys, values, times, batch.headers or [()] * count
        )
    ]
