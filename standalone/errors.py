"""Every error this program raises on purpose, as one tree.

    ConnectError                     something failed, and nobody knows a narrower name for it
    ├── RetriableError               the same call may succeed later: try again
    ├── DataError                    this record is bad
    │   ├── SchemaBuilderError       a schema that contradicts itself
    │   └── SchemaProjectorError     a value that does not fit the newer schema
    ├── SerializationError           these bytes are not what the converter reads, or cannot be written
    ├── ConfigError                  these keys are wrong, all of them at once
    ├── NotFoundError                no such connector, task, plugin or file
    ├── AlreadyExistsError           that name is taken
    ├── BadRequestError              a request that cannot be understood
    ├── ConflictError                right request, wrong moment
    ├── StartError                   the worker cannot start
    ├── OffsetsError                 the offsets file cannot be trusted
    └── LogError                     the log refused or could not be reached
        ├── LogRetriableError        ... for the moment
        ├── LogFatalError            ... and will go on refusing: fenced, forbidden, too large
        └── CorruptBatchError        bytes that are no record batch, or not the ones that were written

Each carries in `java_class` the class a user of Kafka Connect knows it by: traces, dead letters and REST answers show it.
"""


class ConnectError(Exception):
    java_class = "org.apache.kafka.connect.errors.ConnectException"


class RetriableError(ConnectError):
    java_class = "org.apache.kafka.connect.errors.RetriableException"


class DataError(ConnectError):
    java_class = "org.apache.kafka.connect.errors.DataException"


class SchemaBuilderError(DataError):
    java_class = "org.apache.kafka.connect.errors.SchemaBuilderException"


class SchemaProjectorError(DataError):
    java_class = "org.apache.kafka.connect.errors.SchemaProjectorException"


class SerializationError(ConnectError):
    java_class = "org.apache.kafka.common.errors.SerializationException"


class ConfigError(ConnectError):
    """`errors` maps each wrong key to what is wrong with it."""

    java_class = "org.apache.kafka.common.config.ConfigException"

    def __init__(self, message, errors=None):
        super().__init__(message)
        self.errors = dict(errors or {})

    @classmethod
    def of(cls, errors, where=""):
        """One error out of {key: message}."""
        lines = "; ".join(f"{key}: {message}" for key, message in errors.items())
        return cls(f"{where}{': ' if where else ''}{lines}", errors)


class NotFoundError(ConnectError):
    java_class = "org.apache.kafka.connect.errors.NotFoundException"


class AlreadyExistsError(ConnectError):
    java_class = "org.apache.kafka.connect.errors.AlreadyExistsException"


class BadRequestError(ConnectError):
    java_class = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException"


class ConflictError(ConnectError):
    java_class = "org.apache.kafka.connect.errors.IllegalWorkerStateException"


class StartError(ConnectError):
    pass


class OffsetsError(StartError):
    pass


class LogError(ConnectError):
    """`java_class` may be set on the instance to the error the broker named."""

    java_class = "org.apache.kafka.common.KafkaException"

    def __init__(self, message, java_class=None):
        super().__init__(message)
        if java_class:
            self.java_class = java_class


class LogRetriableError(LogError, RetriableError):
    java_class = "org.apache.kafka.common.errors.RetriableException"


class LogFatalError(LogError):
    pass


class CorruptBatchError(LogError):
    java_class = "org.apache.kafka.common.errors.CorruptRecordException"
