"""Read and write rows with COPY, as CSV that pyarrow parses and writes."""

import io
import json
import select

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from connectors.jdbc import arrow
from connectors.jdbc import column as c
from connectors.jdbc.dialects.postgresql_values import parse_moments, parse_times
from standalone import ConnectError

_READS = pa.csv.ReadOptions(autogenerate_column_names=True, use_threads=False, block_size=1 << 26)
_PARSES = pa.csv.ParseOptions(newlines_in_values=True)
_WRITES = pa.csv.WriteOptions(include_header=False)
_TYPES = {
    c.BOOLEAN: pa.bool_(), c.INT8: pa.int64(), c.INT16: pa.int16(), c.INT32: pa.int32(), c.INT64: pa.int64(), c.FLOAT32: pa.float32(),
    c.FLOAT64: pa.float64(),
}  # fmt: skip
_POLL_MS = 1000
_BATCH_BYTES = 1 << 24  # a batch that reaches this has fewer rows
_ROWS_AT_ONCE = 2000  # written as CSV while the server processes the previous ones


def read(connection, sql, columns, rows, zone):
    """Yield (number of rows, an Arrow array for each column) for batches of at most `rows` rows, while the query runs."""
    names = [f"c{at}" for at in range(len(columns))]
    chosen = ", ".join(map(_selected, names, columns))
    query = f"SELECT {chosen} FROM ({sql}) AS q ({', '.join(names)})" if columns else sql
    options = pa.csv.ConvertOptions(
        column_types={f"f{at}": _TYPES.get(column.kind, pa.string()) for at, column in enumerate(columns)},
        null_values=[""], true_values=["t"], false_values=["f"], strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip
    for count, data in _batches(connection, f"COPY ({query}) TO STDOUT (FORMAT csv)", rows):
        yield count, _parsed(data, columns, options, zone)


def write(connection, target, arrays):
    """Write rows to a table; `target` is its name with its columns."""
    parts = _csv(pa.table(arrays, names=[f"c{at}" for at in range(len(arrays))]))
    part = next(parts)  # errors in the values are raised before COPY starts
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN (FORMAT csv)") as copy:
        while part is not None:
            copy.write(part)
            part = next(parts, None)


def _csv(table):
    for low in range(0, len(table), _ROWS_AT_ONCE):
        out = io.BytesIO()
        pa.csv.write_csv(table.slice(low, _ROWS_AT_ONCE), out, _WRITES)
        yield out.getbuffer()


def _batches(connection, sql, rows):
    """Yield (number of rows, their CSV) for each batch of a COPY TO STDOUT.

    This calls libpq directly: psycopg's own loop runs several generators for each row. The rows are appended to one buffer: a list would keep
    a memoryview of each row, which the garbage collector tracks.
    """
    import psycopg

    if connection.info.transaction_status == connection.info.transaction_status.IDLE:
        connection.execute("SELECT 1")  # begins the transaction
    pgconn = connection.pgconn
    result = pgconn.exec_(sql.encode())
    if result.status != psycopg.pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result, encoding="utf-8")
    waiting = select.poll()
    waiting.register(pgconn.socket, select.POLLIN)
    next_row, data, count = pgconn.get_copy_data, bytearray(), 0
    while True:
        size, row = next_row(1)
        if size > 0:
            data += row
            count += 1
            if count == rows or len(data) > _BATCH_BYTES:
                yield count, data
                data, count = bytearray(), 0
        elif size == 0:
            waiting.poll(_POLL_MS)
            pgconn.consume_input()
        else:
            break
    while (result := pgconn.get_result()) is not None:
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
    if count:
        yield count, data


def _selected(name, column):
    """Return the expression that selects a column so that its text is exact."""
    if column.kind == c.ARRAY:
        inner = "text" if column.item.kind in (c.STRING, c.DECIMAL, c.DATE, c.TIME, c.TIMESTAMP, c.BYTES) else None
        if column.item.type_name == "money":
            return f"array_to_json({name}::numeric[]::text[])"
        return f"array_to_json({name}::text[])" if inner else f"array_to_json({name})"
    if column.type_name == "money":
        return f"{name}::numeric"
    if column.type_name == "timetz":
        return f"({name} AT TIME ZONE 'UTC')::time"
    if column.type_name == "bit" and column.kind == c.BOOLEAN:
        return f"({name} = B'1')"
    return name


def _parsed(data, columns, options, zone):
    table = pa.csv.read_csv(pa.py_buffer(data), _READS, _PARSES, options)
    return [_values(column, table.column(at), zone) for at, column in enumerate(columns)]


def _values(column, array, zone):
    """Convert a column's strings to the types in column.py."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if column.kind == c.BYTES:
        return arrow.from_hex(pc.utf8_slice_codeunits(array, 2))
    if column.kind == c.DATE:
        return parse_moments(array, is_date=True)
    if column.kind == c.TIMESTAMP:
        micros = parse_moments(array, is_zoned=column.is_zoned)
        return micros if column.is_zoned else arrow.to_instant(micros, zone)
    if column.kind == c.TIME:
        return parse_times(array)
    if column.kind == c.ARRAY:
        lists = [None if text is None else _items(json.loads(text), column) for text in array.to_pylist()]
        flat = pa.array([item for items in lists if items for item in items], _TYPES.get(column.item.kind, pa.string()))
        ends = [0]
        for items in lists:
            ends.append(ends[-1] + len(items or ()))
        mask = pa.array([items is None for items in lists]) if None in lists else None
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), _values(column.item, flat, zone), mask=mask)
    return array


def _items(items, column):
    if any(isinstance(item, list) for item in items):
        raise ConnectError(f"Column '{column.name}' contains a nested array, which has no schema: select it as text in `query`: {column.name}::text.")
    if column.item.kind in (c.FLOAT32, c.FLOAT64):
        return [None if item is None else float(item) for item in items]
    return items
