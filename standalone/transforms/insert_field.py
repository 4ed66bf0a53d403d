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
    Option,
    Schema,
    SchemaBuilder,
    SinkRecord,
    Struct,
    timestamp_schema,
)
from standalone.transforms import spark

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
        self._schemas = {}

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            if not isinstance(value, dict):
                raise DataError(f"InsertField needs a map where the {self.where} has no schema; found a {type(value).__name__}.")
            known = ((name, self._known(kind, record)) for kind, name, _ in self.inserted)
            return self.with_part(record, None, {**value, **{name: item for name, item in known if item is not _UNSET}})
        if not isinstance(value, Struct):
            raise DataError(f"InsertField needs a struct; the {self.where} is a {schema.name or schema.type}.")
        updated = self._updated(value.schema)
        struct = Struct(updated)
        for field, stored in zip(value.schema.fields, value.values):
            struct.put(field.name, field.schema.default if stored is None and self.fills_defaults else stored)
        for kind, name, _ in self.inserted:
            item = self._known(kind, record)
            if item is not _UNSET:
                struct.put(name, Instant(int(item)) if kind == "timestamp" else item)
        return self.with_part(record, updated, struct)

    def _known(self, kind, record):
        """What is inserted, or _UNSET where the record does not know it."""
        if kind == "topic":
            return record.topic
        if kind == "partition":
            return _UNSET if record.partition is None else Int32(record.partition)
        if kind == "timestamp":
            return _UNSET if record.timestamp is None else Int64(record.timestamp)
        if kind == "static":
            return self.static
        if not isinstance(record, SinkRecord):
            raise DataError("InsertField cannot insert the offset of a source record: it has none yet. Remove offset.field.")
        return Int64(record.offset)

    def _updated(self, schema):
        updated = self._schemas.get(schema)
        if updated is None:
            builder = SchemaBuilder.struct()
            for field in schema.fields:
                builder.field(field.name, field.schema)
            for kind, name, optional in self.inserted:
                builder.field(name, _SCHEMAS[kind][optional])
            basics = {"name": schema.name, "version": schema.version, "doc": schema.doc, "parameters": schema.parameters}
            updated = self._schemas[schema] = builder.build().with_(**basics)
        return updated

    # Column meaning: the struct again, with more fields.
    def columns(self, columns):
        from pyspark.sql import functions as F

        schema, value = self.part(columns)
        shape = getattr(columns, f"{self.where}_shape")
        known = [self._known_column(kind, columns) for kind, _, _ in self.inserted]
        base = schema or shape
        if value is None or base is None or base.type != "struct" or any(column is None for column in known):
            return None  # nothing to add to, or an error in every row
        # A null keeps its old schema beside rows that have the new one: the rows engine takes such rows.
        failed = [columns.failed, value.isNull()]
        fields = {field.name: value.getField(field.name) for field in base.fields}
        if schema is not None:
            names = [name for _, name, _ in self.inserted]
            if "" in names or len({*fields, *names}) < len(fields) + len(names):
                return None  # no such schema can be built: an error in every row
            for field in schema.fields:
                if self.fills_defaults and field.schema.default is not None:
                    fields[field.name] = F.coalesce(fields[field.name], spark.literal(field.schema.default, field.schema))
                failed.append(spark.misfit(fields[field.name], field.schema))
        for (kind, name, optional), column in zip(self.inserted, known):
            fields[name] = column
            if schema is None and kind in ("partition", "timestamp") or kind == "topic" and not optional:
                failed.append(column.isNull())  # a map would lack the key; a required text would be null
        result = F.struct(*(column.alias(name) for name, column in fields.items()))
        changes = {self.where: result, "failed": spark.any_of(failed)}
        if schema is not None:
            return columns.with_(**changes, **{f"{self.where}_schema": self._updated(schema)})
        shapes = {field.name: field.schema for field in shape.fields}
        shapes.update({name: _SHAPES[kind] for kind, name, _ in self.inserted})
        return columns.with_(**changes, **{f"{self.where}_shape": _shape(shapes)})

    def _known_column(self, kind, columns):
        from pyspark.sql import functions as F

        column = self.static if kind == "static" else getattr(columns, kind)
        if kind == "offset" and column is None:
            return None
        column = column if spark.is_column(column) else F.lit(column)
        return column.cast(spark.spark_type(_SCHEMAS[kind][1]))


_UNSET = object()


def _parsed(text):
    """(name, whether the field is optional) of a field's name with its mark."""
    return (text[:-1], text[-1] == "?") if text[-1:] in ("!", "?") and text else (text, True)


def _shape(schemas):
    builder = SchemaBuilder.struct()
    for name, schema in schemas.items():
        builder.field(name, schema)
    return builder.build()
