"""Convert records to table rows (nullable Arrow columns of lake types), and compute the schema changes that a table needs.

Two extra columns hold the row number, in arrival order, and whether the row is a deletion.
"""

import json

import numpy as np
import pyarrow as pa

from connectors.storage.lake_types import WITHOUT_TIMES, to_lake
from connectors.storage.values import arrow_values, loosened
from standalone import DataError, SinkBatch

NUMBER, DELETES = "__connect_row", "__connect_deletes"


def rows_of(batch, first_number, ids, is_upsert):
    """Return (Arrow table of a batch, names of required columns, {row: error}); bad rows are left out. Raise DataError."""
    nulls = batch.nulls()
    tables, bad, required = [], {}, None
    if not nulls.all():
        kept = np.flatnonzero(~nulls)
        table, required, errors = _values(batch if len(kept) == len(batch) else batch.take(kept))
        bad.update({int(kept[row]): error for row, error in errors.items()})
        tables.append(_numbered(table, kept, first_number, False))
    if is_upsert and nulls.any():
        gone = np.flatnonzero(nulls)
        tables.append(_numbered(_keys(batch.take(gone), ids), gone, first_number, True))
    if not tables:
        return None, required, bad
    made = joined(tables)
    if bad:
        numbers = made[NUMBER].to_numpy() - first_number
        made = made.take(pa.array(np.flatnonzero(~np.isin(numbers, sorted(bad)))))
    return made, required, bad


def joined(tables):
    """Concatenate tables, with all columns, each of the widest type."""
    try:
        return pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"Old and new values do not fit into one column: {error}") from None


def _values(batch):
    schema, array, bad = arrow_values(batch)
    if schema.type != "struct":
        raise DataError(f"A table row needs a struct or an object, not a value of type {schema.type}. HoistField wraps it in a struct.")
    required = {field.name for field in schema.fields if not field.schema.optional}
    return _flat(to_lake(array, loosened(schema), WITHOUT_TIMES)), required, bad


def _keys(batch, ids):
    """Return the id columns of deleted rows, from the records' keys."""
    if batch.key is None:
        raise DataError("A tombstone deletes a row by its key, but this one has no key.")
    keys = SinkBatch(len(batch), batch.topic, batch.key, batch.key_schema, partition=batch.partition, offsets=batch.offsets)
    schema, array, bad = arrow_values(keys)
    if bad:
        raise next(iter(bad.values()))
    column = to_lake(array, loosened(schema), WITHOUT_TIMES)
    if schema.type != "struct":
        if len(ids) != 1:
            raise DataError(f"The key of a tombstone is a {schema.type}, but the table has the id columns {', '.join(ids)}.")
        return pa.table({ids[0]: column})
    table = _flat(column)
    missing = [name for name in ids if name not in table.column_names]
    if missing:
        raise DataError(f"The key of a tombstone lacks the field {', '.join(missing)}, an id column of the table.")
    return table.select(ids)


def _flat(array):
    return pa.Table.from_arrays(array.flatten(), names=[field.name for field in array.type])


def _numbered(table, rows, first_number, deletes):
    count = len(table)
    return table.append_column(NUMBER, pa.array(rows + first_number, pa.int64())).append_column(DELETES, pa.array(np.full(count, deletes)))


# --- Schema changes ---


def fitted(rows, existing, evolves, ignores_case):
    """Return the rows with all columns of the (empty) Arrow table `existing`, in the widest types."""
    if ignores_case:
        known = {name.lower(): name for name in existing.column_names}
        rows = rows.rename_columns([known.get(name.lower(), name) for name in rows.column_names])
    if not evolves:
        rows = rows.select([name for name in rows.column_names if name in existing.column_names or name in (NUMBER, DELETES)])
    return joined([existing, rows])


def changes(existing, wanted, path=""):
    """Return [SQL after ALTER TABLE x] that changes Spark's schema `existing` (in its JSON form) to `wanted`."""
    made = []
    known = {field["name"]: field["type"] for field in existing["fields"]}
    for field in wanted["fields"]:
        name, kind = field["name"], field["type"]
        if name in (NUMBER, DELETES):
            continue
        column = f"{path}{quote(name)}"
        if name not in known:
            made.append(f"ADD COLUMNS ({column} {sql_type(kind)})")
        elif isinstance(kind, dict) and kind["type"] == "struct" and isinstance(known[name], dict):
            made += changes(known[name], kind, f"{column}.")
        elif isinstance(kind, dict) and kind["type"] == "array" and isinstance(known[name], dict) and isinstance(kind["elementType"], dict):
            if kind["elementType"]["type"] == "struct":
                made += changes(known[name]["elementType"], kind["elementType"], f"{column}.element.")
        elif isinstance(kind, str) and isinstance(known[name], str) and _is_wider(known[name], kind):
            made.append(f"ALTER COLUMN {column} TYPE {sql_type(kind)}")
    return made


_WIDER = {("integer", "long"), ("float", "double")}


def _is_wider(old, new):
    if old.startswith("decimal") and new.startswith("decimal"):
        (digits, scale), (more, same) = _digits(old), _digits(new)
        return scale == same and more > digits
    return (old, new) in _WIDER


def _digits(text):
    return tuple(int(part) for part in text[len("decimal(") : -1].split(","))


_SQL = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}


def sql_type(kind):
    """Convert a type in Spark's JSON to SQL."""
    if isinstance(kind, str):
        return _SQL.get(kind, kind.upper())
    if kind["type"] == "struct":
        return f"STRUCT<{', '.join(quote(each['name']) + ': ' + sql_type(each['type']) for each in kind['fields'])}>"
    if kind["type"] == "array":
        return f"ARRAY<{sql_type(kind['elementType'])}>"
    return f"MAP<{sql_type(kind['keyType'])}, {sql_type(kind['valueType'])}>"


def columns_in_sql(wanted, required):
    """Return the column list for CREATE TABLE."""
    fields = [field for field in wanted["fields"] if field["name"] not in (NUMBER, DELETES)]
    return ", ".join(f"{quote(each['name'])} {sql_type(each['type'])}{' NOT NULL' if each['name'] in required else ''}" for each in fields)


def words_of(schema):
    """Return Spark's JSON of a schema."""
    return json.loads(schema.json())


def quote(name):
    return "`" + name.replace("`", "``") + "`"


