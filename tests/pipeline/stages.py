"""Stages as a stranger would write them: made for the pipeline's tests, out of public names alone."""

import json

from standalone import Converter, DataError, F, Header, HeaderConverter, Predicate, Schema, SchemaBuilder, Struct, Transform


class TextConverter(Converter, HeaderConverter):
    """Strings as UTF-8, in both forms. Refuses strings that begin with "unreadable" (from the log) or "unwritable" (to it)."""

    stateless = True

    def from_connect(self, topic, schema, value):
        if value is None:
            return None
        if isinstance(value, str) and value.startswith("unwritable"):
            raise DataError("unwritable")
        return (value if isinstance(value, str) else repr(value)).encode()

    def to_connect(self, topic, data):
        if data is None:
            return Schema.OPTIONAL_STRING, None
        if data.startswith(b"unreadable"):
            raise DataError("unreadable")
        return Schema.OPTIONAL_STRING, data.decode("utf-8", "replace")

    def from_header(self, topic, name, schema, value):
        return self.from_connect(topic, schema, value)

    def to_header(self, topic, name, data):
        return self.to_connect(topic, data)

    def encode(self, topic, schema, column, count):
        from standalone import ByteColumn

        if column is None:
            return None, None
        if schema is None or schema.type != "string":
            return None
        texts = column if isinstance(column, ByteColumn) else ByteColumn.from_arrow(column) if not isinstance(column, list) else None
        if texts is None:
            return None
        bad = [row for row, text in enumerate(texts) if text is not None and text.startswith(b"unwritable")]
        return texts, bad or None

    def decode(self, topic, column):
        bad = [row for row, data in enumerate(column) if data is not None and data.startswith(b"unreadable")]
        return Schema.OPTIONAL_STRING, column, bad or None


class FieldsConverter(Converter):
    """Structs of strings as JSON objects; has no columnar form."""

    def from_connect(self, topic, schema, value):
        if value is None:
            return None
        return json.dumps(value.to_dict() if isinstance(value, Struct) else value, default=repr).encode()

    def to_connect(self, topic, data):
        if data is None:
            return None, None
        fields = json.loads(data)
        schema = SchemaBuilder.struct()
        for name in fields:
            schema.field(name, Schema.OPTIONAL_STRING)
        schema = schema.build()
        return schema, Struct(schema, fields)


class Louder(Transform):
    """Strings with a mark: something to compute."""

    stateless = True

    def apply(self, record):
        if record.value is None:
            return record
        return record.with_(value=record.value + "!")

    def columns(self, columns):
        if columns.value is None or columns.value_schema.type != "string":
            return None
        return columns.with_(value=F.concat(columns.value, F.lit("!")))


class Wrap(Transform):
    """{"text": value, "mark": ...}: nothing to compute."""

    schema = SchemaBuilder.struct().field("text", Schema.OPTIONAL_STRING).field("mark", Schema.STRING).build()

    def apply(self, record):
        return record.with_(value_schema=self.schema, value=Struct(self.schema, {"text": record.value, "mark": "m"}))

    def columns(self, columns):
        if columns.value is None or columns.value_schema.type != "string":
            return None
        return columns.with_(value_schema=self.schema, value=F.struct(columns.value.alias("text"), F.lit("m").alias("mark")))


class Unwrap(Transform):
    """The field "text" of a struct."""

    def apply(self, record):
        return record.with_(value_schema=Schema.OPTIONAL_STRING, value=record.value["text"])

    def columns(self, columns):
        if columns.value is None or columns.value_schema.type != "struct":
            return None
        return columns.with_(value_schema=Schema.OPTIONAL_STRING, value=columns.value.getField("text"))


class RefuseBad(Transform):
    """Fails on values that begin with "bad"; marks them in its columnar form."""

    def apply(self, record):
        if record.value is not None and record.value.startswith("bad"):
            raise DataError(f"{record.value!r} is bad")
        return record

    def columns(self, columns):
        if columns.value is None or columns.value_schema.type != "string":
            return None
        return columns.with_(failed=F.coalesce(columns.value.startswith("bad"), F.lit(False)))


class DropOdd(Transform):
    """Drops values that begin with "odd"."""

    def apply(self, record):
        return None if record.value is not None and record.value.startswith("odd") else record

    def columns(self, columns):
        if columns.value is None or columns.value_schema.type != "string":
            return None
        return columns.with_(keep=~F.coalesce(columns.value.startswith("odd"), F.lit(False)))


class RouteByFirst(Transform):
    """The topic becomes "t-" and the first letter of the value, the partition its length modulo 3 (none where it is 0)."""

    def apply(self, record):
        text = record.value or "-"
        return record.with_(topic="t-" + text[:1], partition=len(text) % 3 or None)

    def columns(self, columns):
        if columns.value is None or columns.value_schema.type != "string":
            return None
        text = F.when(F.coalesce(columns.value, F.lit("")) == "", F.lit("-")).otherwise(columns.value)
        parts = F.length(text) % 3
        return columns.with_(topic=F.concat(F.lit("t-"), F.substring(text, 1, 1)), partition=F.when(parts != 0, parts.cast("int")))


class Rename(Transform):
    """Another topic for all."""

    def apply(self, record):
        return record.with_(topic="renamed")

    def columns(self, columns):
        return columns.with_(topic="renamed")


class OnlyRows(Transform):
    """Has no columnar form: turns strings around; trips over what is not text."""

    stateless = True

    def apply(self, record):
        return record.with_(value=record.value[::-1])


class Number(Transform):
    """Counts up what it has seen, in a header; has no columnar form and keeps state."""

    def __init__(self):
        self.seen = 0

    def apply(self, record):
        self.seen += 1
        return record.with_(headers=(*record.headers, Header("n", str(self.seen), Schema.STRING)))


class Broken(Transform):
    """A columnar form that Spark refuses."""

    def apply(self, record):
        return record

    def columns(self, columns):
        return columns.with_(value=F.col("there is no such column"))


class BrokenJob(Transform):
    """A columnar form that compiles and then fails in the job."""

    def apply(self, record):
        return record

    def columns(self, columns):
        if columns.value is None:
            return None
        return columns.with_(value=F.when(F.length(columns.value) > 0, F.raise_error(F.lit("the job fails")).cast("string")).otherwise(columns.value))


class StartsWith(Predicate):
    def __init__(self, start="y"):
        self.start = start

    def test(self, record):
        return record.value is not None and record.value.startswith(self.start)

    def columns(self, columns):
        if columns.value is None or columns.value_schema.type != "string":
            return None
        return F.coalesce(columns.value.startswith(self.start), F.lit(False))


class TopicIs(Predicate):
    def __init__(self, topic):
        self.topic = topic

    def test(self, record):
        return record.topic == self.topic

    def columns(self, columns):
        return columns.topic == self.topic
