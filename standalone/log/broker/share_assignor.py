"""The assignor of share groups. It may assign a partition to many members: each record is acquired by one of them when they fetch.

assign(members, partitions) -> {member: set of partitions}: `members` is {member: set of topics}, `partitions` {topic: count}.
"""

NAME = "simple"


def simple(members, partitions):
    """Assign each partition to at least one member, and to each member at least one partition if there is one. Both are balanced."""
    assigned = {member: set() for member in members}
    by_topics = {}  # members with the same subscription
    for member in sorted(members):
        by_topics.setdefault(frozenset(members[member]), []).append(member)
    for topics, readers in by_topics.items():
        found = [(topic, number) for topic in sorted(topics) for number in range(partitions.get(topic, 0))]
        for turn in range(max(len(found), len(readers)) if found else 0):
            assigned[readers[turn % len(readers)]].add(found[turn % len(found)])
    return assigned
