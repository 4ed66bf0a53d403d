"""Registers, finds and deletes schemas by the rules of Confluent's registry. Raises Refusal (refusals.py)."""

import hashlib
import json
import threading
import uuid
from collections import OrderedDict
from dataclasses import asdict, replace

from standalone.errors import DataError
from standalone.schema_registry.rules import parse
from standalone.schema_registry.schema import Reference
from standalone.schema_registry.server import refusals
from standalone.schema_registry.server.settings import Settings
from standalone.schema_registry.server.subjects import Subject

LATEST = "latest"
_MOST_PARSED = 500


class Registry:
    """Thread-safe; each change is one transaction of the store."""

    def __init__(self, store):
        self._store = store
        self.settings = Settings(store)
        self._parsed, self._lock = OrderedDict(), threading.Lock()

    # ---------------------------------------------------------------- register
    def register(self, subject, schema, metadata=None, rules=None, normalize=False, id=None, version=None):
        """The Stored version: a new one, or the existing one with the same schema."""
        with self._store:
            subject = self.alias(subject)
            self.settings.refuse_writes(subject)
            mode = self.settings.mode_in_scope(subject)
            if mode == "IMPORT" and id is None:
                raise refusals.not_permitted(f"Subject {subject} is in import mode")
            if mode != "IMPORT" and id is not None and id >= 0:
                raise refusals.not_permitted(f"Subject {subject} is not in import mode")
            id = None if id is None or id < 0 else id
            scope = self.settings.in_scope(subject)
            parsed = self.parse(schema, subject)
            schema = self._as_stored(schema, parsed, normalize or bool(scope.get("normalize")))
            versions = self._store.versions(subject)
            same = next((each for each in reversed(versions) if self._is_same(each, schema, metadata, rules, parsed)), None)
            if same is not None and (id is None or id == same.id) and (version in (None, same.version)):
                return same
            every = self._store.versions(subject, deleted=True)
            number = self._number(every, version, mode)
            if mode != "IMPORT":
                self._hold_against(subject, parsed, versions, scope, metadata)
            guid = _guid(schema, metadata, rules)
            return self._add(subject, number, schema, metadata, rules, guid, id)

    def _add(self, subject, number, schema, metadata, rules, guid, id):
        known = self._store.same(subject.context, guid)
        if id is not None:
            taken = self._store.by_id(subject.context, id)
            if taken is not None and taken.guid != guid:
                raise refusals.not_permitted(f"Overwrite new schema with id {id} is not permitted.")
            found = id if taken is not None else self._store.add_schema(subject.context, guid, schema, metadata, rules, id)
        else:
            found = known.id if known is not None else self._store.add_schema(subject.context, guid, schema, metadata, rules)
        self._store.add_version(subject, number, found)
        return next(each for each in self._store.versions(subject) if each.version == number)

    @staticmethod
    def _number(every, version, mode):
        following = max((each.version for each in every), default=0) + 1
        if version in (None, 0, -1):
            return following
        if mode != "IMPORT" and version != following:
            raise refusals.invalid_schema(f"Version is not one more than previous version: {version} is not {following}")
        return version

    def alias(self, subject):
        """The subject that this one is an alias of, or the subject itself."""
        named = self.settings.in_scope(subject).get("alias") if subject.name else None
        return Subject.of(named) if named else subject

    @staticmethod
    def _as_stored(schema, parsed, normalize):
        return replace(schema, text=parsed.normalized if normalize else parsed.text)

    def _is_same(self, stored, schema, metadata, rules, parsed, normalize=False):
        if stored.schema.kind != schema.kind or set(stored.schema.references) != set(schema.references):
            return False
        if (metadata is not None and stored.metadata != metadata) or (rules is not None and stored.rules != rules):
            return False
        if stored.schema.text == schema.text:
            return True
        if normalize or schema.kind == "PROTOBUF":  # comments and whitespace in .proto text are not significant
            try:
                return self.parse(stored.schema, stored.subject).normalized == parsed.normalized
            except refusals.Refusal:
                return False
        return False

    # ---------------------------------------------------------------- compatibility
    def _hold_against(self, subject, parsed, versions, scope, metadata):
        group = scope.get("compatibilityGroup")
        if group:
            versions = [each for each in versions if _property(each.metadata, group) == _property(metadata, group)]
        problems = self._problems(parsed, versions, scope["compatibilityLevel"], subject)
        if problems:
            raise refusals.incompatible(subject, f"[{', '.join(problems)}]")

    def _problems(self, parsed, versions, level, subject):
        """The reasons why the schema is incompatible with these versions."""
        if level == "NONE" or not versions:
            return []
        held = reversed(versions) if level.endswith("_TRANSITIVE") else versions[-1:]
        for stored in held:
            older = self.parse(stored.schema, stored.subject)
            found = []
            if type(older) is not type(parsed):
                return [f"Incompatible because of different schema type: {stored.schema.kind}"]
            if level.startswith(("BACKWARD", "FULL")):
                found += parsed.misfits(older)
            if level.startswith(("FORWARD", "FULL")):
                found += older.misfits(parsed)
            if found:
                texts = list(dict.fromkeys(map(str, found)))
                more = (f"{{oldSchemaVersion: {stored.version}}}", f"{{oldSchema: '{stored.schema.text}'}}", f"{{compatibility: '{level}'}}")
                return [*texts, *more]
        return []

    def compatibility(self, subject, version, schema, normalize=False):
        """The reasons why the schema is incompatible with a version; None: with all versions that the level includes."""
        subject = self.alias(subject)
        parsed = self.parse(schema, subject)
        level = self.settings.level(subject)
        if version is None:
            return self._problems(parsed, self._store.versions(subject), level, subject)
        if version == LATEST:
            return self._problems(parsed, self._store.versions(subject)[-1:], level, subject)
        return self._problems(parsed, [self.version(subject, version)], level, subject)

    # ---------------------------------------------------------------- find
    def lookup(self, subject, schema, metadata=None, rules=None, normalize=False, deleted=False):
        subject = self.alias(subject)
        versions = self._store.versions(subject, deleted=True)
        if not versions or not deleted and all(each.deleted for each in versions):
            raise refusals.subject_not_found(subject)
        parsed = self.parse(schema, subject)
        normalize = normalize or bool(self.settings.in_scope(subject).get("normalize"))
        schema = self._as_stored(schema, parsed, normalize)
        for each in reversed(versions):
            if (deleted or not each.deleted) and self._is_same(each, schema, metadata, rules, parsed, normalize):
                return each
        raise refusals.schema_not_found()

    def version(self, subject, version, deleted=False):
        """`version` is a number or `latest`."""
        subject = self.alias(subject)
        versions = self._store.versions(subject, deleted)
        if not versions:
            raise refusals.subject_not_found(subject)
        if version == LATEST:
            return versions[-1]
        found = next((each for each in versions if each.version == version), None)
        if found is None:
            raise refusals.version_not_found(version)
        return found

    def versions(self, subject, deleted=False, deleted_only=False):
        subject = self.alias(subject)
        found = self._store.versions(subject, deleted or deleted_only)
        if not found:
            raise refusals.subject_not_found(subject)
        return [each for each in found if each.deleted or not deleted_only]

    def with_metadata(self, subject, wanted, deleted=False):
        for each in reversed(self._store.versions(self.alias(subject), deleted)):
            if wanted.items() <= ((each.metadata or {}).get("properties") or {}).items():
                return each
        raise refusals.schema_not_found()

    def by_id(self, id, subject=None):
        """(context, Stored) in the subject's context; if that is the default context and lacks it, in any context with the subject."""
        context = subject.context if subject else "."
        found = self._store.by_id(context, id)
        if found is None and subject is not None and subject.name and context == ".":
            for other in self._store.contexts():
                if any(each.subject.name == subject.name for each in self._store.of_id(other, id, deleted=True)):
                    return other, self._store.by_id(other, id)
        if found is None:
            raise refusals.schema_not_found(id)
        return context, found

    def by_guid(self, guid):
        found = self._store.by_guid(guid)
        if not found:
            raise refusals.schema_not_found(guid)
        return found

    def of_id(self, id, subject=None, deleted=False):
        """The versions that have this schema."""
        context, _ = self.by_id(id, subject)
        found = self._store.of_id(context, id, deleted)
        return [each for each in found if subject is None or not subject.name or each.subject == subject]

    def highest_id(self, context):
        return self._store.highest_id(context)

    def all_versions(self, deleted=False):
        return self._store.all_versions(deleted)

    def contexts(self):
        return list(dict.fromkeys([".", *self._store.contexts()]))

    def referring(self, subject, version):
        return self._store.referring(self.alias(subject), self.version(subject, version, deleted=True).version)

    # ---------------------------------------------------------------- delete
    def delete_subject(self, subject, permanent=False):
        """Delete; returns the deleted version numbers."""
        with self._store:
            subject = self.alias(subject)
            every = self._store.versions(subject, deleted=True)
            living = [each for each in every if not each.deleted]
            if not every:
                raise refusals.subject_not_found(subject)
            self.settings.refuse_writes(subject)
            if permanent and living:
                raise refusals.subject_not_soft_deleted(subject)
            if not permanent and not living:
                raise refusals.subject_soft_deleted(subject)
            gone = every if permanent else living
            for each in gone:
                self._refuse_referred(each)
            for each in gone:
                self._remove(each, permanent)
            self.settings.forget(subject)
        return [each.version for each in gone]

    def delete_version(self, subject, version, permanent=False):
        with self._store:
            subject = self.alias(subject)
            if version == LATEST:
                version = self.version(subject, LATEST, deleted=permanent).version
            found = self.version(subject, version, deleted=True)
            if found.deleted and not permanent:
                raise refusals.version_soft_deleted(subject, version)
            self.settings.refuse_writes(subject)
            if permanent and not found.deleted:
                raise refusals.version_not_soft_deleted(subject, version)
            self._refuse_referred(found)
            self._remove(found, permanent)
            if not self._store.versions(subject):
                self.settings.forget(subject)
        return found.version

    def _refuse_referred(self, stored):
        if self._store.referring(stored.subject, stored.version):
            raise refusals.reference_exists(stored.subject, stored.version)

    def _remove(self, stored, permanent):
        if permanent:
            self._store.remove_version(stored.subject, stored.version)
        else:
            self._store.mark_deleted(stored.subject, stored.version)

    # ---------------------------------------------------------------- parsing
    def parse(self, schema, subject):
        """The parsed schema with its references. Raises Refusal."""
        references = self._references(schema, subject.context)
        key = schema, tuple(references.items())
        with self._lock:
            if key in self._parsed:
                self._parsed.move_to_end(key)
                return self._parsed[key]
        try:
            found = parse(schema, references)
        except DataError as error:
            raise refusals.invalid_schema(error) from error
        with self._lock:
            self._parsed[key] = found
            while len(self._parsed) > _MOST_PARSED:
                self._parsed.popitem(last=False)
        return found

    def _references(self, schema, context, found=None, path=()):
        """{name: schema} of a schema's direct and indirect references, dependencies first. -1 is the latest version."""
        found = {} if found is None else found
        for reference in schema.references:
            subject = Subject.of(reference.subject)
            if not reference.subject.startswith(":"):
                subject = Subject(context, subject.name)
            if (subject, reference.version) in path:
                raise refusals.invalid_schema(f"The reference '{reference.name}' leads back to itself.")
            try:
                version = LATEST if reference.version == -1 else reference.version
                stored = self.version(subject, version, deleted=version != LATEST)
            except refusals.Refusal as error:
                said = f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
                raise refusals.invalid_schema(said) from error
            self._references(stored.schema, subject.context, found, (*path, (subject, reference.version)))
            found[reference.name] = stored.schema
        return found

    def with_settled_references(self, schema, context="."):
        """Replace references to the latest version by its number."""
        settled = []
        for each in schema.references:
            if each.version == -1:
                subject = Subject.of(each.subject)
                subject = subject if each.subject.startswith(":") else Subject(context, subject.name)
                versions = self._store.versions(subject)
                each = Reference(each.name, each.subject, versions[-1].version if versions else -1)
            settled.append(each)
        return replace(schema, references=tuple(settled))

    def serialized(self, stored, subject):
        """The FileDescriptorProto of a Protobuf schema."""
        return self.parse(stored.schema, subject).serialized


def _property(metadata, name):
    return ((metadata or {}).get("properties") or {}).get(name)


def _guid(schema, metadata, rules):
    """The GUID of a schema, identical in all registries."""
    said = [schema.kind, schema.text, [asdict(each) for each in schema.references], metadata, rules]
    return str(uuid.UUID(hashlib.md5(json.dumps(said, sort_keys=True).encode(), usedforsecurity=False).hexdigest()))
