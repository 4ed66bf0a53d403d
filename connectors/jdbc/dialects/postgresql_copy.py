"""COPY, both ways: rows out of a query and rows into a table, as CSV that pyarrow reads and writes."""

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
_LOOK_MS = 1000
_MOST_BYTES = 1 << 24  # of a batch
_ROWS_AT_ONCE = 2000  # are written as CSV while the server works on those before them


def read(connection, sql, columns, rows, zone):
    """What a query gives, as it comes: for each `rows` rows at most (their number, an Arrow array a column)."""
    names = [f"c{at}" for at in range(len(columns))]
    chosen = ", ".join(map(_selected, names, columns))
    query = f"SELECT {chosen} FROM ({sql}) AS q ({', '.join(names)})" if columns else sql
    options = pa.csv.ConvertOptions(
        column_types={f"f{at}": _TYPES.get(column.kind, pa.string()) for at, column in enumerate(columns)},
        null_values=[""], true_values=["t"], false_values=["f"], strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip
    for lines in _lines(connection, f"COPY ({query}) TO STDOUT (FORMAT csv)", rows):
        yield len(lines), _parsed(lines, columns, options, zone)


def write(connection, target, arrays):
    """Rows into a table; `target` is its name and its columns."""
    parts = _csv(pa.table(arrays, names=[f"c{at}" for at in range(len(arrays))]))
    part = next(parts)  # what cannot be written is found before COPY begins
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN (FORMAT csv)") as copy:
        while part is not None:
            copy.write(part)
            part = next(parts, None)


def _csv(table):
    for low in range(0, len(table), _ROWS_AT_ONCE):
        out = io.BytesIO()
        pa.csv.write_csv(table.slice(low, _ROWS_AT_ONCE), out, _WRITES)
        yield out.getbuffer()


def _lines(connection, sql, rows):
    """The lines of a COPY TO STDOUT, a list for each batch, straight from libpq: psycopg's own loop goes through multiple generators for each
    line."""
    import psycopg

    if connection.info.transaction_status == connection.info.transaction_status.IDLE:
        connection.execute("SELECT 1")  # begins the transaction
    pgconn = connection.pgconn
    result = pgconn.exec_(sql.encode())
    if result.status != psycopg.pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result, encoding="utf-8")
    waiting = select.poll()
    waiting.register(pgconn.socket, select.POLLIN)
    next_line, lines, left, bytes_left = pgconn.get_copy_data, [], rows, _MOST_BYTES
    while True:
        size, line = next_line(1)
        if size > 0:
            lines.append(line)
            left -= 1
            bytes_left -= size
            if left <= 0 or bytes_left < 0:
                yield lines
                lines, left, bytes_left = [], rows, _MOST_BYTES
        elif size == 0:
            waiting.poll(_LOOK_MS)
            pgconn.consume_input()
        else:
            break
    while (result := pgconn.get_result()) is not None:
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
    if lines:
        yield lines


def _selected(name, column):
    """How a column is asked for, so that its text is the value's."""
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


def _parsed(lines, columns, options, zone):
    table = pa.csv.read_csv(pa.py_buffer(b"".join(lines)), _READS, _PARSES, options)
    return [_values(column, table.column(at), zone) for at, column in enumerate(columns)]


def _values(column, array, zone):
    """A column's strings as column.py says."""
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
        raise ConnectError(
            f"Column '{column.name}' holds an array of arrays, which has no schema: select it as a text with `query`, by {column.name}::text."
        )
    if column.item.kind in (c.FLOAT32, c.FLOAT64):
        return [None if item is None else float(item) for item in items]
    return items
