"""The registry's SQLite store: schemas by id, versions of subjects, settings. Changes are on disk before the response is sent.

Ids are per context and never reused. Soft-deleted versions stay in the store and are shown on request.
"""

import json
import sqlite3
import threading
from dataclasses import asdict, dataclass

from standalone.errors import StartError
from standalone.extras import without
from standalone.private import make_private
from standalone.schema_registry.schema import Reference, RegistrySchema
from standalone.schema_registry.server.subjects import Subject

with without("pandas"):  # saves 44 MB of memory: sqlite-utils imports it only for the SQL type of its timestamps
    from sqlite_utils import Database

_TABLES = """
CREATE TABLE IF NOT EXISTS schemas (
    context TEXT NOT NULL, id INTEGER NOT NULL, guid TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, refs TEXT NOT NULL,
    metadata TEXT, rules TEXT, PRIMARY KEY (context, id)
);
CREATE INDEX IF NOT EXISTS schemas_by_guid ON schemas (guid);
CREATE TABLE IF NOT EXISTS versions (
    context TEXT NOT NULL, subject TEXT NOT NULL, version INTEGER NOT NULL, id INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (context, subject, version)
);
CREATE INDEX IF NOT EXISTS versions_by_id ON versions (context, id);
CREATE TABLE IF NOT EXISTS settings (
    context TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (context, subject, name)
);
CREATE TABLE IF NOT EXISTS counters (context TEXT PRIMARY KEY, last INTEGER NOT NULL);
"""
_SELECT = """
SELECT v.context, v.subject, v.version, v.deleted, s.id, s.guid, s.kind, s.text, s.refs, s.metadata, s.rules
FROM versions v JOIN schemas s ON s.context = v.context AND s.id = v.id
"""


@dataclass(frozen=True)
class Stored:
    """A schema with its id; for a version of a subject also with subject and version."""

    id: int
    guid: str
    schema: RegistrySchema
    metadata: dict | None = None
    rules: dict | None = None
    subject: Subject | None = None
    version: int | None = None
    deleted: bool = False


class Store:
    """One connection with one lock: `with store:` is an isolated transaction."""

    def __init__(self, path):
        self._path = path
        self._lock = threading.RLock()
        self._deep = 0
        try:
            make_private(path)
            connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            self._db = Database(connection)
            connection.executescript(_TABLES)
        except (sqlite3.Error, OSError) as error:
            raise StartError(f"The schemas in {path} (embedded.registry.file) cannot be opened: {error}.") from error

    def __enter__(self):
        self._lock.acquire()
        if self._deep == 0:
            self._db.conn.execute("BEGIN IMMEDIATE")
        self._deep += 1
        return self

    def __exit__(self, kind, error, trace):
        try:
            self._deep -= 1
            if self._deep == 0:
                self._db.conn.execute("ROLLBACK" if kind else "COMMIT")
        finally:
            self._lock.release()

    def close(self):
        with self._lock:
            self._db.conn.close()

    # ---------------------------------------------------------------- schemas
    def by_id(self, context, id):
        rows = self._rows("SELECT * FROM schemas WHERE context = ? AND id = ?", context, id)
        return _stored(rows[0]) if rows else None

    def same(self, context, guid):
        """The stored schema of a context that equals this one, or None."""
        rows = self._rows("SELECT * FROM schemas WHERE context = ? AND guid = ?", context, guid)
        return _stored(rows[0]) if rows else None

    def by_guid(self, guid):
        """[(context, Stored)]"""
        return [(row["context"], _stored(row)) for row in self._rows("SELECT * FROM schemas WHERE guid = ? ORDER BY context", guid)]

    def add_schema(self, context, guid, schema, metadata, rules, id=None):
        """Store the schema with the next id, or with the given one; returns the id."""
        with self:
            rows = self._rows("SELECT last FROM counters WHERE context = ?", context)
            last = rows[0]["last"] if rows else 0
            id = last + 1 if id is None else id
            self._do("INSERT OR REPLACE INTO counters VALUES (?, ?)", context, max(last, id))
            refs = json.dumps([asdict(each) for each in schema.references])
            values = (context, id, guid, schema.kind, schema.text, refs, _dumped(metadata), _dumped(rules))
            self._do("INSERT INTO schemas VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *values)
        return id

    def highest_id(self, context):
        return self._rows("SELECT COALESCE(MAX(id), 0) AS last FROM schemas WHERE context = ?", context)[0]["last"]

    def contexts(self):
        return [row["context"] for row in self._rows("SELECT DISTINCT context FROM versions ORDER BY context")]

    # ---------------------------------------------------------------- versions
    def versions(self, subject, deleted=False):
        """All versions in order, optionally with the soft-deleted ones."""
        more = "" if deleted else " AND v.deleted = 0"
        rows = self._rows(f"{_SELECT} WHERE v.context = ? AND v.subject = ?{more} ORDER BY v.version", *subject)
        return [_stored(row) for row in rows]

    def all_versions(self, deleted=False):
        more = "" if deleted else " WHERE v.deleted = 0"
        return [_stored(row) for row in self._rows(f"{_SELECT}{more} ORDER BY v.context, v.subject, v.version")]

    def of_id(self, context, id, deleted=False):
        """The versions that have this schema."""
        more = "" if deleted else " AND v.deleted = 0"
        return [_stored(row) for row in self._rows(f"{_SELECT} WHERE v.context = ? AND v.id = ?{more} ORDER BY v.subject, v.version", context, id)]

    def referring(self, subject, version):
        """Ids of the schemas that reference a version and are themselves a version of a subject."""
        found = []
        for each in self.all_versions():
            for reference in each.schema.references:
                named = Subject.of(reference.subject)
                named = Subject(each.subject.context, named.name) if not reference.subject.startswith(":") else named
                if named == subject and reference.version == version and each.id not in found:
                    found.append(each.id)
        return found

    def add_version(self, subject, version, id):
        self._do("INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?, 0)", *subject, version, id)

    def mark_deleted(self, subject, version):
        self._do("UPDATE versions SET deleted = 1 WHERE context = ? AND subject = ? AND version = ?", *subject, version)

    def remove_version(self, subject, version):
        """Hard delete; also deletes the schema if no subject uses it any more."""
        self._do("DELETE FROM versions WHERE context = ? AND subject = ? AND version = ?", *subject, version)
        unused = "SELECT id FROM versions WHERE context = ?"
        self._do(f"DELETE FROM schemas WHERE context = ? AND id NOT IN ({unused})", subject.context, subject.context)

    # ---------------------------------------------------------------- settings
    def setting(self, subject, name):
        rows = self._rows("SELECT value FROM settings WHERE context = ? AND subject = ? AND name = ?", *subject, name)
        return json.loads(rows[0]["value"]) if rows else None

    def set_setting(self, subject, name, value):
        self._do("INSERT OR REPLACE INTO settings VALUES (?, ?, ?, ?)", *subject, name, json.dumps(value))

    def remove_setting(self, subject, name):
        self._do("DELETE FROM settings WHERE context = ? AND subject = ? AND name = ?", *subject, name)

    # ---------------------------------------------------------------- SQL
    def _rows(self, sql, *values):
        with self._lock:
            return list(self._db.query(sql, values))

    def _do(self, sql, *values):
        with self:
            self._db.conn.execute(sql, values)


def _stored(row):
    references = tuple(Reference(**each) for each in json.loads(row["refs"]))
    schema = RegistrySchema(row["text"], row["kind"], references)
    about = row["id"], row["guid"], schema, _loaded(row["metadata"]), _loaded(row["rules"])
    if "subject" not in row:
        return Stored(*about)
    return Stored(*about, Subject(row["context"], row["subject"]), row["version"], bool(row["deleted"]))


def _dumped(value):
    return None if value is None else json.dumps(value, sort_keys=True)


def _loaded(text):
    return None if text is None else json.loads(text)
