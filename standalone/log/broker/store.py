"""The embedded log's metadata in one SQLite file: topics and their configs, groups, transactions, users, producer ids.

The owner thread uses it. In WAL mode with synchronous=NORMAL a commit survives a crash of the process, without waiting for the disk. Group
offsets need no more: after a power loss the last ones may be missing, which repeats records but loses none. Other writes are fsynced before
they are acknowledged, since losing one could assign a topic's data or a producer's id twice: such a write counts in `writes`, and the thread
that fsyncs the log's files runs a `StoreFlush` before the response is sent. That thread also checkpoints the journal into the
database.
"""

import json
import logging
import os
import sqlite3
import uuid
from contextlib import contextmanager

from standalone.errors import StartError
from standalone.log.broker.refusal import Refusal, codes
from standalone.private import make_private

FILE = "log.sqlite"
FORMAT = 2
CHECKPOINT_BYTES = 4 << 20  # journal size
PRODUCER_ID_BLOCK = 1000  # ids reserved per write

logger = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS topics (
    name TEXT PRIMARY KEY, id TEXT NOT NULL, partitions INTEGER NOT NULL, configs TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS starts (
    topic TEXT, partition INTEGER, start INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS offsets (
    group_id TEXT, topic TEXT, partition INTEGER,
    offset INTEGER NOT NULL, leader_epoch INTEGER NOT NULL, metadata TEXT, committed_ms INTEGER NOT NULL,
    PRIMARY KEY (group_id, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shares (
    group_id TEXT, topic TEXT, partition INTEGER,
    topic_id TEXT NOT NULL, start INTEGER NOT NULL, runs TEXT NOT NULL,
    PRIMARY KEY (group_id, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    kind TEXT, name TEXT, body TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""


class Store:
    """If a writing method raises Refusal, nothing was stored."""

    def __init__(self, folder):
        self.path = os.path.join(folder, FILE)
        try:
            make_private(self.path)
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA wal_autocheckpoint=0")  # a checkpoint within a commit would fsync
            self._db.executescript(_SCHEMA)
            found = self._meta("format")
        except (sqlite3.Error, OSError) as error:
            raise StartError(
                f"The embedded log's file {self.path} cannot be opened ({error}). If it is damaged, move it away with its -wal and "
                "-shm files: the topics are found again by their folders; group offsets and topic configs are lost."
            ) from error
        self.is_new = found is None
        if self.is_new:
            with self._transaction():
                self._set_meta("format", FORMAT)
                self._set_meta("cluster_id", uuid.uuid4().hex[:22])
                self._set_meta("next_producer_id", 1)
        elif int(found) > FORMAT:
            raise StartError(f"{self.path} was written by a later version of this program (format {found}, known is {FORMAT}).")
        elif int(found) < FORMAT:
            with self._transaction():
                self._set_meta("format", FORMAT)
        self.failed = None
        self.closed = False
        self.writes = self.synced_writes = 0
        self.cluster_id = self._meta("cluster_id")
        self._next_producer_id = self._reserved_until = int(self._meta("next_producer_id"))

    def close(self):
        self.closed = True
        self._db.close()

    # --- Flushing, like a partition

    def has_long_journal(self):
        """Whether a flush is due that no request waits for: committed offsets are fsynced only here. Resets the flag."""
        try:
            return os.path.getsize(self.path + "-wal") > CHECKPOINT_BYTES
        except OSError:
            return False

    def shorten_journal(self):
        """Schedule it for the next flush."""
        self.writes += 1

    @property
    def is_dirty(self):
        return self.synced_writes < self.writes

    def begin_flush(self):
        return StoreFlush(self)

    def end_flush(self, flush):
        if flush.error:
            self.failed = f"Syncing {self.path} failed: {flush.error}."
            logger.error("%s", self.failed)
        else:
            self.failed = None
            self.synced_writes = max(self.synced_writes, flush.writes)

    # --- Topics

    def topics(self):
        """[(name, id, partitions, configs)]"""
        rows = self._db.execute("SELECT name, id, partitions, configs FROM topics ORDER BY name")
        return [(name, uuid.UUID(topic_id), partitions, json.loads(configs)) for name, topic_id, partitions, configs in rows]

    def save_topic(self, name, topic_id, partitions, configs):
        with self._durably():
            self._db.execute("REPLACE INTO topics VALUES (?, ?, ?, ?)", (name, topic_id.hex, partitions, json.dumps(configs)))

    def delete_topic(self, name):
        """Delete a topic and the offsets that groups have committed on it."""
        with self._durably():
            for table, column in (("topics", "name"), ("starts", "topic"), ("offsets", "topic"), ("shares", "topic")):
                self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))

    def starts(self):
        """{(topic, partition): first offset after DeleteRecords}"""
        return {(topic, number): start for topic, number, start in self._db.execute("SELECT topic, partition, start FROM starts")}

    def save_start(self, topic, number, start):
        with self._durably():
            self._db.execute("REPLACE INTO starts VALUES (?, ?, ?)", (topic, number, start))

    # --- Groups

    def offsets(self):
        """[(group, topic, partition, offset, leader epoch, metadata, committed at)]"""
        return self._db.execute("SELECT * FROM offsets ORDER BY group_id, topic, partition").fetchall()

    def save_offsets(self, group, rows):
        """rows: [(topic, partition, offset, leader epoch, metadata, committed at)]"""
        with self._transaction():
            self._db.executemany("REPLACE INTO offsets VALUES (?, ?, ?, ?, ?, ?, ?)", [(group, *row) for row in rows])

    def delete_offsets(self, group, partitions):
        """partitions: [(topic, partition)]"""
        with self._transaction():
            for topic, number in partitions:
                self._db.execute("DELETE FROM offsets WHERE group_id = ? AND topic = ? AND partition = ?", (group, topic, number))

    def delete_group(self, group):
        with self._transaction():
            self._db.execute("DELETE FROM offsets WHERE group_id = ?", (group,))
            self._db.execute("DELETE FROM shares WHERE group_id = ?", (group,))

    def shares(self):
        """[(group, topic, partition, topic id, start offset, rows of InFlight)]"""
        rows = self._db.execute("SELECT group_id, topic, partition, topic_id, start, runs FROM shares ORDER BY group_id, topic, partition")
        return [(*key, uuid.UUID(topic_id), start, json.loads(runs)) for *key, topic_id, start, runs in rows]

    def save_shares(self, group, rows):
        """rows: [(topic, partition, topic id in hex, start offset, rows of InFlight)]"""
        with self._transaction():
            values = [(group, *key, json.dumps(runs, separators=(",", ":"))) for *key, runs in rows]
            self._db.executemany("REPLACE INTO shares VALUES (?, ?, ?, ?, ?, ?)", values)

    def delete_shares(self, group, topic):
        with self._transaction():
            self._db.execute("DELETE FROM shares WHERE group_id = ? AND topic = ?", (group, topic))

    # --- Documents: small state, stored as JSON by kind and name

    def documents(self, kind):
        """{name: body}"""
        rows = self._db.execute("SELECT name, body FROM documents WHERE kind = ?", (kind,))
        return {name: json.loads(body) for name, body in rows}

    def save_document(self, kind, name, body, durably=True):
        with self._durably() if durably else self._transaction():
            self._db.execute("REPLACE INTO documents VALUES (?, ?, ?)", (kind, name, json.dumps(body)))

    def delete_document(self, kind, name):
        with self._durably():
            self._db.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))

    # --- Producer ids

    def skip_producer_ids(self, highest):
        """Never issue ids up to `highest`, which records use although this file does not know them.

        A block of further ids is skipped too: they may have been issued but not used for a record yet.
        """
        if highest >= self._next_producer_id:
            with self._durably():
                self._set_meta("next_producer_id", highest + 1 + PRODUCER_ID_BLOCK)
            self._next_producer_id = self._reserved_until = highest + 1 + PRODUCER_ID_BLOCK

    def new_producer_id(self):
        if self._next_producer_id == self._reserved_until:
            with self._durably():
                self._set_meta("next_producer_id", self._reserved_until + PRODUCER_ID_BLOCK)
            self._reserved_until += PRODUCER_ID_BLOCK
        self._next_producer_id += 1
        return self._next_producer_id - 1

    # --- Helpers

    def _meta(self, name):
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def _set_meta(self, name, value):
        self._db.execute("REPLACE INTO meta VALUES (?, ?)", (name, str(value)))

    @contextmanager
    def _transaction(self):
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            logger.error("Writing to %s failed: %s", self.path, error)
            raise Refusal(codes.KafkaStorageError, f"Writing to {self.path} failed: {error}.") from error

    @contextmanager
    def _durably(self):
        with self._transaction():
            yield
        self.writes += 1


class StoreFlush:
    """fsync the commits, and checkpoint the journal if it has grown; may run on any thread."""

    def __init__(self, store):
        self.partition = store
        self.writes = store.writes
        self.error = None
        self._path = store.path

    def run(self):
        try:
            self._sync()
        except FileNotFoundError:
            pass  # no journal: nothing was written since the last checkpoint
        except OSError as error:
            self.error = error.strerror
        except sqlite3.Error as error:
            logger.debug("%s: the journal could not be emptied: %s", self._path, error)

    def _sync_folder(self):
        """fsync the folder that holds topic folders: otherwise a deleted topic's folder could return after a power loss and be adopted."""
        handle = os.open(os.path.dirname(self._path), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _sync(self):
        handle = os.open(self._path + "-wal", os.O_RDONLY)
        try:
            os.fsync(handle)
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        self._sync_folder()
        if size > CHECKPOINT_BYTES:
            db = sqlite3.connect(self._path, isolation_level=None)
            try:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                db.close()
