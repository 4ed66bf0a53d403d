"""Who of a share group's members reads which partitions. A partition may have many readers: their records are divided when they are fetched.

assign(members, partitions) -> {member: set of partitions}: `members` is {member: set of topics}, `partitions` {topic: count}.
"""

NAME = "simple"


def simple(members, partitions):
    """Each partition has a reader and each member, as far as there are partitions, something to read, both as evenly as can be."""
    assigned = {member: set() for member in members}
    by_topics = {}  # members that read the same
    for member in sorted(members):
        by_topics.setdefault(frozenset(members[member]), []).append(member)
    for topics, readers in by_topics.items():
        found = [(topic, number) for topic in sorted(topics) for number in range(partitions.get(topic, 0))]
        for turn in range(max(len(found), len(readers)) if found else 0):
            assigned[readers[turn % len(readers)]].add(found[turn % len(found)])
    return assigned
