"""Record layout of a table: topic, schemas of key, value and envelope, and conversion of rows to structs."""

import logging
import re

from connectors.postgres_cdc.filters import OfTables
from connectors.postgres_cdc.kinds import Handling, Kinds, under
from connectors.postgres_cdc.pgoutput import UNCHANGED
from standalone import ConnectError, DataError, Field, Schema, Struct

log = logging.getLogger(__name__)

_SNAPSHOTS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"


def struct_of(name, *fields, version=None, optional=False):
    return Schema(
        "struct", name=name, version=version, optional=optional, fields=[Field(each, at, schema) for at, (each, schema) in enumerate(fields)]
    )


SOURCE = struct_of(
    "io.debezium.connector.postgresql.Source",
    ("version", Schema.STRING), ("connector", Schema.STRING), ("name", Schema.STRING), ("ts_ms", Schema.INT64),
    ("snapshot", Schema("string", True, "false", "io.debezium.data.Enum", 1, parameters={"allowed": _SNAPSHOTS})), ("db", Schema.STRING),
    ("sequence", Schema.OPTIONAL_STRING), ("ts_us", Schema.OPTIONAL_INT64), ("ts_ns", Schema.OPTIONAL_INT64), ("schema", Schema.STRING),
    ("table", Schema.STRING), ("txId", Schema.OPTIONAL_INT64), ("lsn", Schema.OPTIONAL_INT64), ("xmin", Schema.OPTIONAL_INT64), version=1,
)  # fmt: skip
BLOCK = struct_of(
    "event.block", ("id", Schema.STRING), ("total_order", Schema.INT64), ("data_collection_order", Schema.INT64), version=1, optional=True
)  # fmt: skip


class Column:
    """A field of the rows: its index, and how to read it."""

    __slots__ = ("name", "field", "at", "kind", "schema", "absent", "parse")

    def __init__(self, name, field, at, kind, schema):
        kind = under(kind, schema)
        self.name, self.field, self.at, self.kind, self.schema = name, field, at, kind, schema
        self.parse = kind.parse
        self.absent = None if schema.optional else schema.default if schema.default is not None else kind.absent


class Shape:
    """The layout of one table, until its columns change."""

    def __init__(self, relation, topic, columns, key_columns, adjust):
        self.relation, self.topic = relation, topic
        self.schema, self.table = relation.schema, relation.table
        self.columns = columns
        self._key_columns = key_columns
        named = adjust(topic)
        self.value_schema = struct_of(f"{named}.Value", *((each.field, each.schema) for each in columns), optional=True)
        self.key_schema = struct_of(f"{named}.Key", *((each.field, each.schema) for each in key_columns)) if key_columns else None
        self.envelope = struct_of(
            f"{named}.Envelope",
            ("before", self.value_schema), ("after", self.value_schema), ("source", SOURCE), ("transaction", BLOCK), ("op", Schema.STRING),
            ("ts_ms", Schema.OPTIONAL_INT64), ("ts_us", Schema.OPTIONAL_INT64), ("ts_ns", Schema.OPTIONAL_INT64), version=2,
        )  # fmt: skip

    def value(self, row, reader, old=None):
        """Build a row's struct; `old` may supply unchanged values."""
        return Struct.trusted(self.value_schema, [reader.read(self, each, row, old) for each in self.columns])

    def key(self, row, reader, old=None):
        """Build a row's key; None if the table has none."""
        if self.key_schema is None:
            return None
        return Struct.trusted(self.key_schema, [reader.read(self, each, row, old) for each in self._key_columns])

    def key_part(self, row):
        """Return the strings that identify a row."""
        return [row[each.at] for each in self._key_columns]

    def only_key(self, row):
        """Build a row from the replica identity only: other columns are unknown, which differs from null."""
        known = {at for at, each in enumerate(self.relation.columns) if each.is_key}
        return [value if at in known else ABSENT for at, value in enumerate(row)]


class _Absent:
    def __repr__(self):
        return "ABSENT"


ABSENT = _Absent()


class NullInRequired(Exception):
    """An older row has a null in a column that is now required."""


class Reader:
    """Reads values; event.converting.failure.handling.mode applies to invalid ones."""

    def __init__(self, on_failure):
        self._on_failure = on_failure

    def read(self, shape, column, row, old):
        text = row[column.at]
        if text is None:
            if not column.schema.optional:
                raise NullInRequired(column.name)
            return None
        if text is UNCHANGED:
            text = old[column.at] if old is not None else UNCHANGED
            if text is UNCHANGED or text is ABSENT:
                return column.kind.unavailable if column.kind.unavailable is not None else column.absent
            return self.read(shape, column, old, None)
        if text is ABSENT:
            return column.absent
        try:
            return column.parse(text)
        except (ValueError, ArithmeticError, LookupError, DataError) as error:
            where = f"Column {column.name} of {shape.schema}.{shape.table}"
            if self._on_failure == "fail" or not column.schema.optional:
                raise ConnectError(
                    f"{where} has a value that is not a valid {column.schema.name or column.schema.type}: {error} Exclude the column by "
                    f"column.exclude.list, or choose another *.handling.mode."
                ) from error
            if self._on_failure == "warn":
                log.warning("%s has an invalid value, which becomes null in its record: %s", where, error)
            return None


class Shapes:
    """Builds the Shape of a relation."""

    def __init__(self, config, catalog, filters):
        self._prefix, self._catalog, self._filters = config["topic.prefix"], catalog, filters
        self._keys = OfTables(config["message.key.columns"])
        self._adjust_schema, self._adjust_field = (_ADJUST[config[f"{kind}.name.adjustment.mode"].lower()] for kind in ("schema", "field"))
        self._comments = config["include.schema.comments"]
        self._kinds = Kinds(
            Handling(
                numeric=config["decimal.handling.mode"].lower(), time=config["time.precision.mode"].lower(),
                interval=config["interval.handling.mode"].lower(), binary=config["binary.handling.mode"].lower(),
                hstore=config["hstore.handling.mode"].lower(), money_digits=config["money.fraction.digits"],
                keeps_unknown=config["include.unknown.datatypes"], placeholder=config["unavailable.value.placeholder"],
            ), catalog.type,
        )  # fmt: skip

    def of(self, relation, nullable=()):
        """Return the Shape; columns in `nullable` may be null, whatever the catalog says now."""
        self._catalog.forget_types()
        described = self._catalog.describe(relation.oid)
        columns = {}
        for at, told in enumerate(relation.columns):
            kind = self._kinds.of(told.type_oid, told.modifier)
            if kind is not None:
                columns[told.name] = Column(told.name, self._adjust_field(told.name), at, kind, self._schema(told, kind, described, nullable))
        key = [columns[name] for name in self._key(relation, described, columns)]
        taken = [each for each in columns.values() if self._filters.column(relation.schema, relation.table, each.name)]
        return Shape(relation, self.topic(relation.schema, relation.table), taken, key, self._adjust_schema)

    def topic(self, *parts):
        return re.sub(r"[^A-Za-z0-9._-]", "_", ".".join((self._prefix, *parts)))

    def _schema(self, told, kind, described, nullable):
        now = described.columns.get(told.name)
        same = now is not None and now.type_oid == told.type_oid
        is_optional = not same or not now.not_null or told.name in nullable
        doc = now.comment if self._comments and same and now.comment else kind.schema.doc
        schema = kind.schema.with_(optional=is_optional, doc=doc)
        if same and now.default is not None:
            try:
                return schema.with_(default=kind.parse(now.default))
            except (ValueError, ArithmeticError, LookupError, DataError):
                log.debug("The default of %s cannot be in its schema", told.name)
        return schema

    def _key(self, relation, described, columns):
        said = self._keys.of(relation.schema, relation.table)
        names = [each.strip() for each in said.split(",")] if said else described.key
        if not names and relation.identity == "i":
            names = [each.name for each in relation.columns if each.is_key]
        missing = [name for name in names if name not in columns]
        if missing and said:
            raise ConnectError(f"message.key.columns names {', '.join(missing)}, which {relation.schema}.{relation.table} does not have.")
        return () if missing else names


def _unicode(found):
    return f"_u{ord(found[0]):04x}"


def _adjusted(replace):
    def adjust(name):
        name = re.sub(r"[^A-Za-z0-9_.]", replace, name)
        return re.sub(r"(^|\.)([0-9])", r"\1_\2", name)

    return adjust


_ADJUST = {"none": str, "avro": _adjusted("_"), "avro_unicode": _adjusted(_unicode)}
