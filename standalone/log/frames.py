"""Framing of messages: the length prefix, and the response header before the body."""

import io

from kafka.protocol.api_header import ResponseClassRegistry, ResponseHeader
from kafka.protocol.metadata import ApiVersionsRequest

SOFTWARE = ("connect-standalone", "1")  # shown in the broker's list of clients
LARGEST_FRAME = 1 << 30


def response_class(request):
    """Return the response class of a request."""
    return ResponseClassRegistry._response_class_registry[request.API_KEY]


def header_tags(frame, kind, version):
    """Return the encoded tagged fields of a response header: one byte, or none."""
    if kind.API_KEY == ApiVersionsRequest.API_KEY or not kind.flexible_version_q(version):
        return 0
    if frame[4] == 0:
        return 1
    stream = io.BytesIO(frame)
    ResponseHeader.decode(stream, flexible=True)
    return stream.tell() - 4
