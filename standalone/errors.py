"""Every error this program raises on purpose, as one tree.

    ConnectError                     something failed, and nobody knows a narrower name for it
    ├── RetriableError               the same call may succeed later: try again
    ├── Stopped                      the task is to end, and waits for nothing any more
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
    ├── RegistryError                the schema registry refused or could not be reached
    │   ├── RegistryDataError          ... this schema, subject or id
    │   ├── RegistryRetriableError     ... for the moment
    │   └── RegistryConfigError        ... anyone who asks: credentials, TLS, an address that is none
    └── LogError                     the log refused or could not be reached
        ├── LogRetriableError        ... for the moment
        ├── LogFatalError            ... and will continue refusing: fenced, forbidden, too large
        └── CorruptBatchError        bytes that are not record batch, or not the ones that were written

Each carries in `java_class` the class a user of Kafka Connect knows it by: traces, dead letters and REST answers show it.
"""

import traceback

from standalone.secrets import mask


def shown_class(error):
    """The class of any exception as users know it: Java's where there is one, else Python's with its module."""
    known = getattr(error, "java_class", None)
    if known:
        return known
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def trace_of(error):
    """The error as REST, logs and dead letters show it: the class a Java user knows, the message, then where; causes below."""
    parts, seen = [], set()
    prefix = ""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        parts += (f"{prefix}{shown_class(error)}: {error}\n", _places_in(trace) if trace is not None else getattr(error, _KEPT_PLACES, ""))
        prefix = "Caused by: "
        error = error.__cause__
    # A message quotes data, and data may hold half a surrogate pair, which no file, database or answer takes: it is shown as \ud800.
    return mask("".join(parts)).encode("utf-8", "backslashreplace").decode("utf-8")


def without_frames(error):
    """Keep of an error, and of those that it came of, only what trace_of shows of where they were raised.

    The frames in a traceback hold all that was at work, down to the batch that the record was in, and by way of a list of what failed the
    error itself: a circle, which only the garbage collector finds.
    """
    for _ in range(_DEEPEST):
        _set(error, "__context__", None)  # what it came amid is not shown: only of what it came
        if error.__traceback__ is not None:
            _set(error, _KEPT_PLACES, _places_in(error.__traceback__))
            error.with_traceback(None)
        error = error.__cause__
        if error is None:
            return


_set = BaseException.__setattr__  # an error may be a frozen dataclass
_DEEPEST = 100  # of causes, lest they go in a circle
_KEPT_PLACES = "_places_it_went_through"
_MOST_PLACES, _LONGEST_PLACES = 1000, 50
_places = {}  # (id of code, instruction, ...) -> (its text, the code objects): bad records fail in the same few places


def _places_in(trace):
    """Where it went through, a line each; innermost first, as in Java."""
    key, step = [], trace
    while step is not None:
        key += (id(step.tb_frame.f_code), step.tb_lasti)
        step = step.tb_next
    known = _places.get(key := tuple(key))
    if known is None:
        # By walk_tb: extract_tb reads every source file for lines that are not shown.
        steps = [(frame.f_code, line) for frame, line in traceback.walk_tb(trace)]
        lines = [f"\tat {code.co_name}({code.co_filename}:{line})\n" for code, line in reversed(steps)]
        known = "".join(lines), [code for code, _ in steps]  # as long as a code object is kept, its id is no other's
        if len(steps) <= _LONGEST_PLACES:
            if len(_places) >= _MOST_PLACES:
                _places.clear()
            _places[key] = known
    return known[0]


class ConnectError(Exception):
    java_class = "org.apache.kafka.connect.errors.ConnectException"


class RetriableError(ConnectError):
    java_class = "org.apache.kafka.connect.errors.RetriableException"


class Stopped(ConnectError):
    pass


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


class RegistryError(ConnectError):
    """`status` is the answer's HTTP status and `code` the registry's own error code; both None where there was no answer."""

    def __init__(self, message, status=None, code=None):
        super().__init__(message)
        self.status, self.code = status, code


class RegistryDataError(RegistryError, DataError):
    pass


class RegistryRetriableError(RegistryError, RetriableError):
    pass


class RegistryConfigError(RegistryError, ConfigError):
    def __init__(self, message, status=None, code=None):
        RegistryError.__init__(self, message, status, code)
        self.errors = {}


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
