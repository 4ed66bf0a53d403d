"""Messages of Kafka's protocol that kafka-python does not carry, from definitions of the same form: consumer groups by KIP-848, share groups."""

import sys

from kafka.protocol.api_message import ApiMessage

_HERE = sys.modules[__name__]


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=_HERE):
    pass


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=_HERE):
    pass


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_HERE):
    pass


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_HERE):
    pass


class ShareGroupHeartbeatRequest(ApiMessage, load_json=_HERE):
    pass


class ShareGroupHeartbeatResponse(ApiMessage, load_json=_HERE):
    pass


class ShareGroupDescribeRequest(ApiMessage, load_json=_HERE):
    pass


class ShareGroupDescribeResponse(ApiMessage, load_json=_HERE):
    pass


class ShareFetchRequest(ApiMessage, load_json=_HERE):
    pass


class ShareFetchResponse(ApiMessage, load_json=_HERE):
    pass


class ShareAcknowledgeRequest(ApiMessage, load_json=_HERE):
    pass


class ShareAcknowledgeResponse(ApiMessage, load_json=_HERE):
    pass


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=_HERE):
    pass


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=_HERE):
    pass


class AlterShareGroupOffsetsRequest(ApiMessage, load_json=_HERE):
    pass


class AlterShareGroupOffsetsResponse(ApiMessage, load_json=_HERE):
    pass


class DeleteShareGroupOffsetsRequest(ApiMessage, load_json=_HERE):
    pass


class DeleteShareGroupOffsetsResponse(ApiMessage, load_json=_HERE):
    pass
