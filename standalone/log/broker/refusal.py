"""A rejected request, or part of one: Kafka's error code and a message."""

import kafka.errors as codes

NONE = 0


class InvalidRegularExpression(codes.BrokerResponseError):
    """An error of Kafka's that kafka-python lacks."""

    errno = 128


class ShareSessionLimitReached(codes.BrokerResponseError):
    """And this one."""

    errno = 133


class Refusal(Exception):
    """`kind` is kafka-python's class for the error code, e.g. codes.InvalidTopicError."""

    def __init__(self, kind, message=None):
        super().__init__(message or kind.__name__)
        self.code = kind.errno
        self.message = message


__all__ = ["NONE", "InvalidRegularExpression", "Refusal", "ShareSessionLimitReached", "codes"]
