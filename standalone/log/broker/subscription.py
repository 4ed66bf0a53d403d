"""What a consumer says of itself when it joins: here only which topics it reads is of interest."""

from kafka.protocol.consumer import ConsumerProtocolSubscription


def subscribed_topics(metadata):
    """The topics of a consumer's subscription; None where the bytes are none."""
    try:
        return frozenset(ConsumerProtocolSubscription.decode(bytes(metadata)).topics)
    except Exception:  # bytes that anyone may have written: whatever is wrong with them, they are no subscription
        return None


def same_subscription(protocol_type, before, after):
    """Whether two joins of one member ask for the same: partitions owned and similar may differ, topics and protocols may not."""
    if [name for name, _ in before] != [name for name, _ in after]:
        return False
    if protocol_type != "consumer":
        return before == after
    for (_, old), (_, new) in zip(before, after):
        if old != new and (subscribed_topics(old) is None or subscribed_topics(old) != subscribed_topics(new)):
            return False
    return True
