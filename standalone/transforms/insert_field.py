"""InsertField: add what is known about the record, or a fixed text, as fields."""

from standalone import (
    BOOLEAN,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    DataError,
    Expression,
    F,
    FieldTransform,
    Instant,
    Int32,
    Int64,
    NoColumns,
    Option,
    Schema,
    SinkRecord,
    Struct,
    timestamp_schema,
)
from standalone.data.arrow import arrow_type
from standalone.data.struct import checked
from standalone.transforms import expressions, field_path
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_copy import PerSchema, StructCopy, left_to_rows, need_struct_schema, struct_schema

_MARKS = "Append `!` to make it a required field, `?` to keep it optional (the default)."
_KINDS = ("topic", "partition", "offset", "timestamp", "static")  # in the order in which the fields are added
_SCHEMAS = {
    "topic": (Schema.STRING, Schema.OPTIONAL_STRING),
    "partition": (Schema.INT32, Schema.OPTIONAL_INT32),
    "offset": (Schema.INT64, Schema.OPTIONAL_INT64),
    "timestamp": (timestamp_schema(), timestamp_schema(optional=True)),
    "static": (Schema.STRING, Schema.OPTIONAL_STRING),
}
_SHAPES = {**{kind: optional for kind, (_, optional) in _SCHEMAS.items()}, "timestamp": Schema.OPTIONAL_INT64}


class InsertField(FieldTransform):
    """Add fields with the record's topic, partition, offset (sinks only) or timestamp, or with a fixed text.

    static.field=host, static.value=web1      {"line": "foo"}  ->  {"line": "foo", "host": "web1"}

    With nested paths the struct or map on the way must be there: where it is missing or null nothing is added.
    """

    java_name = "org.apache.kafka.connect.transforms.InsertField"
    config_def = ConfigDef(
        Option("topic.field", STRING, MEDIUM, f"Field for the topic. {_MARKS}", default=None),
        Option("partition.field", STRING, MEDIUM, f"Field for the partition. {_MARKS}", default=None),
        Option("offset.field", STRING, MEDIUM, f"Field for the offset; only for sinks. {_MARKS}", default=None),
        Option("timestamp.field", STRING, MEDIUM, f"Field for the timestamp. {_MARKS}", default=None),
        Option("static.field", STRING, MEDIUM, f"Field for the fixed text. {_MARKS}", default=None),
        Option("static.value", STRING, MEDIUM, "The fixed text.", default=None),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Put a field's default in the place of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

    def computes(self):
        return False

    def configure(self, config):
        self.static = config["static.value"]
        self.inserted = [(kind, *_parsed(config[f"{kind}.field"])) for kind in _KINDS if config[f"{kind}.field"] is not None]
        if not self.inserted:
            keys = ", ".join(f"{kind}.field" for kind in _KINDS)
            raise ConfigError(f"InsertField has no field to insert. Set at least one of {keys}.")
        if config["static.field"] is not None and self.static is None:
            message = f"is missing, but static.field is '{config['static.field']}'. Say the text to insert."
            raise ConfigError.of({"static.value": message})
        self.fills_defaults = config["replace.null.with.default"]
        paths = [field_path.field_path(name, config) if name else (name,) for _, name, _ in self.inserted]
        self.inserted = [(kind, path[-1], optional) for (kind, _, optional), path in zip(self.inserted, paths)]
        self._items = [(name, self.static if kind == "static" else None, _KNOWN.get(kind)) for kind, name, _ in self.inserted]
        self._plans = PerSchema(self._plan)
        self._is_nested = any(len(path) > 1 for path in paths)
        # By path, at which places of `inserted` stands what is inserted there.
        self._tree = PathTree.of({path: [at for at, each in enumerate(paths) if each == path] for path in paths})
        self._nested = PerSchema(lambda schema: _Nested(self, schema, self._tree))

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            if not isinstance(value, dict):
                raise DataError(f"InsertField needs a map where the {self.where} has no schema; found a {type(value).__name__}.")
            if self._is_nested:
                return self.with_part(record, None, self._inserted_map(value, self._tree, self._known_items(record)))
            inserted = dict(value)
            for name, item, known in self._items:
                if known is not None:
                    item = known(record)
                if item is not _UNSET:
                    inserted[name] = item
            return self.with_part(record, None, inserted)
        if not isinstance(value, Struct):
            raise DataError(f"InsertField needs a struct; the {self.where} is a {schema.name or schema.type}.")
        if self._is_nested:
            nested = self._nested[value.schema]
            return self.with_part(record, nested.target, nested.row(value, self._known_items(record)))
        updated, copy, fields = self._plans.of(value.schema)
        values = copy.values(value)
        for field, (_, item, known) in zip(fields, self._items):
            if known is not None:
                item = known(record)
                item = None if item is _UNSET else self._fitting(field, item)
            values.append(item)
        return self.with_part(record, updated, Struct.trusted(updated, values))

    def _known_items(self, record):
        return [item if known is None else known(record) for _, item, known in self._items]

    def _inserted_map(self, value, tree, items):
        inserted = dict(value)
        for name, below in tree.inside.items():
            if below.said:
                for at in below.said:
                    if items[at] is not _UNSET:
                        inserted[name] = items[at]
            elif inserted.get(name) is not None:
                field_path.need_map(inserted[name], "InsertField", f"field '{name}'")
                inserted[name] = self._inserted_map(inserted[name], below, items)
        return inserted

    def _fitting(self, field, item):
        """What is known, as a field of the struct holds it."""
        if item is None:
            checked(field.schema, None, field.name)
        return Instant(int(item)) if field.schema.logical else item

    def _plan(self, schema):
        """(the schema of the result, how the struct that it grows from is copied, the fields that are new)."""
        inserted = [(name, _SCHEMAS[kind][optional]) for kind, name, optional in self.inserted]
        updated = struct_schema([*((field.name, field.schema) for field in schema.fields), *inserted], schema)
        return updated, StructCopy(schema, schema.fields, self.fills_defaults), updated.fields[len(schema.fields) :]

    # Column meaning: the struct again, with more fields.
    def columns(self, columns):

        if self.is_null(columns):
            return columns
        known, value, has_schema = self.known_struct(columns)
        with left_to_rows(DataError):
            made, target, failed = self._inserted_column(value, known, self._tree, columns, has_schema)
        # A null keeps its old schema beside rows that have the new one: the rows engine takes such rows.
        return self.with_known_part(columns, target, made, [value.isNull(), *failed], has_schema)

    def _inserted_column(self, value, known, tree, columns, has_schema, inside=False):
        """(a struct column with what is inserted into it, its schema or shape, where the rows engine must do it)."""

        def nullable(part):  # Arrow will not have a null struct of fields that never are
            return F.when(value.isNotNull(), part) if inside else part

        fields, failed = {}, []
        for field in known.fields:
            part, schema, below = value.getField(field.name), field.schema, tree.inside.get(field.name)
            if has_schema and self.fills_defaults and schema.default is not None:
                part = nullable(F.coalesce(part, expressions.literal(schema.default, schema)))
            failed.append(expressions.misfit(part, schema) if has_schema else None)
            if below is not None and not below.said:
                need_struct_schema(field, "InsertField")
                present = part.isNotNull()
                part, schema, more = self._inserted_column(part, schema, below, columns, has_schema, inside=True)
                part = F.when(present, part)
                failed += [None if mask is None else present & mask for mask in more]
            fields[field.name] = (part, schema)
        for name, below in tree.inside.items():
            for kind, _, optional in [self.inserted[at] for at in below.said or ()]:
                part = self._known_column(kind, columns)
                if not has_schema and kind in ("partition", "timestamp") or kind == "topic" and not optional:
                    failed.append(part.isNull())  # a map would lack the key; a required text would be null
                if has_schema and name in fields:
                    raise DataError(f"there are two fields '{name}'")
                fields[name] = (nullable(part), _SCHEMAS[kind][optional] if has_schema else _SHAPES[kind])
        target = struct_schema([(name, schema) for name, (_, schema) in fields.items()], known if has_schema else None, inside)
        return F.struct(*(part.alias(name) for name, (part, _) in fields.items())), target, failed

    def _known_column(self, kind, columns):
        column = self.static if kind == "static" else getattr(columns, kind)
        if kind == "offset" and column is None:
            raise NoColumns("it is an error: a record of a source has no offset")
        column = column if isinstance(column, Expression) else F.lit(column)
        return column.cast(arrow_type(_SCHEMAS[kind][1]))


class _Nested:
    """How structs of one schema get new fields, at any depth."""

    def __init__(self, transform, schema, tree, inside=False):
        self._fitting = transform._fitting
        self._copy = StructCopy(schema, schema.fields, transform.fills_defaults)
        self._inner, fields = {}, []
        for field in schema.fields:
            below, made = tree.inside.get(field.name), field.schema
            if below is not None and not below.said:
                need_struct_schema(field, "InsertField")
                nested = self._inner[field.index] = _Nested(transform, field.schema, below, inside=True)
                made = nested.target
            fields.append((field.name, made))
        new = [(name, at) for name, below in tree.inside.items() for at in below.said or ()]
        kinds = [transform.inserted[at] for _, at in new]
        added = [(name, _SCHEMAS[kind][optional]) for (name, _), (kind, _, optional) in zip(new, kinds)]
        self.target = struct_schema([*fields, *added], schema, inside)
        self._new = [(field, at) for field, (_, at) in zip(self.target.fields[len(fields) :], new)]

    def row(self, struct, items):
        values = self._copy.values(struct)
        for at, nested in self._inner.items():
            if values[at] is not None:
                values[at] = nested.row(values[at], items)
        for field, at in self._new:
            values.append(None if items[at] is _UNSET else self._fitting(field, items[at]))
        return Struct.trusted(self.target, values)


_UNSET = object()  # what the record does not know


def _partition(record):
    return _UNSET if record.partition is None else Int32(record.partition)


def _offset(record):
    if not isinstance(record, SinkRecord):
        raise DataError("InsertField cannot insert the offset of a source record: it has none yet. Remove offset.field.")
    return Int64(record.offset)


def _timestamp(record):
    return _UNSET if record.timestamp is None else Int64(record.timestamp)


_KNOWN = {"topic": lambda record: record.topic, "partition": _partition, "offset": _offset, "timestamp": _timestamp}


def _parsed(text):
    """(name, whether the field is optional) of a field's name with its mark."""
    return (text[:-1], text[-1] == "?") if text[-1:] in ("!", "?") and text else (text, True)
