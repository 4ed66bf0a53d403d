"""A request, or a part of one, that the log does not do: Kafka's error code and our words."""

import kafka.errors as codes

NONE = 0


class InvalidRegularExpression(codes.BrokerResponseError):
    """Of Kafka's errors kafka-python lacks this one."""

    errno = 128


class ShareSessionLimitReached(codes.BrokerResponseError):
    """And this one."""

    errno = 133


class Refusal(Exception):
    """`kind` is kafka-python's error class of the code, e.g. codes.InvalidTopicError."""

    def __init__(self, kind, message=None):
        super().__init__(message or kind.__name__)
        self.code = kind.errno
        self.message = message


__all__ = ["NONE", "InvalidRegularExpression", "Refusal", "ShareSessionLimitReached", "codes"]
