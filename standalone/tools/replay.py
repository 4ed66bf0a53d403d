"""Reads dead letter queues (dead_letter.py describes their format) and replays their letters.

A replay commits its progress in a consumer group of the queue, so another replay skips these letters. All letters below the committed
offset are done; later ones are listed in the commit's metadata, as `done 17-20,23`. Each chunk is committed once the log has acknowledged
it: a replay killed in between duplicates at most that chunk.
"""

import collections
import re
from typing import NamedTuple

import numpy as np

from standalone.errors import ConnectError
from standalone.runtime.failures.dead_letter import PREFIX
from standalone.tools.log_access import rows
from standalone.wire import NO_TIMESTAMP, ByteColumn, Records

NO_CLASS = "(unknown)"  # a letter without context headers
_GROUP = "connectctl-dlq-"
_DONE = re.compile(r"done (\d+-\d+|\d+)(,(\d+-\d+|\d+))*")
_MOST_METADATA = 4000  # brokers take 4096 bytes, unless configured otherwise
_CHUNK = 1000


class Letter(NamedTuple):
    """A record of a dead letter queue. `headers` are the original ones, `context` the failure's as {name without prefix: text}."""

    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes
    headers: list
    context: dict

    @property
    def error_class(self):
        return self.context.get("exception.class.name") or NO_CLASS

    @property
    def is_whole(self):
        """Whether key and value are the serialized bytes of the original record."""
        return all(self.context.get(f"{part}.format", "bytes") == "bytes" for part in ("key", "value"))

    @property
    def is_cut(self):
        """Whether a part of it was too large for the queue."""
        return any(self.context.get(f"{part}.format", "").startswith("omitted") for part in ("key", "value"))


class Choice(NamedTuple):
    """Selects letters by error class (full or simple name), partitions and offsets."""

    error_class: str = None
    partitions: tuple = ()
    low: int = 0
    high: int = None

    def takes(self, letter):
        name = letter.error_class
        return self.error_class is None or self.error_class in (name, name.rpartition(".")[2])


def read_letters(log, queue, choice=Choice(), newest=None):
    """Lists of letters, each from one partition, in order. `newest` starts this many before the end of each partition."""
    spans = {}
    for pair, (begin, end) in log.ranges(log.partitions(queue)).items():
        if choice.partitions and pair[1] not in choice.partitions:
            continue
        low = max(begin, choice.low, end - newest if newest is not None else 0)
        spans[pair] = (low, end if choice.high is None else min(end, choice.high + 1))
    for _, partition, records in log.read(spans):
        for at in range(0, len(records), _CHUNK):
            letters = [_letter(partition, *row) for row in rows(records.slice(at, at + _CHUNK))]
            yield [letter for letter in letters if choice.takes(letter)]


def _letter(partition, offset, timestamp, key, value, headers):
    context = {name[len(PREFIX) :]: None if data is None else data.decode("utf-8", "replace") for name, data in headers if name.startswith(PREFIX)}
    return Letter(partition, offset, timestamp, key, value, [each for each in headers if not each[0].startswith(PREFIX)], context)


# --- Progress ------------------------------------------------------------------------------------------------------


class Done:
    """The replayed offsets of one partition: all below `upto`, and `spans`, a sorted list of later [first, last]."""

    def __init__(self, upto=0, spans=()):
        self.upto, self.spans = upto, [list(span) for span in spans]

    @classmethod
    def of(cls, offset, metadata):
        spans = []
        if metadata and _DONE.fullmatch(metadata):
            for part in metadata.removeprefix("done ").split(","):
                low, _, high = part.partition("-")
                spans.append([int(low), int(high or low)])
        return cls(offset, spans)

    def __contains__(self, offset):
        return offset < self.upto or any(low <= offset <= high for low, high in self.spans)

    def with_(self, offsets):
        """This with further offsets."""
        merged = []
        for low, high in sorted([*self.spans, *([offset, offset] for offset in offsets)]):
            if merged and low <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        upto = self.upto
        while merged and merged[0][0] <= upto:
            upto = max(upto, merged.pop(0)[1] + 1)
        return Done(upto, merged)

    def commit(self):
        """(offset, metadata)"""
        return self.upto, ("done " + ",".join(str(low) if low == high else f"{low}-{high}" for low, high in self.spans)) if self.spans else ""


def replayed(log, queue):
    """{partition: Done} of a queue."""
    begins = {pair: begin for pair, (begin, _) in log.ranges(log.partitions(queue)).items()}
    commits = log.admin.group_commits(_GROUP + queue)
    # Letters that retention has deleted count as done.
    return {pair[1]: _at_least(Done.of(*commits.get(pair, (0, ""))), begin) for pair, begin in begins.items()}


def _at_least(done, begin):
    return Done(max(done.upto, begin), [span for span in done.spans if span[1] >= begin]).with_(())


# --- Replay --------------------------------------------------------------------------------------------------------


class Outcome:
    """The result of a replay, or of its dry run."""

    def __init__(self):
        self.sent = collections.Counter()  # topic -> letters
        self.before = 0  # had been replayed earlier
        self.left = collections.Counter()  # reason -> letters that were not replayed


def replay(log, queue, choice=Choice(), to=None, dry_run=False, again=False, as_polled=False, most=None, tell=lambda looked_at: None):
    """Send letters to their original topics (or `to`), without the headers that describe the failure; returns an Outcome.

    `again` includes letters replayed before; `as_polled` includes source records that failed before serialization. `tell` is called
    after each chunk with the number of letters read.
    """
    looked_at = 0
    outcome, done, counts = Outcome(), replayed(log, queue), {}
    for letters in read_letters(log, queue, choice):
        chosen = []
        for letter in letters:
            if most is not None and sum(outcome.sent.values()) >= most:
                break
            if not again and letter.offset in done[letter.partition]:
                outcome.before += 1
            elif why := _why_not(letter, to, as_polled):
                outcome.left[why] += 1
            else:
                chosen.append(letter)
                outcome.sent[to or letter.context["topic"]] += 1
        if chosen:
            _send(log, queue, chosen, to, done, counts, dry_run)
        looked_at += len(letters)
        tell(looked_at)
    return outcome


def _why_not(letter, to, as_polled):
    if letter.is_cut:
        return "incomplete: a part of it was too large for the queue"
    if not letter.is_whole and not as_polled:
        return "it failed before serialization and is stored as polled (send it with --as-polled)"
    if to is None and not letter.context.get("topic"):
        return f"it has no header {PREFIX}topic with its original topic (name one with --to)"
    return None


def _send(log, queue, letters, to, done, counts, dry_run):
    """Send a chunk and commit it; in a dry run only check that the commit would fit."""
    partition = letters[0].partition
    noted = done[partition].with_([letter.offset for letter in letters])
    if len(noted.commit()[1]) > _MOST_METADATA:
        raise ConnectError(
            f"The replayed offsets of '{queue}', partition {partition}, have too many gaps to be stored. "
            "Replay the letters in between, with --offsets or without --error-class, then continue."
        )
    for (topic, number), each in _by_destination(log, letters, to, counts).items():
        if not dry_run:
            log.write(topic, number, _records(each))
    if not dry_run:
        log.admin.alter_group_offsets(_GROUP + queue, {(queue, partition): noted.commit()})
        done[partition] = noted


def _by_destination(log, letters, to, counts):
    """{(topic, partition or None): letters}; each letter's original partition, if its topic still has it."""
    found = {}
    for letter in letters:
        topic, number = to or letter.context["topic"], letter.context.get("partition") or ""
        if topic not in counts:
            counts[topic] = len(log.partitions(topic))
        kept = to is None and number.isdigit() and int(number) < counts[topic]
        found.setdefault((topic, int(number) if kept else None), []).append(letter)
    return found


def _records(letters):
    keys = [letter.key for letter in letters]
    times = np.array([letter.timestamp for letter in letters], np.int64)
    headers = [letter.headers for letter in letters]
    return Records(
        len(letters),
        ByteColumn.of(keys) if any(key is not None for key in keys) else None,
        ByteColumn.of([letter.value for letter in letters]),
        times if (times != NO_TIMESTAMP).any() else None,
        headers if any(headers) else None,
    )
