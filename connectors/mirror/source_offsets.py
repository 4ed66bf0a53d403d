"""Source partitions and offsets of the mirror connectors, and validation of requests to change them."""

from standalone import ConnectError

TOPIC, PARTITION, OFFSET = "topic", "partition", "offset"


def check_partition(partition, names):
    """Raise ConnectError unless a source partition has exactly these names, the last one a number."""
    if partition is None or set(partition) != set(names) or not is_whole(partition[names[-1]]):
        raise ConnectError(f"The source partition {partition!r} must have {', '.join(names)}, and nothing else; {names[-1]} is a number.")


def check_zero(offset):
    """Heartbeats and checkpoints have no position to resume from: their offset is always 0."""
    if offset is not None and offset.get(OFFSET) != 0:
        raise ConnectError(f"The source offset {offset!r} must be {{\"{OFFSET}\": 0}}, or null to reset it.")


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
