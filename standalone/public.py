"""The public names, imported from their modules. Use `from standalone import X`.

JsonConverter is for connectors that write JSON themselves, tls_context for connectors that use TLS: both are loaded on first use.
"""

# ruff: noqa: F401

from typing import TYPE_CHECKING

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
from standalone.data.assemble import NOTHING, Part, assembled
from standalone.data.batch import SinkBatch, SourceBatch
from standalone.data.java_text import java_text
from standalone.data.record import Header, Record, SinkRecord, SourceRecord
from standalone.data.scalars import BigInt, Float32, Float64, Instant, Int8, Int16, Int32, Int64, to_float32
from standalone.data.schema import Field, Schema, SchemaBuilder, date_schema, decimal_schema, time_schema, timestamp_schema
from standalone.data.struct import Struct
from standalone.data.struct_column import StructColumn
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

if TYPE_CHECKING:
    from standalone.converters.json import JsonConverter


def __getattr__(name):
    if name == "JsonConverter":  # converters import the public names themselves
        from standalone.converters.json import JsonConverter

        return JsonConverter
    raise AttributeError(f"module 'standalone' has no attribute '{name}'")


def tls_context(given):
    """An ssl.SSLContext from Kafka's keys (ssl.truststore.location …) as {key: text or Password}. Raises ConfigError for wrong keys."""
    from standalone.log import tls
    from standalone.log.client_config import AdminConfig

    return tls.context(AdminConfig.of({key: getattr(value, "value", value) for key, value in given.items() if value is not None}))
