"""Consumer subscription metadata; only its topics are used here."""

from kafka.protocol.consumer import ConsumerProtocolSubscription


def subscribed_topics(metadata):
    """Return the topics of a consumer's subscription; None if the bytes are not one."""
    try:
        return frozenset(ConsumerProtocolSubscription.decode(bytes(metadata)).topics)
    except Exception:  # clients may send any bytes; any failure means they are not a subscription
        return None


def same_subscription(protocol_type, before, after):
    """Whether two joins of a member are equivalent: owned partitions may differ, topics and protocols may not."""
    if [name for name, _ in before] != [name for name, _ in after]:
        return False
    if protocol_type != "consumer":
        return before == after
    for (_, old), (_, new) in zip(before, after):
        if old != new and (subscribed_topics(old) is None or subscribed_topics(old) != subscribed_topics(new)):
            return False
    return True
