"""Read types and tables from the database's catalog."""

import re
from typing import NamedTuple

from connectors.postgres_cdc.kinds import TypeInfo
from connectors.postgres_cdc.pgoutput import Relation, RelationColumn

_TYPES = (
    "SELECT t.oid, t.typname, t.typtype::text, CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END, t.typbasetype, t.typtypmod, "
    "ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) FROM pg_type t WHERE t.oid = %s"
)
_TABLES = (
    "SELECT n.nspname, c.relname, c.oid, c.reltuples FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND (%s OR c.relkind = 'r') AND (%s OR NOT c.relispartition) ORDER BY 1, 2"
)
_COLUMNS = (
    "SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum) "
    "FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = '' "
    "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
_GENERATED = "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attgenerated <> '' AND NOT attisdropped"
# Unique indexes that identify rows: the primary key first, then the replica identity, then others without nulls.
_KEYS = (
    "SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, at) JOIN pg_attribute a "
    "ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE k.at <= i.indnkeyatts ORDER BY k.at) FROM pg_index i "
    "WHERE i.indrelid = %s AND i.indisunique "
    "AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND (i.indisprimary OR NOT EXISTS (SELECT FROM pg_attribute a "
    "WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) AND NOT a.attnotnull)) "
    "ORDER BY i.indisprimary DESC, i.indisreplident DESC, i.indexrelid"
)
_CONSTANT = ("'", "true", "false", "-", *"0123456789", "(")


class TableColumn(NamedTuple):
    type_oid: int
    modifier: int
    not_null: bool
    default: str | None  # text of a constant default
    comment: str | None


class Description(NamedTuple):
    """A table's current definition: columns {name: TableColumn}, and the key columns."""

    columns: dict
    key: tuple


class Catalog:
    def __init__(self, connection):
        self._connection = connection
        self._types = {}

    def type(self, oid):
        found = self._types.get(oid)
        if found is None:
            row = self._connection.execute(_TYPES, [oid]).fetchone()
            found = TypeInfo(oid, "unknown", "u") if row is None else TypeInfo(row[0], row[1], row[2], row[3], row[4], row[5], tuple(row[6]))
            self._types[oid] = found
        return found

    def forget_types(self):
        """Reread types, which may have changed: an enum may have more labels."""
        self._types.clear()

    def tables(self, via_root=False):
        """Return [(schema, name, oid, estimated rows)] of all tables; of partitioned tables the partitions, or with `via_root` the root."""
        return self._connection.execute(_TABLES, [via_root, not via_root]).fetchall()

    def describe(self, oid):
        columns = {
            name: TableColumn(kind, modifier, not_null, self._constant(default), comment)
            for name, kind, modifier, not_null, default, comment in self._connection.execute(_COLUMNS, [oid])
        }
        keys = self._connection.execute(_KEYS, [oid]).fetchall()
        return Description(columns, tuple(keys[0][0]) if keys else ())

    def relation(self, oid, schema, table):
        """Describe a table as pgoutput would."""
        generated = {name for (name,) in self._connection.execute(_GENERATED, [oid])}
        described = self.describe(oid).columns
        columns = (RelationColumn(name, each.type_oid, each.modifier, False) for name, each in described.items() if name not in generated)
        return Relation(oid, schema, table, "", tuple(columns))

    def xmin(self, slot):
        """Return the slot's xmin, if it has one."""
        row = self._connection.execute(
            "SELECT coalesce(xmin, catalog_xmin)::text::int8 FROM pg_replication_slots WHERE slot_name = %s", [slot]
        ).fetchone()
        return row[0] if row else None

    def _constant(self, expression):
        """Return the text of a constant default; None for all others."""
        if expression is None or not expression.lower().startswith(_CONSTANT) or not _is_one_value(expression):
            # Debezium's schemas have a default of 0 for serial columns.
            return "0" if expression is not None and expression.startswith("nextval(") else None
        return self._connection.execute(f"SELECT ({expression})::text").fetchone()[0]


def _is_one_value(expression):
    """Whether it is a number, true, false or a string, with optional casts."""
    return re.fullmatch(
        r"\(?(?:-?[0-9.]+(?:e[+-]?[0-9]+)?|true|false|'(?:[^']|'')*')\)?(?:::[a-z_ \".0-9(),\[\]]+)?", expression, re.IGNORECASE
    )
