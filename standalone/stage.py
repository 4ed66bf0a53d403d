"""The stage API: transforms, predicates and converters, each with a row form and an optional columnar form.

The row form is the reference. The columnar form does the same for a whole batch, or *declines* by raising NoColumns with a reason or by
returning None; the rows engine then runs the batch. A columnar form declines whenever an error or the result's type depends on the
data.
"""

import contextlib
from typing import Any, NamedTuple

from standalone.data.arrow import arrow_type
from standalone.data.struct import Struct
from standalone.errors import ConnectError, DataError
from standalone.expression import F, is_expression

_MOST_SCHEMAS = 1000  # cached, for sources whose schema changes constantly
_MOST_TOPICS = 10_000


class NoColumns(Exception):
    """A stage has no columnar form for this batch; the message explains to users why a chain is slow."""


class Stage:
    """Declares its options in `config_def`; is configured once, used by one thread at a time, then closed."""

    config_def = None  # a ConfigDef; None: no options
    java_name = None  # the corresponding Java class
    version = None
    stateless = False  # True: keeps no state between records, so copies may run in other processes

    @classmethod
    def of(cls, props=None, **more):
        """A configured stage; `props` are strings as in a properties file."""
        stage = cls()
        props = {**(props or {}), **more}
        stage.configure(cls.config_def.parse(props) if cls.config_def is not None else props)
        return stage

    def configure(self, config):
        """Receive the parsed options. Must not use Spark: REST validation calls it too."""

    def close(self):
        pass


class Transform(Stage):
    """Changes or drops records."""

    def computes(self):
        """Whether, by its configuration, the columnar form needs Spark for computations rather than only editing the schema. If this is False
        and a batch needs Spark nevertheless, Spark is started for it."""
        return True

    def apply(self, record):
        """Row form: the new record, None to drop it, or a list of records that replace it. Raises DataError if the record is bad."""
        raise NotImplementedError(f"{type(self).__name__} must define apply(record)")

    def columns(self, columns):
        """Columnar form: the new Columns. Raises NoColumns, or returns None, to be run by rows."""
        return None

    @property
    def has_columns(self):
        """Whether the class defines a columnar form."""
        return type(self).columns is not Transform.columns


class Function:
    """A function of a value in two equivalent forms: by row, and as a Spark expression.

    An instance is made for one schema of arguments; `schema` is the schema of its results.
    """

    schema = None
    refuses_null = False  # True: null is an error, so `row` is called for nulls too
    keeps_nulls = False  # True: the expression returns null for null without a condition around it

    def row(self, value):
        """The result for a value that is not null. Raises DataError."""
        raise NotImplementedError(f"{type(self).__name__} must define row(value)")

    def column(self, column):
        """(the expression, a condition for the rows that only `row` can do or None); nulls do not count. Raises NoColumns."""
        raise NoColumns(f"{type(self).__name__} has no columnar form")


UNKNOWN = object()  # a fact that is missing from the record: a map then lacks the key, a struct has a null


class Fact:
    """A property of a record other than the changed value, such as its topic, in two forms like a Function."""

    schema = None
    shape = None  # its shape if there is no schema
    constant = None  # the value, if it is the same for all records

    def row(self, record):
        """The value, or UNKNOWN."""
        raise NotImplementedError(f"{type(self).__name__} must define row(record)")

    def column(self, columns, has_schema):
        """(the expression, a condition for the rows that only `row` can do or None). Raises NoColumns."""
        raise NoColumns(f"{type(self).__name__} has no columnar form")


class OfTopic(Fact):
    """A Function applied to the record's topic. Topics are few: each is computed once, in columns only if a batch has several topics."""

    def __init__(self, function):
        self.function = function
        self.schema = function.schema
        self._made = {}

    def row(self, record):
        topic = record.topic
        made = self._made.get(topic, UNKNOWN)
        if made is UNKNOWN:
            if len(self._made) >= _MOST_TOPICS:
                self._made.clear()
            made = self._made[topic] = self.function.row(topic)
        return made

    def column(self, columns, has_schema):
        topic = columns.topic
        if not is_expression(topic):
            with left_to_rows(DataError):
                return self.function.row(topic), None
        made, failed = self.function.column(topic)
        return made, either(failed, topic.isNull() if self.function.refuses_null else None)


class Change:
    """A transform's change of a field, or of the whole key or value, for all schemas."""

    reads_record = False  # True: `bare` and `row` take the record as second argument, `column` the Columns
    by_class = {}  # faster alternatives to `bare` by the value's class: {class: function}

    def of(self, schema, has_schema=True):
        """The Function for values of a schema; or, if `has_schema` is False, of a shape, which is not validated.

        Raises DataError if no value of it can be changed, NoColumns if schemaless values can be changed by rows only.
        """
        raise NotImplementedError(f"{type(self).__name__} must define of(schema)")

    def bare(self, value):
        """Change a schemaless value, which may be null."""
        raise NotImplementedError(f"{type(self).__name__} must define bare(value)")


class PerSchema(dict):
    """A cache of results per schema: `per_schema[schema]`."""

    def __init__(self, make):
        super().__init__()
        self._make = make
        self._last = self._found = None

    def of(self, schema):
        """Like [schema], but faster for the most recent schema: most batches have only one."""
        if schema is not self._last:
            self._found = self[schema]
            self._last = schema
        return self._found

    def __missing__(self, schema):
        if len(self) >= _MOST_SCHEMAS:
            self.clear()
        made = self[schema] = self._make(schema)
        return made


def either(condition, other):
    """Two conditions joined by "or"; None stands for no condition."""
    return other if condition is None else condition if other is None else condition | other


@contextlib.contextmanager
def left_to_rows(*errors):
    """Errors that occur for every value: decline, so that the rows engine raises them."""
    try:
        yield
    except errors as error:
        raise NoColumns(f"it is an error: {error}") from error


# How a FieldTransform with a declared change treats a null key or value.
NULL_PASSES = "passes"  # the record stays unchanged
NULL_IS_CHANGED = "is changed"  # it gets the schema of changed values
NULL_IS_REFUSED = "is refused"  # it is an error
NULL_IS_GIVEN = "is given"  # the change is applied to nulls as to values


class FieldTransform(Transform):
    """A transform of the key or the value. The class itself is abstract; use `X.Key` and `X.Value`.

    Either `configure` declares the change by `self.does(change)`, which implements both forms, or the class defines `apply` and `columns`.
    It reads and writes `self.part(record)` and need not know which part that is.
    """

    where = None  # "key" or "value"
    nulls = NULL_PASSES
    _functions = None  # of the declared change, if any

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.where is None:
            for name in ("Key", "Value"):
                java_name = f"{cls.java_name}${name}" if cls.java_name else None
                body = {"where": name.lower(), "java_name": java_name, "__module__": cls.__module__, "__doc__": cls.__doc__}
                part = type(name, (cls,), body)
                part.__qualname__ = f"{cls.__qualname__}.{name}"
                setattr(cls, name, part)

    def does(self, change):
        """Declare the change of the key or value."""
        self.change = change
        self._functions = PerSchema(change.of)
        self._bare = change.bare
        self._reads_record = change.reads_record

    def apply(self, record):
        if self._functions is None:
            return super().apply(record)
        # part() inlined, because this runs for every record.
        schema, value = (record.value_schema, record.value) if self.where == "value" else (record.key_schema, record.key)
        if value is None and self.nulls is not NULL_IS_GIVEN:
            return self._applied_to_null(record, schema)
        if schema is None:
            return self.with_part(record, None, self._bare(value, record) if self._reads_record else self._bare(value))
        if value.__class__ is Struct:
            schema = value.schema
        elif schema.type == "struct" and value is not None:
            raise DataError(f"{self.title} needs a struct where the {self.where} has a schema; found a {type(value).__name__}.")
        function = self._functions.of(schema)
        return self.with_part(record, function.schema, function.row(value, record) if self._reads_record else function.row(value))

    def _applied_to_null(self, record, schema):
        if self.nulls is NULL_IS_REFUSED:
            kind = "map where the {} has no schema" if schema is None else "struct where the {} has a schema"
            raise DataError(f"{self.title} needs a {kind.format(self.where)}; found null.")
        if schema is None or self.nulls is NULL_PASSES:
            return record
        function = self._functions.of(schema)
        return self.with_part(record, function.schema, function.row(None) if function.refuses_null else None)

    def columns(self, columns):
        if self._functions is None:
            return None
        if self.nulls is NULL_PASSES and self.is_null(columns):
            return columns
        known, value, has_schema = self.known_part(columns)
        with left_to_rows(ConnectError):
            function = self.change.of(known, has_schema)
            if self.nulls is NULL_IS_CHANGED and self.is_null(columns):
                return self.with_known_part(columns, function.schema, F.lit(None).cast(arrow_type(function.schema)), [], has_schema)
            made, failed = function.column(value, columns) if self._reads_record else function.column(value)
        if self.nulls is NULL_IS_GIVEN:
            return self.with_known_part(columns, function.schema, made, [failed], has_schema)
        # A null keeps the old schema while other rows have the new one. Among structs it would also force Spark to transfer whole structs
        # rather than only the changed fields. So the rows engine handles such rows.
        if self.nulls is not NULL_IS_CHANGED or known.type == "struct":
            return self.with_known_part(columns, function.schema, made, [value.isNull(), failed], has_schema)
        failed = None if failed is None else value.isNotNull() & failed
        return self.with_known_part(columns, function.schema, made, [failed], has_schema)

    @property
    def title(self):
        """The name of the transform in its errors."""
        return type(self).__qualname__.split(".")[0]

    def part(self, record):
        """(schema, value) of the key or the value. Also of Columns: (schema, expression)."""
        if self.where == "key":
            return record.key_schema, record.key
        return record.value_schema, record.value

    def known_part(self, columns):
        """(the schema or shape of all rows of Columns, expression, whether it is a schema).

        Raises NoColumns if neither is known.
        """
        schema, column = self.part(columns)
        known = schema or getattr(columns, f"{self.where}_shape")
        if known is None or column is None:
            raise NoColumns(f"the {self.where} has no schema, and not all rows are known to have one shape")
        return known, column, schema is not None

    def known_struct(self, columns):
        """The same for a struct; declines if it is no struct, which is an error by rows."""
        known, column, has_schema = self.known_part(columns)
        if known.type != "struct":
            raise NoColumns(f"the {self.where} is not a struct")
        return known, column, has_schema

    def with_known_part(self, columns, known, column, failed, has_schema):
        """Columns with a new key or value: `known` is its schema or shape. `failed` is a list of columns and Nones."""
        names = ("schema", "shape") if has_schema else ("shape", "schema")
        parts = {f"{self.where}_{names[0]}": known, f"{self.where}_{names[1]}": None, self.where: column}
        for mask in failed:
            parts["failed"] = either(parts.get("failed", columns.failed), mask)
        return columns.with_(**parts)

    def is_null(self, columns):
        """Whether this part is known to be null in every row."""
        return self.where in columns.nulls

    def with_part(self, record, schema, value):
        if self.where == "key":
            return record.with_key(schema, value)
        return record.with_value(schema, value)


class Router(Transform):
    """A transform that changes the topic: `configure` declares the new topic by `self.routes(fact)`."""

    def routes(self, fact):
        self.fact = fact

    def apply(self, record):
        topic = self.fact.row(record)
        return record if topic == record.topic else record.with_(topic=topic)

    def columns(self, columns):
        topic, failed = self.fact.column(columns, True)
        return columns.with_(topic=topic, failed=either(columns.failed, failed))


class HeaderTransform(Transform):
    """A transform that applies the same HeaderEdit to all records: `edit`, which `configure` sets."""

    edit: Any = None

    def computes(self):
        return False

    def apply(self, record):
        return record.with_(headers=self.edit.of(record.headers))

    def columns(self, columns):
        return columns.with_header_edits(self.edit)


class QueryTransform(Transform):
    """A transform that is an SQL statement over the records of a batch. The engine that runs the chain runs the statement in Spark."""

    statement = None

    def apply(self, record):
        raise ConnectError(f"{type(self).__name__} runs only in a chain that has Spark.")


class Predicate(Stage):
    """Decides whether a transform applies to a record. Either `configure` declares a boolean Fact by `self.asks(fact)`, or the class defines
    `test` and `columns`.
    """

    fact: Any = None

    def asks(self, fact):
        self.fact = fact

    def test(self, record):
        if self.fact is None:
            raise NotImplementedError(f"{type(self).__name__} must define test(record)")
        return self.fact.row(record)

    def columns(self, columns):
        """Columnar form: a condition (an Expression that is never null), or a plain bool for the whole batch. Raises NoColumns, or
        returns None, to be run by rows."""
        return None if self.fact is None else self.fact.column(columns, True)[0]

    @property
    def has_columns(self):
        """Whether there is a columnar form at all."""
        return self.fact is not None or type(self).columns is not Predicate.columns


class HeaderEdit(NamedTuple):
    """An edit of the headers of all rows: drop the names in `dropped`, or add `added`.

    The value of the added Header may be an Expression of its schema, or of the Schema `shape` if it is schemaless. `where` is a condition
    that selects the rows; None selects all.
    """

    dropped: frozenset = frozenset()
    added: Any = None
    shape: Any = None
    where: Any = None

    def of(self, headers):
        """The headers of a record after the edit, if it applies to all rows with a constant value."""
        if self.added is not None:
            return (*headers, self.added)
        return tuple(header for header in headers if header.name not in self.dropped)

    def tells_of(self, name):
        """Whether a row has a header of this name after the edit; None if the edit does not affect it."""
        return True if self.added is not None and self.added.name == name else False if name in self.dropped else None


class Columns:
    """A batch as columns, the columnar counterpart of a record. Immutable; `with_` returns a changed copy.

    topic, partition, timestamp, offset, key, value are Expressions of pyspark.sql.functions (`F`); topic and partition are plain values if
    all rows have the same. `offset` is None for a source. A schema of None means schemaless: the fields are then known from `key_shape` or
    `value_shape`, a Schema that fits every row of this batch and is not part of the result. `nulls` names those of "key" and "value" that
    are null in every row.
    `keep` is a condition, or None to keep all; `failed` marks the rows that the rows engine must rerun for the exact error.
    `header_names` is a column of lists of the rows' original header names, or None if no row has headers;
    `header_edits` is a tuple of the HeaderEdits so far, which the pipeline applies in order after the job.
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
    """Converts between values with schemas and serialized bytes. One instance converts keys or values, not both.

    A converter can access the record's serialized headers, a list of (name, bytes). With `writes_headers` from_connect receives this list as
    `headers` and may append to it; encode receives a list of them. With `reads_headers` to_connect and decode receive it, or None.
    """

    is_key = False
    writes_headers = reads_headers = False

    @classmethod
    def of(cls, props=None, is_key=False, **more):
        converter = cls()
        converter.is_key = is_key
        props = {"converter.type": "key" if is_key else "value", **(props or {}), **more}
        converter.configure(cls.config_def.parse(props) if cls.config_def is not None else props)
        return converter

    def from_connect(self, topic, schema, value):
        """Row form, to the log: bytes, or None. Raises DataError."""
        raise NotImplementedError(f"{type(self).__name__} must define from_connect")

    def to_connect(self, topic, data):
        """Row form, from the log: (schema, value) of bytes or None. Raises DataError or SerializationError."""
        raise NotImplementedError(f"{type(self).__name__} must define to_connect")

    def written(self, topic, schema, value, headers):
        """Call from_connect, with the list of headers if it takes one."""
        return self.from_connect(topic, schema, value, headers) if self.writes_headers else self.from_connect(topic, schema, value)

    def read(self, topic, data, headers):
        """Call to_connect, with the list of headers if it takes one."""
        return self.to_connect(topic, data, headers) if self.reads_headers else self.to_connect(topic, data)

    def encode(self, topic, schema, column, count, headers=None):
        """Columnar form, to the log: (ByteColumn or None, failed rows or None), or None to be run by rows.

        `column` is a column as in data/column.py. Failed rows are an array of row numbers: the rows engine reruns them.
        """
        return None

    def decode(self, topic, column, headers=None):
        """Columnar form, from the log: (schema, column, failed rows or None), or None to be run by rows.

        `column` is a ByteColumn and never None: the row form decodes a column of nulls, once.
        """
        return None


class HeaderConverter(Stage):
    """Converts between headers and bytes."""

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
        """From the log: (schema, value), or None if there is no value."""
        raise NotImplementedError(f"{type(self).__name__} must define to_header")


class StageFailed(ConnectError):
    """One record failed in one stage of the chain: its row, the stage, and the cause (`__cause__` and `error`)."""

    def __init__(self, stage, name, row, error, record=None, class_name=None):
        super().__init__(f"{stage} {name}: {error}" if name else f"{stage}: {error}")
        self.stage = stage  # TRANSFORMATION, KEY_CONVERTER, VALUE_CONVERTER or HEADER_CONVERTER, as in Connect
        self.name = name  # the alias of the transform, or the class of the converter
        self.class_name = class_name or name
        self.row = row
        self.error = error
        self.record = record
        self.java_class = getattr(error, "java_class", self.java_class)
