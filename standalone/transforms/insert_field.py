"""InsertField: add fields with the record's metadata or a static value."""

from standalone import (
    BOOLEAN,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    DataError,
    Expression,
    F,
    Fact,
    FieldTransform,
    Int32,
    Int64,
    NoColumns,
    Option,
    Schema,
    SinkRecord,
    timestamp_schema,
)
from standalone.data.arrow import arrow_type
from standalone.stage import UNKNOWN
from standalone.transforms import field_path
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_edit import FieldsAdded

_MARKS = "Append `!` to make it a required field, `?` to keep it optional (the default)."


class InsertField(FieldTransform):
    """Add fields with the record's topic, partition, offset (sinks only) or timestamp, or with a static value.

    static.field=host, static.value=web1      {"line": "foo"}  ->  {"line": "foo", "host": "web1"}

    With a nested path nothing is added if the parent struct or map is missing or null.
    """

    java_name = "org.apache.kafka.connect.transforms.InsertField"
    config_def = ConfigDef(
        Option("topic.field", STRING, MEDIUM, f"Field for the topic. {_MARKS}", default=None),
        Option("partition.field", STRING, MEDIUM, f"Field for the partition. {_MARKS}", default=None),
        Option("offset.field", STRING, MEDIUM, f"Field for the offset; only for sinks. {_MARKS}", default=None),
        Option("timestamp.field", STRING, MEDIUM, f"Field for the timestamp. {_MARKS}", default=None),
        Option("static.field", STRING, MEDIUM, f"Field for the static value. {_MARKS}", default=None),
        Option("static.value", STRING, MEDIUM, "The fixed text.", default=None),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Replace a field's null by its default.", default=True),
        field_path.OWN_SYNTAX,
    )

    def computes(self):
        return False

    def configure(self, config):
        self.static = config["static.value"]
        inserted = [(kind, *_parsed(config[f"{kind}.field"])) for kind in _FACTS if config[f"{kind}.field"] is not None]
        if not inserted:
            keys = ", ".join(f"{kind}.field" for kind in _FACTS)
            raise ConfigError(f"InsertField has no field to insert. Set at least one of {keys}.")
        if config["static.field"] is not None and self.static is None:
            message = f"is missing, but static.field is '{config['static.field']}'. Say the text to insert."
            raise ConfigError.of({"static.value": message})
        paths = [field_path.field_path(name, config) if name else (name,) for _, name, _ in inserted]
        facts = [(path, _FACTS[kind](self.static, optional)) for path, (kind, _, optional) in zip(paths, inserted)]
        tree = PathTree.of({path: [fact for each, fact in facts if each == path] for path in paths})
        self.does(FieldsAdded(tree, "InsertField", self.where, config["replace.null.with.default"]))


class _Fact(Fact):
    type = Schema.OPTIONAL_STRING

    def __init__(self, static, optional):
        self.static = static
        self.optional = optional
        self.schema = self.type.with_(optional=optional)
        self.shape = self.shape or self.type

    def _typed(self, column):
        column = column if isinstance(column, Expression) else F.lit(column)
        return column.cast(arrow_type(self.type))


class _Static(_Fact):
    @property
    def constant(self):
        return self.static

    def column(self, columns, has_schema):
        return self._typed(self.static), None


class _Topic(_Fact):
    def row(self, record):
        return record.topic

    def column(self, columns, has_schema):
        topic = self._typed(columns.topic)
        return topic, None if self.optional else topic.isNull()


class _Partition(_Fact):
    type = Schema.OPTIONAL_INT32

    def row(self, record):
        return UNKNOWN if record.partition is None else Int32(record.partition)

    def column(self, columns, has_schema):
        partition = self._typed(columns.partition)
        return partition, None if has_schema else partition.isNull()


class _Offset(_Fact):
    type = Schema.OPTIONAL_INT64

    def row(self, record):
        if not isinstance(record, SinkRecord):
            raise DataError("InsertField cannot insert the offset of a source record: it has none yet. Remove offset.field.")
        return Int64(record.offset)

    def column(self, columns, has_schema):
        if columns.offset is None:
            raise NoColumns("it is an error: a record of a source has no offset")
        return self._typed(columns.offset), None


class _Timestamp(_Fact):
    type = timestamp_schema(optional=True)
    shape = Schema.OPTIONAL_INT64

    def row(self, record):
        return UNKNOWN if record.timestamp is None else Int64(record.timestamp)

    def column(self, columns, has_schema):
        timestamp = self._typed(columns.timestamp)
        return timestamp, None if has_schema else timestamp.isNull()


# In the order in which the fields are added.
_FACTS = {"topic": _Topic, "partition": _Partition, "offset": _Offset, "timestamp": _Timestamp, "static": _Static}


def _parsed(text):
    """(name, whether the field is optional) from a field name with a `!` or `?` suffix."""
    return (text[:-1], text[-1] == "?") if text[-1:] in ("!", "?") and text else (text, True)
