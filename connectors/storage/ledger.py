"""Exactly-once commits on file systems with atomic rename: put a topic partition's files in place, and recover interrupted
commits.

    topics/+tmp/orders/0/OWNER/      the owner's folder: its files and its log
    logs/orders/0/log                the log of the last complete commit: the next offset
    topics/orders/…                  files visible to readers

The steps of a commit:
  1. files are complete and fsynced in the owner's folder
  2. a log with their names and the next offset is renamed into the owner's folder: now the commit is decided
  3. each file is renamed to its final path
  4. the log is renamed to logs/…: the commit is done

A task that takes over a partition first renames the folders of earlier owners: from then on those can neither create nor rename files there, and no
timeout is involved. It then completes decided commits and discards others. An empty, truncated or corrupt log loses nothing: the offsets in
file names show which commits were decided, since files become visible only after the decision, and those of the next commit only after
all of them are in place.
"""

import json
import logging
import uuid
import zlib
from typing import Any, NamedTuple

from standalone import ConnectError

log = logging.getLogger(__name__)

TEMPORARY = "+tmp"
_LOG, _PART, _FILES, _TAKEN = "log", "log.part", "files", ".taken"


class Closed(NamedTuple):
    """A complete file."""

    first: int
    last: int
    folder: str  # below the topic's folder
    spool: Any
    count: int = 0
    suffix: str = ""  # of its name, if not the format's extension
    sides: tuple = ()  # (name suffix, spool) of the companion files


class Overtaken(Exception):
    """Files with other offset ranges already contain some of these records."""


class Ledger:
    is_clean = True  # whether no file spans the last committed offset

    def __init__(self, files, names, topic, partition, *, topics_dir, logs_dir, delimiter="/", run=None):
        self._files, self._names = files, names
        self._topic, self._partition = topic, partition
        self._place = f"{topics_dir}/{topic}"
        self._owners = f"{topics_dir}/{TEMPORARY}/{topic}/{partition}"
        self._done = f"{logs_dir}/{topic}/{partition}/{_LOG}"
        self._delimiter = delimiter
        self._run = run or (lambda call, items: [call(item) for item in items])  # runs several at once
        self._owner = None
        self._begun = None  # the commit in progress: [(staged, place)], the next offset
        self._written, self._placed = set(), set()  # of the commit in progress: complete files, files in place

    # --- Takeover ---

    def take_over(self):
        """Become the owner; return the next offset to write, or None if nothing has been written."""
        files = self._files
        files.make_folders(self._owners)
        files.make_folders(self._place)
        files.make_folders(_parent(self._done))
        nexts = []
        for name in files.folders(self._owners):
            if (folder := self._freeze(name)) is not None:
                nexts.append(self._settle(folder))
        self._owner = f"{self._owners}/{uuid.uuid4().hex}"
        files.make_folders(f"{self._owner}/{_FILES}")
        nexts.append(self._read_done())
        known = [each for each in nexts if each is not None]
        return max(known) if known else None

    @property
    def folder(self):
        """The folder that only this owner writes to."""
        return self._owner

    def _freeze(self, name):
        """Rename a folder away from its owner; None if another task was faster."""
        frozen = f"{self._owners}/{uuid.uuid4().hex}{_TAKEN}"
        try:
            self._files.rename(f"{self._owners}/{name}", frozen)
        except FileNotFoundError:
            return None
        return frozen

    def _settle(self, folder):
        """Complete or discard the commit in a folder; return the next offset, or None."""
        files = self._files
        staged = sorted(files.walk(f"{folder}/{_FILES}"))
        said = self._parsed(f"{folder}/{_LOG}")
        found = None
        if said is not None:
            entries = [(f"{folder}/{_FILES}/{path}", f"{self._place}/{path}") for path in said["files"]]
            if all(files.exists(source) or files.exists(place) for source, place in entries):
                self._put_in_place(entries)
                found = said["next"]
                staged = []
        if staged:
            found = self._settle_by_names(folder, staged)
        if found is not None:
            files.write_bytes(f"{folder}/{_PART}", [_log_text(found, [], self._topic, self._partition)])
            files.rename(f"{folder}/{_PART}", self._done)
            files.sync_folders([_parent(self._done)])
        files.delete_folder(folder)
        return found

    def _settle_by_names(self, folder, staged):
        """Recover without a log: a commit was decided if any of its files is visible; its offsets end at the highest visible one."""
        seen = self._highest()
        decided = [path for path in staged if seen is not None and (first := self._first(path)) is not None and first <= seen]
        if not decided:
            return None
        where = self._topic, self._partition
        log.warning("A log of topic %s, partition %s is not readable: recovering %s files by their names", *where, len(decided))
        self._put_in_place([(f"{folder}/{_FILES}/{path}", f"{self._place}/{path}") for path in decided])
        return self._highest() + 1

    def _read_done(self):
        said = self._parsed(self._done)
        if said is not None:
            return said["next"]
        highest = self._highest()  # the first start, or a lost log
        return None if highest is None else highest + 1

    def _parsed(self, path):
        """Parse a log; None if it is missing or invalid."""
        try:
            data = self._files.read(path)
        except FileNotFoundError:
            return None
        try:
            check, _, text = data.partition(b" ")
            said = json.loads(text)
            if int(check, 16) == zlib.crc32(text) and (said["topic"], said["partition"]) == (self._topic, self._partition):
                return said
        except (ValueError, KeyError, TypeError):
            pass
        log.warning("%s is not a valid commit log (%d bytes): recovering from the names of the files", path, len(data))
        return None

    def _highest(self):
        """Return the highest offset in the visible files' names."""
        last = (self._names.last_offset(path.rpartition("/")[2], self._topic, self._partition) for path in self._files.walk(self._place))
        return max((each for each in last if each is not None), default=None)

    def _first(self, path):
        return self._names.first_offset(path.rpartition("/")[2], self._topic, self._partition)

    # --- Commits ---

    def commit(self, closed, next_offset):
        """Put these files in place. May be repeated after an error; completed steps are not repeated."""
        try:
            if self._begun is None:
                self._decide(closed, next_offset)
            entries, _ = self._begun
            self._put_in_place(entries)
            self._files.rename(f"{self._owner}/{_LOG}", self._done)
            self._begun = None
            self._written.clear()
            self._placed.clear()
        except FileNotFoundError as error:
            self.must_be_owner(error)

    @property
    def is_under_way(self):
        return self._begun is not None

    def _decide(self, closed, next_offset):
        files, staged_in = self._files, f"{self._owner}/{_FILES}"
        paths = [self._path_of(each) for each in closed]
        for folder in dict.fromkeys(_parent(path) for path in paths):
            if folder:
                files.make_below(staged_in, f"{staged_in}/{folder}")
        self._run(lambda pair: self._write_one(f"{staged_in}/{pair[0]}", pair[1].spool), list(zip(paths, closed)))
        files.write_bytes(f"{self._owner}/{_PART}", [_log_text(next_offset, paths, self._topic, self._partition)])
        files.sync_folders([f"{staged_in}/{_parent(path)}" for path in paths])
        files.rename(f"{self._owner}/{_PART}", f"{self._owner}/{_LOG}")
        files.sync_folders([self._owner])
        self._begun = [(f"{staged_in}/{path}", f"{self._place}/{path}") for path in paths], next_offset

    def _write_one(self, path, spool):
        if path not in self._written:
            self._files.write(path, spool)
            self._written.add(path)

    def _path_of(self, closed):
        name = self._names.of(self._topic, self._partition, closed.first, closed.last)
        return f"{closed.folder}{self._delimiter}{name}" if closed.folder else name

    def _put_in_place(self, entries):
        files = self._files
        for folder in dict.fromkeys(_parent(place) for _, place in entries):
            files.make_folders(folder)
        self._run(lambda entry: self._place_one(*entry), entries)
        files.sync_folders([_parent(place) for _, place in entries])

    def _place_one(self, staged, place):
        if staged in self._placed:
            return
        if self._files.exists(place):  # placed by an earlier attempt: same offsets, so the same records
            self._files.delete(staged)
        else:
            self._files.rename(staged, place)
        self._placed.add(staged)

    def must_be_owner(self, error):
        """Raise the cause: another task may have renamed the folder."""
        if not self._files.exists(self._owner):
            raise ConnectError(
                f"Partition {self._partition} of topic {self._topic} was taken over by another task, which continues after what this task had "
                "committed. Nothing was written twice. Restart this task if it should continue instead."
            ) from error
        raise error

    def unwritten(self, offsets, folders_of, folders):
        """Return the rows that are in no file yet; None for all, as tasks start after the written ones."""
        return None

    def release(self):
        """Discard what was not committed."""
        if self._owner is not None and not self.is_under_way:
            self._files.delete_folder(self._owner)
        self._owner = None


def _log_text(next_offset, paths, topic, partition):
    text = json.dumps({"topic": topic, "partition": partition, "next": next_offset, "files": paths}, separators=(",", ":")).encode()
    return b"%08x " % zlib.crc32(text) + text


def _parent(path):
    return path.rpartition("/")[0]
