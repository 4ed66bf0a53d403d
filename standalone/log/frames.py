"""What is around a message on the wire: its length, and in answers the header that is skipped to reach the body."""

import io

from kafka.protocol.api_header import ResponseClassRegistry, ResponseHeader
from kafka.protocol.metadata import ApiVersionsRequest

SOFTWARE = ("connect-standalone", "1")  # shown in the broker's list of clients
LARGEST_FRAME = 1 << 30


def response_class(request):
    """Of a request's answer."""
    return ResponseClassRegistry._response_class_registry[request.API_KEY]


def header_tags(frame, kind, version):
    """The bytes of the tagged fields in a response's header: one, in practice, or none."""
    if kind.API_KEY == ApiVersionsRequest.API_KEY or not kind.flexible_version_q(version):
        return 0
    if frame[4] == 0:
        return 1
    stream = io.BytesIO(frame)
    ResponseHeader.decode(stream, flexible=True)
    return stream.tell() - 4
