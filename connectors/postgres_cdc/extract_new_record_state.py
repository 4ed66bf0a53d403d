"""ExtractNewRecordState: replace a change's envelope by its row."""

from standalone import (
    BOOLEAN,
    LIST,
    LOW,
    MEDIUM,
    STRING,
    ConfigDef,
    DataError,
    Field,
    Header,
    Option,
    Schema,
    Struct,
    Transform,
    case_insensitive_one_of,
)

DROP, TOMBSTONE, REWRITE, REWRITE_WITH_TOMBSTONE, TO_TOMBSTONE = "drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"
_OF_TRANSACTION = ("id", "total_order", "data_collection_order")
_OF_ENVELOPE = ("op", "ts_ms", "ts_us", "ts_ns", "before", "after", "transaction")
_DELETED = "deleted"


class ExtractNewRecordState(Transform):
    """Extract the row from a change's envelope: `after`; for deletions see delete.tombstone.handling.mode. Other records pass unchanged.

    {"before": null, "after": {"id": 1, "v": "a"}, "op": "c", …}  ->  {"id": 1, "v": "a"}
    add.fields=op,source.lsn                                       ->  {"id": 1, "v": "a", "__op": "c", "__source_lsn": 77}
    """

    java_name = "io.debezium.transforms.ExtractNewRecordState"
    stateless = True
    config_def = ConfigDef(
        Option(
            "delete.tombstone.handling.mode",
            STRING,
            MEDIUM,
            "What to do with a deletion and its tombstone. drop: drop both; tombstone: only the tombstone passes; rewrite: the "
            "old row with __deleted=true (false in other rows); rewrite-with-tombstone: both; delete-to-tombstone: the deletion becomes a "
            "tombstone, and its own tombstone is dropped.",
            default=TOMBSTONE,
            check=case_insensitive_one_of(DROP, TOMBSTONE, REWRITE, REWRITE_WITH_TOMBSTONE, TO_TOMBSTONE),
        ),
        Option("add.fields", LIST, LOW, "Fields of the envelope to add to the row: op, ts_ms, table, source.lsn, lsn:position …", default=""),
        Option("add.fields.prefix", STRING, LOW, "Prefix of their names.", default="__"),
        Option("add.headers", LIST, LOW, "The same, as headers.", default=""),
        Option("add.headers.prefix", STRING, LOW, "Prefix of their names.", default="__"),
        Option("route.by.field", STRING, LOW, "A field of the row that contains the record's topic.", default=""),
        Option("replace.null.with.default", BOOLEAN, LOW, "Whether a null is replaced by the column's default, if it has one.", default=True),
    )

    def configure(self, config):
        self._deletions = config["delete.tombstone.handling.mode"].lower()
        self._rewrites = self._deletions in (REWRITE, REWRITE_WITH_TOMBSTONE)
        self._fields = [_Reference(each, config["add.fields.prefix"]) for each in config["add.fields"]]
        self._headers = [_Reference(each, config["add.headers.prefix"]) for each in config["add.headers"]]
        self._deleted = f"{config['add.fields.prefix']}{_DELETED}"
        self._route, self._defaults = config["route.by.field"], config["replace.null.with.default"]
        self._schemas = {}

    def apply(self, record):
        envelope = record.value
        if envelope is None:
            return record if self._deletions in (TOMBSTONE, REWRITE_WITH_TOMBSTONE) else None
        if not isinstance(envelope, Struct) or not (envelope.schema.name or "").endswith(".Envelope"):
            return record
        row, is_deletion = envelope.stored("after"), envelope.stored("op") == "d"
        if row is None:
            row = envelope.stored("before")
            if self._deletions == TO_TOMBSTONE and is_deletion:
                return self._with_headers(record, envelope).with_value(None, None)
            if row is None or not is_deletion or not self._rewrites:
                return None  # a truncation, which has no row, or a dropped deletion
        if self._route:
            record = record.with_(topic=self._topic(row))
        schema = self._schema(envelope.schema, row.schema)
        values = [row.get(each.name) for each in row.schema.fields] if self._defaults else list(row.values)
        values += [each.value(envelope) for each in self._fields]
        if self._rewrites:
            values.append("true" if is_deletion else "false")
        return self._with_headers(record, envelope).with_value(schema, Struct.trusted(schema, values))

    def _topic(self, row):
        topic = row.get(self._route) if row.schema.field(self._route) is not None else None
        if topic is None:
            raise DataError(f"ExtractNewRecordState: route.by.field={self._route} is not a field of the row, or it is null.")
        return str(topic)

    def _with_headers(self, record, envelope):
        made = (Header(each.name, each.value(envelope), each.schema(envelope.schema)) for each in self._headers)
        return record.with_(headers=(*record.headers, *made)) if self._headers else record

    def _schema(self, envelope, row):
        if not self._fields and not self._rewrites:
            return row
        made = self._schemas.get(envelope)
        if made is None:
            added = [(each.name, each.schema(envelope)) for each in self._fields]
            added += [(self._deleted, Schema.OPTIONAL_STRING)] if self._rewrites else []
            fields = [*((each.name, each.schema) for each in row.fields), *added]
            made = row.with_(fields=[Field(name, at, schema) for at, (name, schema) in enumerate(fields)])
            self._schemas[envelope] = made
        return made


class _Reference:
    """A field of the envelope: `op`, `source.lsn`, `lsn` (of the source), `id` (of the transaction), optionally with `:new name`."""

    def __init__(self, said, prefix):
        field, _, alias = said.strip().partition(":")
        self._path = field.split(".") if "." in field else [field] if field in _OF_ENVELOPE else [_group(field), field]
        self.name = prefix + (alias or field.replace(".", "_"))
        self._said = said

    def value(self, envelope):
        found = envelope
        for name in self._path:
            found = found.get(name) if isinstance(found, Struct) and found.schema.field(name) is not None else None
        return found

    def schema(self, envelope):
        found = envelope
        for name in self._path:
            if found.type != "struct" or found.field(name) is None:
                raise DataError(f"ExtractNewRecordState: '{self._said}' of add.fields or add.headers is not in the envelope.")
            found = found[name]
        return found.with_(optional=True)


def _group(field):
    return "transaction" if field in _OF_TRANSACTION else "source"
