"""Finds the topic or partition of a request, by name or, in newer versions, by topic id."""

from standalone.log.broker.operations import TOPIC
from standalone.log.broker.refusal import Refusal, codes


def topic_by_id(node, topic_id):
    """Raise Refusal if it is unknown."""
    topic = node.topics.by_id(topic_id)
    if topic is None:
        raise Refusal(codes.UnknownTopicIdError, f"There is no topic with the id {topic_id}.")
    return topic


def partition(node, call, name, topic_id, number, by_id=False):
    """Raise Refusal if it is unknown or not allowed."""
    if by_id:
        name = topic_by_id(node, topic_id).name
    call.require(TOPIC, name)
    return node.topics.partition(name, number)
