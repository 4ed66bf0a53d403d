"""The public names, each from where it is defined. `from standalone import X` is how everybody imports them."""

# ruff: noqa: F401

from standalone.config import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    REQUIRED,
    SHORT,
    STRING,
    ConfigDef,
    Option,
    Password,
    all_of,
    at_least,
    between,
    case_insensitive_one_of,
    non_empty,
    non_empty_list,
    one_of,
    regex_compiles,
)
from standalone.connector import (
    Connector,
    ConnectorTransactionBoundaries,
    ErrantRecordReporter,
    ExactlyOnceSupport,
    OffsetReader,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    TransactionContext,
)
from standalone.data.batch import SinkBatch, SourceBatch
from standalone.data.java_text import java_text
from standalone.data.record import Header, Record, SinkRecord, SourceRecord
from standalone.data.scalars import BigInt, Float32, Float64, Instant, Int8, Int16, Int32, Int64, to_float32
from standalone.data.schema import Field, Schema, SchemaBuilder, date_schema, decimal_schema, time_schema, timestamp_schema
from standalone.data.struct import Struct
from standalone.errors import ConfigError, ConnectError, DataError, RetriableError, SerializationError
from standalone.expression import Expression, F, float_text, misfit_within
from standalone.files import check_allowed_file, open_allowed
from standalone.provider import ConfigProvider, Values
from standalone.stage import (
    NULL_IS_CHANGED,
    NULL_IS_GIVEN,
    NULL_IS_REFUSED,
    NULL_PASSES,
    Change,
    Columns,
    Converter,
    Fact,
    FieldTransform,
    Function,
    HeaderConverter,
    HeaderEdit,
    NoColumns,
    Predicate,
    QueryTransform,
    Transform,
)
from standalone.wire import ByteColumn
