"""Read ranges of offsets: partitions, begin and end offsets, and the records between two offsets.

A range is read by plain fetches over cached connections, without subscription or commits, since Spark stores the offsets. Reads are
read_committed: a range ends before the first open transaction.
"""

import logging

from standalone.clock import SYSTEM
from standalone.data.java_regex import compile_java
from standalone.errors import ConnectError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log import fetch, record_batch
from standalone.log.admin import EARLIEST, LATEST
from standalone.log.broker_errors import raise_for
from standalone.log.client_config import ConsumerConfig
from standalone.log.positions import ISOLATION
from standalone.log.retry import Backoff

log = logging.getLogger(__name__)

_FETCH_BYTES = 8 << 20
_WAIT_MS = 100
_SHORTEST_WAIT_SECONDS = 0.005  # a broker that answers sooner, and has nothing, does not wait
_PATIENCE_SECONDS = 60.0
_COMMITTED = "read_committed"


class Ranges:
    """Used by one thread. Pairs are (topic, partition)."""

    def __init__(self, clients):
        self._config = ConsumerConfig.of({"isolation.level": _COMMITTED, **clients.properties("consumer")})
        self._cluster = clients.cluster(self._config)
        self._admin = clients.admin({})
        self._isolation = self._config["isolation.level"]
        self._links = {}  # Node -> Connection

    def pairs(self, topics=None, pattern=None):
        """All partitions of these topics, or of topics that fully match the pattern; a missing topic has none yet."""
        if pattern is not None:
            fits = compile_java(pattern).fullmatch
            names = sorted(name for name in self._admin.list_topics() if fits(name))
        else:
            there = self._admin.list_topics(internal=True)
            names = [name for name in topics if name in there]
        found = self._admin.describe_topics(*names) if names else {}
        return [(name, number) for name in names for number in sorted(found[name].partitions)]

    def begins(self, pairs):
        return self._admin.list_offsets(dict.fromkeys(pairs, EARLIEST)) if pairs else {}

    def ends(self, pairs, also_open=False):
        """Return {pair: last stable offset}; with `also_open`, wait until all transactions open now have ended."""
        return self._admin.list_offsets(dict.fromkeys(pairs, LATEST), 0 if also_open else ISOLATION[self._isolation]) if pairs else {}

    def at_time(self, pairs, ms):
        """Return {pair: first offset at or after that time, or the end}."""
        ends = self.ends(pairs)
        found = self._admin.list_offsets(dict.fromkeys(pairs, ms)) if pairs else {}
        return {pair: ends[pair] if offset < 0 else offset for pair, offset in found.items()}

    def read(self, topic, partition, low, high):
        """Return wire.Records of offsets `low` (inclusive) to `high` (exclusive); some may be missing."""
        at, deadline, backoff = low, SYSTEM.monotonic() + _PATIENCE_SECONDS, Backoff(self._config, "retry.backoff")
        while at < high:
            try:
                answer = self._fetch(topic, partition, at)
                if answer.error_code == codes.OFFSET_OUT_OF_RANGE and (begin := self.begins([(topic, partition)])[topic, partition]) > at:
                    log.warning("%s-%d: the log has deleted offsets %d to %d before they were read (retention)", topic, partition, at, begin - 1)
                    at = min(begin, high)
                    continue
                raise_for(answer.error_code, f"Reading {topic}-{partition} at offset {at}")
            except LogRetriableError:
                self._forget(topic, partition)
                if SYSTEM.monotonic() > deadline:
                    raise
                self._cluster.pause(backoff.next())
                continue
            before, body = at, answer.records
            while body is not None and at < high:
                unpacked = record_batch.unpack(
                    body, from_offset=at, check_crc=self._config["check.crcs"], isolation=self._isolation, aborted=answer.aborted
                )
                for records in unpacked.records:
                    keep = int((records.offsets < high).sum())
                    if keep:
                        yield records if keep == len(records) else records.slice(0, keep)
                if unpacked.next_offset is None or unpacked.next_offset <= at:
                    break
                at = unpacked.next_offset
            if at > before:
                deadline = SYSTEM.monotonic() + _PATIENCE_SECONDS
            elif SYSTEM.monotonic() > deadline:
                raise ConnectError(f"The records of {topic}-{partition} from offset {at} to {high} did not arrive within {_PATIENCE_SECONDS:.0f} s.")

    def wait_for_more(self, ends, seconds):
        """Have the broker wait until a partition has records that can be read beyond these ends ({pair: offset}), so long at the most.

        Returns whether it did, or has some: not where partitions have different leaders, and not where it fails or does not wait.
        """
        try:
            ids = {topic: self._cluster.topic(topic, timeout=seconds).id for topic, _ in ends}
            leaders = {pair: self._cluster.leader(*pair) for pair in ends}
            nodes = {leader and leader.node for leader in leaders.values()}
            if len(nodes) != 1 or None in nodes:
                return False
            wanted = [(topic, ids[topic], partition, ends[topic, partition], leader.epoch) for (topic, partition), leader in leaders.items()]
            begun = SYSTEM.monotonic()
            answers = self._fetched(nodes.pop(), wanted, int(seconds * 1000), 1)
        except ConnectError:
            for pair in ends:
                self._forget(*pair)
            return False
        if any(answer.error_code for answer in answers):
            return False
        return any(answer.records is not None for answer in answers) or SYSTEM.monotonic() - begun >= _SHORTEST_WAIT_SECONDS

    def close(self):
        for link in self._links.values():
            link.close()
        self._links.clear()

    def _fetch(self, topic, partition, at):
        self._cluster.topic(topic)
        leader = self._cluster.leader(topic, partition)
        if leader is None:
            raise LogRetriableError(f"{topic}-{partition} has no leader.")
        wanted = [(topic, self._cluster.topic(topic).id, partition, at, leader.epoch)]
        return self._fetched(leader.node, wanted, _WAIT_MS, _FETCH_BYTES)[0]

    def _fetched(self, node, wanted, wait_ms, most_bytes):
        """Answers of what fetch.request takes."""
        link = self._links.get(node)
        if link is None or link.stale:
            link = self._links[node] = self._cluster.connect(node)
        message, ceiling = fetch.request(
            wanted,
            min_bytes=1,
            max_wait_ms=wait_ms,
            max_bytes=most_bytes,
            partition_bytes=most_bytes,
            isolation=ISOLATION[self._isolation],
            rack=self._config["client.rack"],
        )
        correlation = link.send(message, ceiling)
        received = link.receive()
        _, version = link.forget(correlation)
        code, answers = fetch.read(received[1], version)
        raise_for(code, f"Reading {', '.join(f'{topic}-{partition} at offset {at}' for topic, _, partition, at, _ in wanted)}")
        return answers

    def _forget(self, topic, partition):
        leader = self._cluster.leader(topic, partition)
        if leader is not None and (link := self._links.pop(leader.node, None)) is not None:
            link.close()
        self._cluster.forget(topic)
