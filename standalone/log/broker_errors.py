"""Map a broker's error codes to log errors: kafka-python knows the codes, users know Java's class names."""

import re

import kafka.errors

from standalone.errors import LogFatalError, LogRetriableError
from standalone.log import error_codes as codes

# Only the names that differ from kafka-python's by more than the suffix.
JAVA_NAMES = {
    -1: "UnknownServerException",
    4: "InvalidFetchSizeException",
    6: "NotLeaderOrFollowerException",
    7: "TimeoutException",
    10: "RecordTooLargeException",
    11: "ControllerMovedException",
    13: "NetworkException",
    18: "RecordBatchTooLargeException",
    29: "TopicAuthorizationException",
    30: "GroupAuthorizationException",
    31: "ClusterAuthorizationException",
    36: "TopicExistsException",
    45: "OutOfOrderSequenceException",
    46: "DuplicateSequenceException",
    49: "InvalidPidMappingException",
    53: "TransactionalIdAuthorizationException",
    58: "SaslAuthenticationException",
    65: "DelegationTokenAuthorizationException",
    68: "GroupNotEmptyException",
}


def java_name(code):
    """Return the Java class of an error code, e.g. 3 -> org.apache.kafka.common.errors.UnknownTopicOrPartitionException."""
    if code not in kafka.errors.kafka_errors:
        code = -1
    return java_class(JAVA_NAMES.get(code) or kafka.errors.for_code(code).__name__.removesuffix("Error") + "Exception")


def java_class(short):
    return f"org.apache.kafka.common.errors.{short}"


def is_retriable(code):
    return code == codes.CORRUPT_MESSAGE or kafka.errors.for_code(code).retriable


def is_stale_metadata(code):
    """Whether the code means that we used outdated metadata, e.g. asked the wrong broker."""
    return getattr(kafka.errors.for_code(code), "invalid_metadata", False)


def explain(code, message=None):
    """Return `NAME: description`, with the broker's own `message` if it sent one."""
    known = kafka.errors.kafka_errors.get(code)
    name = known.message if known else f"error code {code}"
    text = message or re.sub(r"\s+", " ", getattr(known, "description", "") or "")
    return f"{name}: {text.rstrip('.')}" if text else name


def broker_error(code, what, message=None):
    """Return a log error for a code; `what` says what failed, on what."""
    kind = LogRetriableError if is_retriable(code) else LogFatalError
    return kind(f"{what}: the broker answered {explain(code, message)}.", java_name(code))


def raise_for(code, what, message=None):
    if code != codes.NONE:
        raise broker_error(code, what, message)


def timed_out(message):
    return LogRetriableError(message, java_class("TimeoutException"))


def disconnected(message):
    return LogRetriableError(message, java_class("DisconnectException"))


def unsupported(message):
    return LogFatalError(message, java_class("UnsupportedVersionException"))

