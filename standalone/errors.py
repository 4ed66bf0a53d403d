"""All errors that this program raises on purpose, as one hierarchy.

    ConnectError                     any failure without a more specific class
    ├── RetriableError               the same call may succeed later: try again
    ├── Stopped                      the task must end without waiting any longer
    ├── DataError                    this record is bad
    │   ├── SchemaBuilderError       a schema that contradicts itself
    │   └── SchemaProjectorError     a value that does not fit the newer schema
    ├── SerializationError           the converter cannot read these bytes, or cannot write the value
    ├── ConfigError                  these keys are wrong: all errors of a configuration at once
    ├── NotFoundError                no such connector, task, plugin or file
    ├── AlreadyExistsError           the name is in use
    ├── BadRequestError              a request that cannot be understood
    ├── ConflictError                the request is valid, but not in the current state
    ├── StartError                   the worker cannot start
    ├── OffsetsError                 the offsets file cannot be trusted
    ├── RegistryError                the schema registry rejected a request or is unreachable
    │   ├── RegistryDataError          ... this schema, subject or id
    │   ├── RegistryRetriableError     ... temporarily
    │   └── RegistryConfigError        ... because of credentials, TLS or an invalid address
    └── LogError                     the log refused or could not be reached
        ├── LogRetriableError        ... temporarily
        ├── LogFatalError            ... permanently: fenced, forbidden, too large
        └── CorruptBatchError        bytes that are no record batch, or have a wrong checksum

`java_class` is the corresponding Java class. Traces, dead letters and REST responses show it.
"""

import traceback

from standalone.secrets import mask


def shown_class(error):
    """The class name to show for an exception: the Java class if there is one, else Python's with its module."""
    known = getattr(error, "java_class", None)
    if known:
        return known
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def trace_of(error):
    """The stack trace that REST, logs and dead letters show: Java class, message, frames, then the causes."""
    parts, seen = [], set()
    prefix = ""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        parts += (f"{prefix}{shown_class(error)}: {error}\n", _places_in(trace) if trace is not None else getattr(error, _KEPT_PLACES, ""))
        prefix = "Caused by: "
        error = error.__cause__
    # A message may quote data with an unpaired surrogate, which cannot be encoded as UTF-8: it is shown as \ud800.
    return mask("".join(parts)).encode("utf-8", "backslashreplace").decode("utf-8")


def without_frames(error):
    """Replace the tracebacks of an error and its causes by the text that trace_of shows.

    Frames in a traceback reference the record's whole batch and, through the list of failures, the error itself: a reference cycle that
    only the garbage collector frees.
    """
    for _ in range(_DEEPEST):
        _set(error, "__context__", None)  # only causes are shown, not the context
        if error.__traceback__ is not None:
            _set(error, _KEPT_PLACES, _places_in(error.__traceback__))
            error.with_traceback(None)
        error = error.__cause__
        if error is None:
            return


_set = BaseException.__setattr__  # an error may be a frozen dataclass
_DEEPEST = 100  # causes, in case they form a cycle
_KEPT_PLACES = "_places_it_went_through"
_MOST_PLACES, _LONGEST_PLACES = 1000, 50
_places = {}  # (id of code, instruction, ...) -> (its text, the code objects): a cache: bad records fail at the same few places


def _places_in(trace):
    """The frames, one per line; innermost first, as in Java."""
    key, step = [], trace
    while step is not None:
        key += (id(step.tb_frame.f_code), step.tb_lasti)
        step = step.tb_next
    known = _places.get(key := tuple(key))
    if known is None:
        # walk_tb, because extract_tb reads source files for lines that are not shown.
        steps = [(frame.f_code, line) for frame, line in traceback.walk_tb(trace)]
        lines = [f"\tat {code.co_name}({code.co_filename}:{line})\n" for code, line in reversed(steps)]
        known = "".join(lines), [code for code, _ in steps]  # holding the code object keeps its id unique
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
    """`errors` maps each wrong key to its message."""

    java_class = "org.apache.kafka.common.config.ConfigException"

    def __init__(self, message, errors=None):
        super().__init__(message)
        self.errors = dict(errors or {})

    @classmethod
    def of(cls, errors, where=""):
        """One error for {key: message}."""
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
    """`status` is the HTTP status and `code` the registry's error code; both are None without a response."""

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
    """`java_class` may be set on the instance to the class of the broker's error."""

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
