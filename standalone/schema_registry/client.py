"""The schema registry client of converters and commands. Registered schemas never change, so each is requested only once.

    client = SchemaRegistryClient.from_config({"schema.registry.url": "http://registry:8081"})
    client.register("orders-value", RegistrySchema('"string"'))  ->  1
    client.schema_by_id(1)                                       ->  RegistrySchema(text='"string"', kind='AVRO', references=())

Errors are RegistryError: RegistryDataError (not found, incompatible, invalid), RegistryRetriableError (unreachable after
`max.retries`) and RegistryConfigError (credentials, TLS).
"""

from urllib.parse import quote, urlencode

from standalone.clock import SYSTEM
from standalone.errors import RegistryConfigError, RegistryDataError, RegistryError, RegistryRetriableError  # noqa: F401
from standalone.schema_registry.cache import Cache
from standalone.schema_registry.http import Http
from standalone.schema_registry.keys import CLIENT
from standalone.schema_registry.schema import AVRO, JSON, PROTOBUF, Reference, RegistrySchema  # noqa: F401

_SUBJECTS = 100  # cached at once; max.schemas.per.subject limits each
_DEFAULT_CONTEXT = "."
_SUBJECT_NOT_FOUND, _VERSION_NOT_FOUND, _SCHEMA_NOT_FOUND = 40401, 40402, 40403


class SchemaRegistryClient:
    """Thread-safe. `http` sends the requests (http.py)."""

    def __init__(self, http, config, clock=SYSTEM):
        self._http = http
        most = config["max.schemas.per.subject"] * _SUBJECTS
        self._by_id, self._by_guid, self._guids, self._ids = (Cache(most, clock) for _ in range(4))
        self._registered, self._known, self._versions = Cache(most, clock), Cache(most, clock), Cache(most, clock)
        self._latest = Cache(config["latest.cache.size"], clock, config["latest.cache.ttl.sec"])
        missing = config["missing.cache.size"]
        self._missing_id = Cache(missing, clock, config["missing.id.cache.ttl.sec"])
        self._missing_version = Cache(missing, clock, config["missing.version.cache.ttl.sec"])
        self._missing_schema = Cache(missing, clock, config["missing.schema.cache.ttl.sec"])

    @classmethod
    def from_config(cls, config, clock=SYSTEM):
        """From the keys of a converter or command, as strings or parsed. Raises ConfigError with all errors; does not connect yet."""
        originals = {key: value for key, value in {**getattr(config, "originals", {}), **config}.items() if value is not None}
        parsed = CLIENT.parse({key: value for key, value in originals.items() if key in CLIENT})
        return cls(Http(parsed, originals, clock), parsed, clock)

    def close(self):
        self._http.close()

    # ---------------------------------------------------------------- schemas
    def register(self, subject, schema, normalize=False):
        """Register the schema as a version of the subject, unless it is one already; returns its id."""
        return self.registered(subject, schema, normalize)["id"]

    def registered(self, subject, schema, normalize=False):
        """The registry's response to a registration: `id`, and from newer registries also `guid` and `version`."""
        key = subject, schema, normalize
        found = self._registered.get(key)
        if found is None:
            path = f"/subjects/{_part(subject)}/versions{_query(normalize=normalize)}"
            found = self._http.request("POST", path, schema.body(), f"register {_a(schema)} for the subject '{subject}'")
            self._registered.put(key, found)
            self._latest.forget(subject)
            self._missing_schema.clear()
        return found

    def id_of(self, subject, schema, normalize=False):
        """The id of a schema already registered for the subject."""
        return self.lookup(subject, schema, normalize)["id"]

    def lookup(self, subject, schema, normalize=False):
        """The registry's response for a schema registered for the subject: `id`, `version`, and from newer registries `guid`."""
        key = subject, schema, normalize
        found = self._known.get(key)
        if found is None:
            path = f"/subjects/{_part(subject)}{_query(normalize=normalize)}"
            what = f"find {_a(schema)} among the versions of the subject '{subject}'"
            found = self._known.put(key, self._unless_missing(self._missing_schema, key, "POST", path, schema.body(), what))
        return found

    def schema_by_id(self, id, subject=None):
        key = id, subject
        found = self._by_id.get(key)
        if found is None:
            query = _query(fetchMaxId=False, subject=subject) if subject else _query(fetchMaxId=False)
            answer = self._unless_missing(self._missing_id, key, "GET", f"/schemas/ids/{id}{query}", None, f"get the schema of the id {id}")
            found = self._by_id.put(key, RegistrySchema.of(answer))
        return found

    def guid_of(self, id, subject=None):
        """The GUID of a schema id; None if the registry has no GUIDs (Confluent's has them from 8.0)."""
        key = id, subject
        found = self._guids.get(key)
        if found is None:
            answer = self._http.request("GET", f"/schemas/ids/{id}{_query(subject=subject)}", None, f"get the guid of the schema of the id {id}")
            if not answer.get("guid"):
                return None
            found = self._guids.put(key, answer["guid"])
        return found

    def schema_by_guid(self, guid):
        found = self._by_guid.get(guid)
        if found is None:
            answer = self._unless_missing(self._missing_id, guid, "GET", f"/schemas/guids/{guid}", None, f"get the schema of the guid {guid}")
            found = self._by_guid.put(guid, RegistrySchema.of(answer))
        return found

    def id_of_guid(self, guid, subject):
        """The id of a GUID's schema in the subject's context."""
        key = guid, subject
        found = self._ids.get(key)
        if found is None:
            what, context = f"get the id of the schema of the guid {guid}", _context_of(subject)
            answer = self._http.request("GET", f"/schemas/guids/{guid}/ids", None, what)
            ids = [each["id"] for each in answer if each.get("context", _DEFAULT_CONTEXT) == context]
            if not ids:
                others = ", ".join(str(each.get("context")) for each in answer) or "none"
                said = f"it has none in the context {context} of the subject '{subject}'. Contexts that have it: {others}."
                raise RegistryDataError(f"Could not {what}: {said}")
            found = self._ids.put(key, ids[0])
        return found

    def latest(self, subject):
        """(version, id, schema) of the latest version."""
        found = self._latest.get(subject)
        if found is None:
            found = self._latest.put(subject, self._version(subject, "latest", f"get the newest schema of the subject '{subject}'"))
        return found

    def version(self, subject, version):
        """(id, schema)."""
        key = subject, version
        found = self._versions.get(key)
        if found is None:
            found = self._versions.put(key, self._version(subject, version, f"get version {version} of the subject '{subject}'")[1:])
        return found

    def with_metadata(self, subject, metadata):
        """(version, id, schema) of the latest version whose metadata has these properties."""
        query = "?" + urlencode([pair for name, value in metadata.items() for pair in (("key", name), ("value", value))])
        what = f"get the newest schema of the subject '{subject}' with the metadata {metadata}"
        return _told(self._http.request("GET", f"/subjects/{_part(subject)}/metadata{query}", None, what))

    def compatible(self, subject, schema, version="latest", normalize=False):
        """The reasons why the schema is incompatible with a version; empty if it is compatible."""
        path = f"/compatibility/subjects/{_part(subject)}/versions/{version}{_query(verbose=True, normalize=normalize)}"
        try:
            answer = self._http.request("POST", path, schema.body(), f"hold {_a(schema)} against the subject '{subject}'")
        except RegistryDataError as error:
            if error.code in (_SUBJECT_NOT_FOUND, _VERSION_NOT_FOUND):
                return []  # there is nothing to be compatible with
            raise
        if answer.get("is_compatible"):
            return []
        return [str(each) for each in answer.get("messages") or ()] or [f"It is not compatible with version {version} of the subject '{subject}'."]

    def resolve(self, schema):
        """{name: schema} of the schema's references, including indirect ones; dependencies come first."""
        found = {}
        self._resolve(schema, found)
        return found

    def _resolve(self, schema, found, path=()):
        for reference in schema.references:
            if reference.name in found:
                continue
            if (reference.subject, reference.version) in path:
                raise RegistryDataError(f"The references of the subject '{reference.subject}', version {reference.version}, lead back to itself.")
            _, inner = self.version(reference.subject, reference.version)
            self._resolve(inner, found, (*path, (reference.subject, reference.version)))
            found[reference.name] = inner

    # ---------------------------------------------------------------- requests of commands; never cached
    def subjects(self, prefix=None, deleted=False):
        query = _query(deleted=deleted, subjectPrefix=prefix) if prefix else _query(deleted=deleted)
        return self._http.request("GET", f"/subjects{query}", None, "list the subjects")

    def versions(self, subject, deleted=False):
        return self._http.request("GET", f"/subjects/{_part(subject)}/versions{_query(deleted=deleted)}", None, f"list the versions of '{subject}'")

    def delete(self, subject, version=None, permanent=False):
        """Delete; returns the deleted versions."""
        path = f"/subjects/{_part(subject)}" + (f"/versions/{version}" if version is not None else "") + _query(permanent=permanent)
        what = f"delete {f'version {version} of ' if version is not None else ''}the subject '{subject}'"
        gone = self._http.request("DELETE", path, None, what)
        self.forget()
        return gone if isinstance(gone, list) else [gone]

    def compatibility(self, subject=None):
        """The compatibility level of a subject, or the global one if it has none."""
        path = f"/config/{_part(subject)}?defaultToGlobal=true" if subject else "/config"
        answer = self._http.request("GET", path, None, "get the compatibility level")
        return answer.get("compatibilityLevel") or answer.get("compatibility")

    def set_compatibility(self, level, subject=None):
        path = f"/config/{_part(subject)}" if subject else "/config"
        return self._http.request("PUT", path, {"compatibility": level}, f"set the compatibility level to {level}")["compatibility"]

    def forget(self):
        """Clear all caches."""
        for cache in (self._registered, self._known, self._latest, self._versions, self._by_id, self._by_guid, self._guids, self._ids):
            cache.clear()

    # ---------------------------------------------------------------- helpers
    def _version(self, subject, version, what):
        path = f"/subjects/{_part(subject)}/versions/{version}"
        if version == "latest":
            return _told(self._http.request("GET", path, None, what))
        return _told(self._unless_missing(self._missing_version, (subject, version), "GET", f"{path}?deleted=true", None, what))

    def _unless_missing(self, missing, key, method, path, body, what):
        """Send the request, unless the response was recently that the object does not exist."""
        known = missing.get(key)
        if known is not None:
            raise RegistryDataError(*known)
        try:
            return self._http.request(method, path, body, what)
        except RegistryDataError as error:
            if error.code in (_SUBJECT_NOT_FOUND, _VERSION_NOT_FOUND, _SCHEMA_NOT_FOUND):
                missing.put(key, (str(error), error.status, error.code))
            raise


def _told(answer):
    return answer["version"], answer["id"], RegistrySchema.of(answer)


def _context_of(subject):
    """`.dev` of `:.dev:orders-value`."""
    return subject[1:].partition(":")[0] if subject.startswith(":.") else _DEFAULT_CONTEXT


def _a(schema):
    kind = {AVRO: "Avro", PROTOBUF: "Protobuf", JSON: "JSON"}.get(schema.kind, schema.kind)
    return f"{'an' if kind == 'Avro' else 'a'} {kind} schema"


def _part(text):
    """An encoded path segment: subjects may contain slashes."""
    return quote(text, safe="")


def _query(**values):
    """Only parameters with non-default values: older and other registries may not support them."""
    shown = {name: "true" if value is True else value for name, value in values.items() if value not in (False, None)}
    if values.get("fetchMaxId") is False:
        shown = {"fetchMaxId": "false", **shown}
    return f"?{urlencode(shown)}" if shown else ""
