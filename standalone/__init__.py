"""Kafka Connect's standalone mode as one Python process: the public names.

Everything a connector, converter or transform needs is imported from here, and what is not here is nobody's to import.
"""

__version__ = "0.1.0"

from standalone.config import (  # noqa: F401
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
from standalone.connector import (  # noqa: F401
    Connector,
    ErrantRecordReporter,
    OffsetReader,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
)
from standalone.data.batch import SinkBatch, SourceBatch  # noqa: F401
from standalone.data.record import Header, Record, SinkRecord, SourceRecord  # noqa: F401
from standalone.data.java_text import java_text  # noqa: F401
from standalone.data.scalars import BigInt, Float32, Float64, Instant, Int8, Int16, Int32, Int64, to_float32  # noqa: F401
from standalone.data.schema import (  # noqa: F401
    Field,
    Schema,
    SchemaBuilder,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from standalone.data.struct import Struct  # noqa: F401
from standalone.errors import ConfigError, ConnectError, DataError, RetriableError, SerializationError  # noqa: F401
from standalone.stage import Columns, Converter, FieldTransform, HeaderConverter, Predicate, Transform  # noqa: F401
from standalone.wire import ByteColumn  # noqa: F401
