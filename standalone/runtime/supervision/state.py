"""What the worker remembers beside source offsets: connectors, their target states, statuses and history, its own identity.

SQLite in `state.dir`, readable by anyone's `sqlite3`. One thread owns the connection; others post commands to it. A lock file keeps
a second worker out.
"""

import fcntl
import logging
import os
import queue
import sqlite3
import threading
import uuid

import orjson

from standalone.errors import ConnectError, StartError

log = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS connectors (
    name TEXT PRIMARY KEY, config TEXT NOT NULL, target_state TEXT NOT NULL, from_file INTEGER NOT NULL, changed_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS statuses (
    connector TEXT NOT NULL, task INTEGER NOT NULL, state TEXT NOT NULL, trace TEXT, worker_id TEXT NOT NULL, changed_ms INTEGER NOT NULL,
    PRIMARY KEY (connector, task));
CREATE TABLE IF NOT EXISTS history (
    id INTEGER PRIMARY KEY, connector TEXT NOT NULL, task INTEGER NOT NULL, state TEXT NOT NULL, trace TEXT, worker_id TEXT NOT NULL,
    time_ms INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS history_of ON history (connector, id);
CREATE TABLE IF NOT EXISTS topics (connector TEXT NOT NULL, topic TEXT NOT NULL, PRIMARY KEY (connector, topic));
CREATE TABLE IF NOT EXISTS loggers (name TEXT PRIMARY KEY, level TEXT NOT NULL, modified_ms INTEGER NOT NULL);
"""
_VERSION = 1
CONNECTOR = -1  # the task number under which a connector's own status stands
DESTROYED = "DESTROYED"  # in the history: deleted

HISTORY_OF_ONE, HISTORY_OF_ALL = 500, 50_000  # entries that are kept
_MOST_TRACE = 16_384  # characters of a trace in the history


class State:
    def __init__(self, folder, clock):
        self.folder = os.path.abspath(folder)
        self._clock = clock
        self._posts = queue.SimpleQueue()
        self._thread = None
        self._lock_file = None

    def open(self):
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._lock_file = open(os.path.join(self.folder, "lock"), "a+")
        except OSError as error:
            raise StartError(f"The folder {self.folder} (state.dir) cannot be used: {error.strerror}.") from error
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock_file.seek(0)
            other = self._lock_file.read().strip()
            self._lock_file.close()
            raise StartError(
                f"Another worker{f' (process {other})' if other else ''} runs on {self.folder}. Two would overwrite each other's offsets. "
                f"Stop it, or give this one another offset.storage.file.filename or state.dir."
            ) from None
        self._lock_file.truncate(0)
        self._lock_file.write(str(os.getpid()))
        self._lock_file.flush()
        started = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._own, args=(started,), name="state", daemon=True)
        self._thread.start()
        failure = started.get()
        if failure is not None:
            self._lock_file.close()
            raise StartError(f"The worker's state {self._path} cannot be opened: {failure}. Restore it, or move it away to start without it.")
        return self

    def close(self):
        if self._thread is not None:
            self._posts.put(None)
            self._thread.join()
            self._thread = None
            self._lock_file.close()

    # ---------------------------------------------------------------- what is remembered
    def worker_uuid(self):
        """An identity that outlives restarts, made on first use."""

        def get(db):
            db.execute("INSERT OR IGNORE INTO meta VALUES ('worker', ?)", (str(uuid.uuid4()),))
            return db.execute("SELECT value FROM meta WHERE key = 'worker'").fetchone()[0]

        return self._ask(get)

    def connectors(self):
        """[(name, config, target state, whether it came from a file), ...]"""
        rows = self._ask(lambda db: db.execute("SELECT name, config, target_state, from_file FROM connectors ORDER BY name").fetchall())
        return [(name, orjson.loads(config), state, bool(from_file)) for name, config, state, from_file in rows]

    def put_connector(self, name, config, target_state, from_file):
        row = (name, orjson.dumps(config).decode(), target_state, int(from_file), self._clock.now_ms())
        self._ask(lambda db: db.execute("INSERT OR REPLACE INTO connectors VALUES (?, ?, ?, ?, ?)", row).rowcount)

    def put_target_state(self, name, target_state):
        row = (target_state, self._clock.now_ms(), name)
        self._ask(lambda db: db.execute("UPDATE connectors SET target_state = ?, changed_ms = ? WHERE name = ?", row).rowcount)

    def delete_connector(self, name, worker_id):
        """Forget it, all but its history."""
        entry = (name, CONNECTOR, DESTROYED, None, worker_id, self._clock.now_ms())

        def delete(db):
            _add_history(db, entry)
            db.execute("DELETE FROM connectors WHERE name = ?", (name,))
            db.execute("DELETE FROM topics WHERE connector = ?", (name,))
            return db.execute("DELETE FROM statuses WHERE connector = ?", (name,)).rowcount

        self._ask(delete)

    def put_status(self, connector, task, state, trace, worker_id):
        """Posted, not waited for: a status is news, and the next start makes its own."""
        row = (connector, task, state, trace, worker_id, self._clock.now_ms())

        def put(db):
            db.execute("INSERT OR REPLACE INTO statuses VALUES (?, ?, ?, ?, ?, ?)", row)
            _add_history(db, row)

        self._posts.put((put, None))

    def history(self, connector):
        """[(task or CONNECTOR, state, trace, worker id, when in ms), …], the newest first."""
        query = "SELECT task, state, trace, worker_id, time_ms FROM history WHERE connector = ? ORDER BY id DESC"
        return self._ask(lambda db: db.execute(query, (connector,)).fetchall())

    def answers_within(self, seconds):
        """Whether its thread does what it is asked, within that time."""
        answer = queue.SimpleQueue()
        self._posts.put((lambda db: db.execute("SELECT 1").fetchone(), answer))
        try:
            return answer.get(timeout=seconds)[1] is None
        except queue.Empty:
            return False

    def topics(self):
        """[(connector, topic that it uses), ...]"""
        return self._ask(lambda db: db.execute("SELECT connector, topic FROM topics").fetchall())

    def put_topic(self, connector, topic):
        """Posted, not waited for: a task says it."""
        self._posts.put((lambda db: db.execute("INSERT OR IGNORE INTO topics VALUES (?, ?)", (connector, topic)).rowcount, None))

    def delete_topics(self, connector):
        self._ask(lambda db: db.execute("DELETE FROM topics WHERE connector = ?", (connector,)).rowcount)

    def loggers(self):
        """[(name, level, when it was set), ...]"""
        return self._ask(lambda db: db.execute("SELECT name, level, modified_ms FROM loggers").fetchall())

    def put_loggers(self, rows):
        self._ask(lambda db: db.executemany("INSERT OR REPLACE INTO loggers VALUES (?, ?, ?)", rows).rowcount)

    # ---------------------------------------------------------------- the owner
    @property
    def _path(self):
        return os.path.join(self.folder, "state.sqlite")

    def _ask(self, command):
        answer = queue.SimpleQueue()
        self._posts.put((command, answer))
        result, error = answer.get()
        if error is not None:
            raise ConnectError(f"The worker's state {self._path} cannot be read or written: {error}.") from error
        return result

    def _own(self, started):
        try:
            db = sqlite3.connect(self._path)
            os.chmod(self._path, 0o600)
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(_SCHEMA)
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise sqlite3.DatabaseError(f"it was written by a later version of this program ({version}, this one knows {_VERSION})")
            db.execute(f"PRAGMA user_version = {_VERSION}")
            db.commit()
        except (sqlite3.Error, OSError) as error:
            started.put(error)
            return
        started.put(None)
        while (post := self._posts.get()) is not None:
            command, answer = post
            try:
                result, error = command(db), None
                db.commit()
            except sqlite3.Error as failure:
                result, error = None, failure
                db.rollback()
            if answer is not None:
                answer.put((result, error))
            elif error is not None:
                log.error("News could not be stored in %s: %s", self._path, error)
        db.close()


def _add_history(db, row):
    """Note a state, and let go of what is beyond the bounds."""
    connector, trace = row[0], row[3]
    if trace is not None and len(trace) > _MOST_TRACE:
        row = (*row[:3], trace[:_MOST_TRACE] + "\n… cut off here", *row[4:])
    db.execute("INSERT INTO history (connector, task, state, trace, worker_id, time_ms) VALUES (?, ?, ?, ?, ?, ?)", row)
    newest = "SELECT id FROM history WHERE connector = ? ORDER BY id DESC LIMIT 1 OFFSET ?"
    db.execute(f"DELETE FROM history WHERE connector = ? AND id <= ({newest})", (connector, connector, HISTORY_OF_ONE))
    db.execute("DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - ?", (HISTORY_OF_ALL,))
