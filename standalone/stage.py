"""What a stage is: a transform, a predicate or a converter, each with a row meaning and, where it can, a column meaning.

The row meaning is the truth. The column meaning does the same for a whole batch at once, or *declines* by raising NoColumns with a
reason or by returning None, and then the rows engine serves. A column meaning declines wherever an error, or a result's type, hangs
on the data.
"""

from typing import Any, NamedTuple

from standalone.errors import ConnectError


class NoColumns(Exception):
    """A stage has no column meaning for this batch; says why, for people who ask why a chain is slow."""


class Stage:
    """Declares its options in `config_def`, is configured once, is used by one thread at a time, and is closed."""

    config_def = None  # ConfigDef; None takes no options
    java_name = None  # the class a Java user knows it by
    version = None
    stateless = False  # True where copies in other processes do the same: they remember nothing from one record to the next

    @classmethod
    def of(cls, props=None, **more):
        """A configured stage; `props` are texts as in a properties file."""
        stage = cls()
        props = {**(props or {}), **more}
        stage.configure(cls.config_def.parse(props) if cls.config_def is not None else props)
        return stage

    def configure(self, config):
        """Take the parsed options. Never touches Spark: it also runs to validate a REST call."""

    def close(self):
        pass


class Transform(Stage):
    """Makes another record of a record, or drops it."""

    def computes(self):
        """Whether, by its configuration, its column meaning asks Spark to compute, and does not just edit the schema. Where it says False and
        a batch needs Spark all the same, Spark is started then."""
        return True

    def apply(self, record):
        """Row meaning: the new record, None to drop it, or a list of records in its place. Raises DataError where the record is bad."""
        raise NotImplementedError(f"{type(self).__name__} must define apply(record)")

    def columns(self, columns):
        """Column meaning: the new Columns. Raises NoColumns, or returns None, to be run by rows."""
        return None


class FieldTransform(Transform):
    """A transform that works on the key or on the value: the class itself is abstract, `X.Key` and `X.Value` are the two it stands for.

    It reads and writes `self.part(record)` and never asks which of the two it is.
    """

    where = None  # "key" or "value"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.where is None:
            for name in ("Key", "Value"):
                java_name = f"{cls.java_name}${name}" if cls.java_name else None
                body = {"where": name.lower(), "java_name": java_name, "__module__": cls.__module__, "__doc__": cls.__doc__}
                part = type(name, (cls,), body)
                part.__qualname__ = f"{cls.__qualname__}.{name}"
                setattr(cls, name, part)

    def part(self, record):
        """(schema, value) of the key or the value. Also of Columns: (schema, expression)."""
        if self.where == "key":
            return record.key_schema, record.key
        return record.value_schema, record.value

    def known_part(self, columns):
        """(what all rows of Columns are known to be: their schema or their shape, expression, whether it is a schema).

        Raises NoColumns where nothing is known.
        """
        schema, column = self.part(columns)
        known = schema or getattr(columns, f"{self.where}_shape")
        if known is None or column is None:
            raise NoColumns(f"the {self.where} has no schema, and not all rows are known to have one shape")
        return known, column, schema is not None

    def known_struct(self, columns):
        """The same, of a struct; an error by rows where it is none."""
        known, column, has_schema = self.known_part(columns)
        if known.type != "struct":
            raise NoColumns(f"the {self.where} is no struct")
        return known, column, has_schema

    def with_known_part(self, columns, known, column, failed, has_schema):
        """Columns with another key or value: `known` is its schema, or its shape. `failed` is a list of columns, or None among them."""
        names = ("schema", "shape") if has_schema else ("shape", "schema")
        parts = {f"{self.where}_{names[0]}": known, f"{self.where}_{names[1]}": None, self.where: column}
        for mask in failed:
            if mask is not None:
                columns = columns.with_(failed=mask if columns.failed is None else columns.failed | mask)
        return columns.with_(**parts)

    def is_null(self, columns):
        """Whether Columns are known to have a null there in every row."""
        return self.where in columns.nulls

    def with_part(self, record, schema, value):
        if self.where == "key":
            return record.with_key(schema, value)
        return record.with_value(schema, value)


class QueryTransform(Transform):
    """A transform that is an SQL statement over the records of a batch: whoever runs the chain runs the statement, in Spark."""

    statement = None

    def apply(self, record):
        raise ConnectError(f"{type(self).__name__} runs only in a chain that has Spark.")


class Predicate(Stage):
    """Says whether a transform applies to a record."""

    def test(self, record):
        raise NotImplementedError(f"{type(self).__name__} must define test(record)")

    def columns(self, columns):
        """Column meaning: a condition (an Expression that is never null), or a plain bool for the whole batch. Raises NoColumns, or
        returns None, to be run by rows."""
        return None


class HeaderEdit(NamedTuple):
    """What a column meaning does to the headers of every row: take off those of the names in `dropped`, or add `added`.

    The value of the added Header may be an Expression, of its schema, or of the Schema `shape` where it carries none. `where` is a
    condition that says for which rows the edit is; None is for all.
    """

    dropped: frozenset = frozenset()
    added: Any = None
    shape: Any = None
    where: Any = None


class Columns:
    """A batch as columns: the column meaning's view of a record. Never changes; `with_` makes another.

    topic, partition, timestamp, offset, key, value are Expressions, said in the words of pyspark.sql.functions (`F`); topic and partition are
    plain values where all rows have one. `offset` is None for a source. A schema of None means schemaless: the column meaning knows the
    fields then from `key_shape` or `value_shape`, a Schema that every row of this batch provably has and that the result does not carry.
    `nulls` names those of "key" and "value" that are null in every row.
    `keep` is a condition, or None to keep all; `failed` marks the rows that the rows engine must do again, for the exact error.
    `header_names` is a column of lists with the names of the headers that the rows came with, or None where no row has any;
    `header_edits` is a tuple of the HeaderEdits so far, which the pipeline does after the job, in their order.
    """

    __slots__ = (
        "topic",
        "partition",
        "timestamp",
        "timestamp_type",
        "offset",
        "key",
        "key_schema",
        "key_shape",
        "value",
        "value_schema",
        "value_shape",
        "nulls",
        "keep",
        "failed",
        "header_names",
        "header_edits",
    )

    def __init__(self, **parts):
        for name in self.__slots__:
            setattr(self, name, parts.pop(name, None))
        self.header_edits = self.header_edits or ()
        self.nulls = self.nulls or frozenset()
        if parts:
            raise TypeError(f"columns have no {', '.join(parts)}")

    def with_(self, **changes):
        changes.setdefault("nulls", self.nulls - changes.keys())
        return Columns(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})

    def with_header_edits(self, *edits):
        return self.with_(header_edits=(*self.header_edits, *edits))


class Converter(Stage):
    """Between values with schemas and the bytes in the log. One instance serves keys or values, not both."""

    is_key = False

    @classmethod
    def of(cls, props=None, is_key=False, **more):
        converter = cls()
        converter.is_key = is_key
        props = {"converter.type": "key" if is_key else "value", **(props or {}), **more}
        converter.configure(cls.config_def.parse(props) if cls.config_def is not None else props)
        return converter

    def from_connect(self, topic, schema, value):
        """Row meaning, to the log: bytes, or None. Raises DataError."""
        raise NotImplementedError(f"{type(self).__name__} must define from_connect")

    def to_connect(self, topic, data):
        """Row meaning, from the log: (schema, value) of bytes or None. Raises DataError or SerializationError."""
        raise NotImplementedError(f"{type(self).__name__} must define to_connect")

    def encode(self, topic, schema, column, count):
        """Column meaning, to the log: (ByteColumn or None, rows it could not do or None), or None to be run by rows.

        `column` is a column as in data/batch.py. Rows it could not do are an array of row numbers: the rows engine does them again.
        """
        return None

    def decode(self, topic, column):
        """Column meaning, from the log: (schema, column, rows it could not do or None), or None to be run by rows.

        `column` is a ByteColumn; it is never None: a column of nulls is decoded by the row meaning, once.
        """
        return None


class HeaderConverter(Stage):
    """Between headers and bytes."""

    @classmethod
    def of(cls, props=None, **more):
        converter = cls()
        props = {"converter.type": "header", **(props or {}), **more}
        converter.configure(cls.config_def.parse(props) if cls.config_def is not None else props)
        return converter

    def from_header(self, topic, name, schema, value):
        """To the log: bytes or None."""
        raise NotImplementedError(f"{type(self).__name__} must define from_header")

    def to_header(self, topic, name, data):
        """From the log: (schema, value), or None where there is nothing to say."""
        raise NotImplementedError(f"{type(self).__name__} must define to_header")


class StageFailed(ConnectError):
    """One record failed in one stage of the chain: which row, where, and why (`__cause__` and `error`)."""

    def __init__(self, stage, name, row, error, record=None, class_name=None):
        super().__init__(f"{stage} {name}: {error}" if name else f"{stage}: {error}")
        self.stage = stage  # TRANSFORMATION, KEY_CONVERTER, VALUE_CONVERTER or HEADER_CONVERTER, as in Connect
        self.name = name  # the alias of the transform, or the class of the converter
        self.class_name = class_name or name
        self.row = row
        self.error = error
        self.record = record
        self.java_class = getattr(error, "java_class", self.java_class)
