"""What the worker remembers beside source offsets: connectors, their target states, statuses and history, its own identity.

SQLite in `state.dir`, readable by anyone's `sqlite3`. One thread owns the database; others post commands to it. What waits is done in one
transaction, so that a burst costs one fsync; whoever asked hears of it once that is committed, and waits for a bounded time. Whatever is
wrong with one command, the thread and the others continue. A lock file keeps a second worker out.
"""

import concurrent.futures
import fcntl
import json
import logging
import os
import queue
import sqlite3
import threading
import uuid

from standalone.errors import ConnectError, StartError
from standalone.extras import without
from standalone.private import make_private, open_private

with without("pandas"):  # 44 MB of memory, to know the SQL type of its timestamps
    from sqlite_utils import Database

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
CREATE TABLE IF NOT EXISTS first_schemas (connector TEXT NOT NULL, topic TEXT NOT NULL, schema TEXT NOT NULL, PRIMARY KEY (connector, topic));
CREATE TABLE IF NOT EXISTS loggers (name TEXT PRIMARY KEY, level TEXT NOT NULL, modified_ms INTEGER NOT NULL);
"""
_VERSION = 1
CONNECTOR = -1  # the task number under which a connector's own status stands
DESTROYED = "DESTROYED"  # in the history: deleted

HISTORY_OF_ONE, HISTORY_OF_ALL = 500, 50_000  # entries that are kept
_MOST_TRACE = 16_384  # characters of a trace in the history
_MOST_AT_ONCE = 1000  # commands in a transaction
ASK_SECONDS = 30.0  # how long a caller waits for a disk


class State:
    def __init__(self, folder, clock):
        self.folder = os.path.abspath(folder)
        self._clock = clock
        self._posts = queue.SimpleQueue()  # (command, Future, whether it writes)
        self._thread = None
        self._lock_file = None
        self._trouble = None  # why the last command failed
        self._since = None  # when the thread began with what it is at

    def open(self):
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._lock_file = open_private(os.path.join(self.folder, "lock"), "a+")
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
        opened = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._own, args=(opened,), name="state", daemon=True)
        self._thread.start()
        try:
            opened.result()
        except Exception as error:
            self._lock_file.close()
            why = f"The worker's state {self._path} cannot be opened: {error}. Restore it, or move it away to start without it."
            raise StartError(why) from error
        return self

    def close(self):
        if self._thread is not None:
            self._posts.put(None)
            self._thread.join(ASK_SECONDS)
            self._thread = None
            self._lock_file.close()

    def health_problem(self):
        """What keeps it from remembering, or None. Waits for nothing."""
        since = self._since
        if since is not None and self._clock.monotonic() - since > ASK_SECONDS:
            return f"The worker's state {self._path} has not been written for {self._clock.monotonic() - since:.0f} s: its disk does not answer."
        return self._trouble

    # ---------------------------------------------------------------- what is remembered
    def worker_uuid(self):
        """An identity that outlives restarts, made on first use."""

        def get(db):
            db["meta"].insert({"key": "worker", "value": str(uuid.uuid4())}, ignore=True)
            return db["meta"].get("worker")["value"]

        return self._ask(get)

    def connectors(self):
        """[(name, config, target state, whether it came from a file), ...]"""
        rows = self._ask(lambda db: list(db["connectors"].rows_where(order_by="name")), writes=False)
        return [(row["name"], json.loads(row["config"]), row["target_state"], bool(row["from_file"])) for row in rows]

    def put_connector(self, name, config, target_state, from_file):
        row = {"name": name, "config": json.dumps(config), "target_state": target_state}
        row |= {"from_file": int(from_file), "changed_ms": self._clock.now_ms()}

        def put(db):
            known = db.execute("SELECT config FROM connectors WHERE name = ?", (name,)).fetchone()
            if known is not None and json.loads(known[0]) != config:
                db["first_schemas"].delete_where("connector = ?", [name])
            db["connectors"].insert(row, replace=True)

        self._ask(put)

    def put_target_state(self, name, target_state):
        row = (target_state, self._clock.now_ms(), name)
        self._ask(lambda db: db.execute("UPDATE connectors SET target_state = ?, changed_ms = ? WHERE name = ?", row))

    def delete_connector(self, name, worker_id):
        """Forget it, all but its history."""
        entry = (name, CONNECTOR, DESTROYED, None, worker_id, self._clock.now_ms())

        def delete(db):
            _add_history(db, entry)
            for table, key in (("connectors", "name"), ("topics", "connector"), ("statuses", "connector"), ("first_schemas", "connector")):
                db[table].delete_where(f"{key} = ?", [name])

        self._ask(delete)

    def put_status(self, connector, task, state, trace, worker_id):
        """Posted, not waited for: a status is news, and the next start makes its own."""
        row = (connector, task, state, trace and well_formed(trace), worker_id, self._clock.now_ms())

        def put(db):
            db.execute("INSERT OR REPLACE INTO statuses VALUES (?, ?, ?, ?, ?, ?)", row)
            _add_history(db, row)

        self._post(put)

    def note_event(self, connector, task, state, text, worker_id):
        """Something that happened without a change of state, for the history alone. Posted, as a status is."""
        row = (connector, task, state, well_formed(text), worker_id, self._clock.now_ms())
        self._post(lambda db: _add_history(db, row))

    def history(self, connector):
        """[(task or CONNECTOR, state, trace, worker id, when in ms), …], the newest first."""
        query = "SELECT task, state, trace, worker_id, time_ms FROM history WHERE connector = ? ORDER BY id DESC"
        return self._ask(lambda db: db.execute(query, (connector,)).fetchall(), writes=False)

    def answers_within(self, seconds):
        """Whether its thread does what it is asked, within that time."""
        asked = self._post(lambda db: db.execute("SELECT 1").fetchone(), writes=False)
        concurrent.futures.wait([asked], seconds)
        return asked.done() and asked.exception() is None

    def topics(self):
        """[(connector, topic that it uses), ...]"""
        return self._ask(lambda db: [(row["connector"], row["topic"]) for row in db["topics"].rows], writes=False)

    def put_topic(self, connector, topic):
        """Posted, not waited for: a task says it."""
        self._post(lambda db: db["topics"].insert({"connector": connector, "topic": well_formed(topic)}, ignore=True))

    def delete_topics(self, connector, wait=True):
        command = lambda db: db["topics"].delete_where("connector = ?", [connector])  # noqa: E731
        (self._ask if wait else self._post)(command)

    def first_schemas(self, connector):
        """{topic: text of the first schema of its values}, since the connector's configuration was changed."""
        query = "SELECT topic, schema FROM first_schemas WHERE connector = ?"
        return dict(self._ask(lambda db: db.execute(query, (connector,)).fetchall(), writes=False))

    def put_first_schema(self, connector, topic, schema):
        """Posted, not waited for: a task says it."""
        row = {"connector": connector, "topic": well_formed(topic), "schema": schema}
        self._post(lambda db: db["first_schemas"].insert(row, replace=True))

    def loggers(self):
        """[(name, level, when it was set), ...]"""
        return self._ask(lambda db: [(row["name"], row["level"], row["modified_ms"]) for row in db["loggers"].rows], writes=False)

    def put_loggers(self, rows):
        found = [{"name": well_formed(name), "level": level, "modified_ms": modified} for name, level, modified in rows]
        self._ask(lambda db: db["loggers"].insert_all(found, replace=True))

    # ---------------------------------------------------------------- asked from other threads
    @property
    def _path(self):
        return os.path.join(self.folder, "state.sqlite")

    def _post(self, command, writes=True):
        done = concurrent.futures.Future()
        self._posts.put((command, done, writes))
        return done

    def _ask(self, command, writes=True):
        asked = self._post(command, writes)
        try:
            return asked.result(ASK_SECONDS)
        except concurrent.futures.TimeoutError:
            raise ConnectError(
                f"The worker's state {self._path} did not answer within {ASK_SECONDS:.0f} s: its disk may be full or hang. "
                "Whether the change is stored shows once it answers again."
            ) from None
        except Exception as error:
            raise ConnectError(f"The worker's state {self._path} cannot be read or written: {error}.") from error

    # ---------------------------------------------------------------- the owner
    def _own(self, opened):
        try:
            db = self._open_database()
        except Exception as error:
            opened.set_exception(error)
            return
        opened.set_result(None)
        while (posts := self._next_posts()) is not None:
            self._since = self._clock.monotonic()
            for (_, done, writes), (result, error) in zip(posts, self._outcomes(db, [command for command, *_ in posts])):
                self._follow_health(error, writes)
                if error is None:
                    done.set_result(result)
                else:
                    done.set_exception(error)
            self._since = None
        db.close()

    def _open_database(self):
        make_private(self._path)
        connection = sqlite3.connect(self._path)
        db = Database(connection)
        db.enable_wal()
        db.executescript(_SCHEMA)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise sqlite3.DatabaseError(f"it was written by a later version of this program ({version}, this one knows {_VERSION})")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.commit()
        return db

    def _next_posts(self):
        """All that waits, once there is anything; None when closed and all is done."""
        posts = [self._posts.get()]
        while posts[-1] is not None and len(posts) < _MOST_AT_ONCE and not self._posts.empty():
            posts.append(self._posts.get())
        if posts[-1] is None:
            posts.pop()
            if not posts:
                return None
            self._posts.put(None)
        return posts

    def _outcomes(self, db, commands):
        """[(result, None) or (None, error)]: all in one transaction or, where one of them fails, each in its own."""
        try:
            with db.atomic():
                results = [(command(db), None) for command in commands]
        except Exception as error:
            if len(commands) > 1:
                return [outcome for command in commands for outcome in self._outcomes(db, [command])]
            return [(None, error)]
        return results

    def _follow_health(self, error, writes):
        if error is not None:
            if self._trouble is None:
                log.error("The worker's state could not be stored in %s: %s", self._path, error)
            self._trouble = f"The worker's state {self._path} could not be read or written: {error}."
        elif writes:  # that it can be read says nothing of a disk that is full
            self._trouble = None


def well_formed(text):
    """The text in a form that every file and every answer takes: half a surrogate pair as the escape that it was written as."""
    return text.encode("utf-8", "backslashreplace").decode()


def _add_history(db, row):
    """Note a state, and let go of what is beyond the bounds."""
    connector, trace = row[0], row[3]
    if trace is not None and len(trace) > _MOST_TRACE:
        row = (*row[:3], trace[:_MOST_TRACE] + "\n… cut off here", *row[4:])
    db.execute("INSERT INTO history (connector, task, state, trace, worker_id, time_ms) VALUES (?, ?, ?, ?, ?, ?)", row)
    newest = "SELECT id FROM history WHERE connector = ? ORDER BY id DESC LIMIT 1 OFFSET ?"
    db.execute(f"DELETE FROM history WHERE connector = ? AND id <= ({newest})", (connector, connector, HISTORY_OF_ONE))
    db.execute("DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - ?", (HISTORY_OF_ALL,))
