"""Read-only view of the log for the UI: topics, start and end offsets, and records. Nothing is changed or committed."""

import collections

from standalone.errors import LogError, NotFoundError
from standalone.log.admin import EARLIEST, LATEST

MOST_RECORDS = 500
MOST_FETCHED_BYTES = 16 << 20  # per request: fewer records are shown if they are large
_LOOK_SECONDS = 10.0
_POLL_SECONDS = 0.5

Seen = collections.namedtuple("Seen", "partition offset timestamp key value headers")
Seen.__doc__ = """A record as bytes. key and value may be None; headers: [(name, bytes or None)]; timestamp: milliseconds, or -1."""


class LogView:
    """`new_consumer(max_bytes)` returns a consumer without a group. Thread-safe: each call has its own clients, or shared connections."""

    def __init__(self, admin, new_consumer, clock):
        self._admin, self._new_consumer, self._clock = admin, new_consumer, clock

    def names(self):
        """The names of all topics except internal ones, as a set."""
        return self._admin.list_topics()

    def topics(self):
        """[{name, partitions, records}], by name; records is None if a partition's offsets cannot be listed."""
        names = sorted(self._admin.list_topics())
        described = self._admin.describe_topics(*names) if names else {}
        pairs = {name: [(name, number) for number in topic.partitions] for name, topic in described.items()}
        try:
            ranges = self.ranges([pair for each in pairs.values() for pair in each])
            counts = {name: _records_in(ranges[pair] for pair in pairs[name]) for name in names}
        except LogError:
            counts = {name: self._count(pairs[name]) for name in names}  # per topic: one without a leader must not hide the others
        return [{"name": name, "partitions": len(pairs[name]), "records": counts[name]} for name in names]

    def _count(self, pairs):
        try:
            return _records_in(self.ranges(pairs).values())
        except LogError:
            return None

    def partitions(self, topic):
        """The numbers of a topic's partitions. Raises NotFoundError."""
        if topic not in self._admin.list_topics(internal=True):
            raise NotFoundError(f"There is no topic '{topic}'.")
        return sorted(self._admin.describe_topics(topic)[topic].partitions)

    def ranges(self, pairs):
        """{(topic, partition): (log start offset, end offset)}"""
        begins, ends = (self._admin.list_offsets(dict.fromkeys(pairs, at)) if pairs else {} for at in (EARLIEST, LATEST))
        return {pair: (begins[pair], ends[pair]) for pair in pairs}

    def newest(self, topic, partitions, limit):
        """The newest records of these partitions, at most `limit`, newest first.

        Returns fewer if that many exceed MOST_FETCHED_BYTES, never older ones instead of newer ones.
        """
        ranges = self.ranges([(topic, number) for number in partitions])
        share = limit
        while True:
            found = self._from_the_end(ranges, share)
            if found is not None or share == 1:
                return sorted(found or (), key=_order(ranges), reverse=True)[:limit]
            share = max(1, share // 8)

    def onward(self, topic, partitions, limit, offset=None, timestamp=None):
        """Records of these partitions from that offset or time onward, at most `limit`, oldest first; fewer if they are large."""
        ranges, begin, left = self._starts(topic, partitions, offset or 0, timestamp)
        found, size, deadline = {pair: [] for pair in left}, 0, self._clock.monotonic() + _LOOK_SECONDS
        if not left:
            return []
        consumer = self._new_consumer(MOST_FETCHED_BYTES // 2)
        try:
            consumer.assign(sorted(left))
            for pair in left:
                consumer.seek(*pair, begin[pair])
            while left and size < MOST_FETCHED_BYTES and self._clock.monotonic() < deadline:
                for name, partition, records, _ in consumer.poll(_POLL_SECONDS):
                    size += records.nbytes
                    found[name, partition].extend(_seen(partition, records.slice(0, min(limit, len(records)))))
                done = {pair for pair in left if len(found[pair]) >= limit or consumer.position(pair) >= ranges[pair][1]}
                consumer.pause(sorted(done))
                left -= done
        finally:
            consumer.close(0)
        return sorted((seen for seens in found.values() for seen in seens), key=_order(ranges))[:limit]

    def search(self, topic, partitions, limit, text, offset=None, timestamp=None):
        """Records from that offset or time onward whose key, value or header contains this text; ASCII case is ignored.

        Returns (at most `limit` records, oldest first; how many records were read; whether the search reached the end). Stops after
        _LOOK_SECONDS, so that a large topic does not block a REST thread.
        """
        ranges, begin, left = self._starts(topic, partitions, offset or 0, timestamp)
        wanted, found, read, deadline = text.encode().lower(), [], 0, self._clock.monotonic() + _LOOK_SECONDS
        if not left:
            return [], 0, True
        consumer = self._new_consumer(MOST_FETCHED_BYTES // 2)
        try:
            consumer.assign(sorted(left))
            for pair in left:
                consumer.seek(*pair, begin[pair])
            while left and len(found) < limit and self._clock.monotonic() < deadline:
                for _, partition, records, _ in consumer.poll(_POLL_SECONDS):
                    read += len(records)
                    found.extend(seen for seen in _seen(partition, records) if _holds(seen, wanted))
                done = {pair for pair in left if consumer.position(pair) >= ranges[pair][1]}
                consumer.pause(sorted(done))
                left -= done
        finally:
            consumer.close(0)
        return sorted(found, key=_order(ranges))[:limit], read, not left and len(found) <= limit

    def _starts(self, topic, partitions, offset, timestamp):
        """({pair: (start offset, end offset)}, {pair: offset to read from}, the pairs that have records from there onward)"""
        ranges = self.ranges([(topic, number) for number in partitions])
        if timestamp is not None:
            starts = self._admin.list_offsets(dict.fromkeys(ranges, timestamp))
            # A partition without a record at or after that time has nothing to show.
            begin = {pair: end if starts[pair] is None or starts[pair] < 0 else starts[pair] for pair, (_, end) in ranges.items()}
        else:
            begin = {pair: max(first, offset) for pair, (first, _) in ranges.items()}
        return ranges, begin, {pair for pair, start in begin.items() if start < ranges[pair][1]}

    def _from_the_end(self, ranges, share):
        """The last `share` offsets of each partition; None if they are too large or take too long."""
        begin = {pair: max(first, end - share) for pair, (first, end) in ranges.items() if end > first}
        found = {pair: collections.deque(maxlen=share) for pair in begin}
        left, size, deadline = set(begin), 0, self._clock.monotonic() + _LOOK_SECONDS
        if not left:
            return []
        consumer = self._new_consumer(MOST_FETCHED_BYTES // 2)
        try:
            consumer.assign(sorted(left))
            for pair, offset in begin.items():
                consumer.seek(*pair, offset)
            while left:
                if size > MOST_FETCHED_BYTES or self._clock.monotonic() > deadline:
                    return None if share > 1 else [seen for seens in found.values() for seen in seens]
                for topic, partition, records, _ in consumer.poll(_POLL_SECONDS):
                    size += records.nbytes
                    found[topic, partition].extend(_seen(partition, records.slice(max(0, len(records) - share), len(records))))
                done = {pair for pair in left if consumer.position(pair) >= ranges[pair][1]}
                consumer.pause(sorted(done))
                left -= done
        finally:
            consumer.close(0)
        return [seen for seens in found.values() for seen in seens]


def _order(ranges):
    return (lambda seen: seen.offset) if len(ranges) == 1 else (lambda seen: (seen.timestamp, seen.offset))


def _holds(seen, text):
    return any(text in part.lower() for part in (seen.key, seen.value, *(value for _, value in seen.headers)) if part is not None)


def _records_in(ranges):
    return sum(end - begin for begin, end in ranges)


def _seen(partition, records):
    count = len(records)
    keys = [None] * count if records.keys is None else list(records.keys)
    values = [None] * count if records.values is None else list(records.values)
    headers = records.headers or [None] * count
    offsets, timestamps = records.offsets.tolist(), records.timestamps.tolist()
    for offset, timestamp, key, value, row in zip(offsets, timestamps, keys, values, headers):
        yield Seen(partition, offset, timestamp, key, value, list(row or ()))
