"""Server-side assignors of consumer groups (KIP-848): uniform and range.

assign(members, partitions, current) -> {member: set of partitions}: `members` is {member: set of topics}, `partitions` {topic: count},
`current` the previous assignment. A partition is (topic, number).
"""


def uniform(members, partitions, current):
    """Balance partition counts evenly; members keep their current partitions where balance allows."""
    readers = {topic: sorted(member for member, topics in members.items() if topic in topics) for topic in partitions}
    assigned = {member: set() for member in members}
    total = sum(count for topic, count in partitions.items() if readers[topic])
    least, more = divmod(total, len(members)) if members else (0, 0)
    left, rich = [], 0
    owners = {partition: member for member, had in current.items() for partition in had}
    for topic in sorted(partitions):
        for number in range(partitions[topic]):
            owner = owners.get((topic, number))
            if owner not in assigned or topic not in members[owner]:
                left.append((topic, number))
            elif len(assigned[owner]) < least:
                assigned[owner].add((topic, number))
            elif len(assigned[owner]) == least and rich < more:
                assigned[owner].add((topic, number))
                rich += 1
            else:
                left.append((topic, number))
    for topic, number in left:
        if readers[topic]:
            poorest = min(readers[topic], key=lambda member: (len(assigned[member]), member))
            assigned[poorest].add((topic, number))
    return assigned


def range_(members, partitions, current):
    """Give each member, in order of member id, a contiguous range of each topic's partitions."""
    assigned = {member: set() for member in members}
    for topic, count in partitions.items():
        readers = sorted(member for member, topics in members.items() if topic in topics)
        if not readers:
            continue
        least, more = divmod(count, len(readers))
        begin = 0
        for place, member in enumerate(readers):
            end = begin + least + (place < more)
            assigned[member].update((topic, number) for number in range(begin, end))
            begin = end
    return assigned


ASSIGNORS = {"uniform": uniform, "range": range_}
DEFAULT = "uniform"
