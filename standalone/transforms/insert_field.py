"""InsertField: add what is known about the record, or a fixed text, as fields."""

from standalone import (
    BOOLEAN,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    DataError,
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
from standalone.data.struct import checked
from standalone.transforms import spark
from standalone.transforms.struct_copy import PerSchema, StructCopy, left_to_rows, struct_schema

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
    )

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
        self._items = [(name, self.static if kind == "static" else None, _KNOWN.get(kind)) for kind, name, _ in self.inserted]
        self._plans = PerSchema(self._plan)

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            if not isinstance(value, dict):
                raise DataError(f"InsertField needs a map where the {self.where} has no schema; found a {type(value).__name__}.")
            inserted = dict(value)
            for name, item, known in self._items:
                if known is not None:
                    item = known(record)
                if item is not _UNSET:
                    inserted[name] = item
            return self.with_part(record, None, inserted)
        if not isinstance(value, Struct):
            raise DataError(f"InsertField needs a struct; the {self.where} is a {schema.name or schema.type}.")
        updated, copy, fields = self._plans.of(value.schema)
        values = copy.values(value)
        for field, (_, item, known) in zip(fields, self._items):
            if known is not None:
                item = known(record)
                item = None if item is _UNSET else self._fitting(field, item)
            values.append(item)
        return self.with_part(record, updated, Struct.trusted(updated, values))

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
        from pyspark.sql import functions as F

        if self.is_null(columns):
            return columns
        known, value, has_schema = self.known_struct(columns)
        # A null keeps its old schema beside rows that have the new one: the rows engine takes such rows.
        failed = [value.isNull()]
        fields = {field.name: value.getField(field.name) for field in known.fields}
        if has_schema:
            with left_to_rows(DataError):
                target = self._plans[known][0]
            for field in known.fields:
                if self.fills_defaults and field.schema.default is not None:
                    fields[field.name] = F.coalesce(fields[field.name], spark.literal(field.schema.default, field.schema))
                failed.append(spark.misfit(fields[field.name], field.schema))
        else:
            shapes = {field.name: field.schema for field in known.fields}
            shapes.update({name: _SHAPES[kind] for kind, name, _ in self.inserted})
            target = struct_schema(shapes.items())
        for kind, name, optional in self.inserted:
            column = fields[name] = self._known_column(kind, columns)
            if not has_schema and kind in ("partition", "timestamp") or kind == "topic" and not optional:
                failed.append(column.isNull())  # a map would lack the key; a required text would be null
        made = F.struct(*(column.alias(name) for name, column in fields.items()))
        return self.with_known_part(columns, target, made, failed, has_schema)

    def _known_column(self, kind, columns):
        from pyspark.sql import functions as F

        column = self.static if kind == "static" else getattr(columns, kind)
        if kind == "offset" and column is None:
            raise NoColumns("it is an error: a record of a source has no offset")
        column = column if spark.is_column(column) else F.lit(column)
        return column.cast(spark.spark_type(_SCHEMAS[kind][1]))


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
