"""A schema registry in memory: what SchemaRegistryClient offers to the converters, and what it was asked."""

import uuid

from standalone.schema_registry.client import RegistryDataError


class FakeRegistry:
    def __init__(self):
        self.schemas = {}  # id -> RegistrySchema
        self.subjects = {}  # subject -> [id]
        self.incompatible = []  # what `compatible` says
        self.asked = []
        self.gives_guids = True

    def registered(self, subject, schema, normalize=False):
        return self._told(self.register(subject, schema, normalize))

    def _told(self, id, **more):
        return {"id": id, **more, **({"guid": self.guid_of(id)} if self.gives_guids else {})}

    def guid_of(self, id, subject=None):
        return str(uuid.UUID(int=id)) if self.gives_guids else None

    def id_of_guid(self, guid, subject):
        return uuid.UUID(guid).int

    def schema_by_guid(self, guid):
        if uuid.UUID(guid).int not in self.schemas:
            raise RegistryDataError(f"Schema {guid} not found", 404, 40403)
        return self.schemas[uuid.UUID(guid).int]

    def register(self, subject, schema, normalize=False):
        self.asked.append(("register", subject))
        schema_id = next((known for known, each in self.schemas.items() if each == schema), None)
        if schema_id is None:
            schema_id = len(self.schemas) + 1
            self.schemas[schema_id] = schema
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def lookup(self, subject, schema, normalize=False):
        self.asked.append(("lookup", subject))
        for version, schema_id in enumerate(self.subjects.get(subject, ()), 1):
            if self.schemas[schema_id] == schema:
                return self._told(schema_id, version=version)
        raise RegistryDataError(f"Schema not found among the versions of '{subject}'", 404, 40403)

    def id_of(self, subject, schema, normalize=False):
        return self.lookup(subject, schema, normalize)["id"]

    def schema_by_id(self, id, subject=None):
        self.asked.append(("schema_by_id", id))
        if id not in self.schemas:
            raise RegistryDataError(f"Schema {id} not found", 404, 40403)
        return self.schemas[id]

    def latest(self, subject):
        if subject not in self.subjects:
            raise RegistryDataError(f"Subject '{subject}' not found", 404, 40401)
        ids = self.subjects[subject]
        return len(ids), ids[-1], self.schemas[ids[-1]]

    def version(self, subject, version):
        schema_id = self.subjects[subject][version - 1]
        return schema_id, self.schemas[schema_id]

    def compatible(self, subject, schema, version="latest", normalize=False):
        return self.incompatible

    def resolve(self, schema):
        found = {}
        for reference in schema.references:
            _, inner = self.version(reference.subject, reference.version)
            found.update(self.resolve(inner))
            found[reference.name] = inner
        return found


def with_registry(converter_class, registry=None, is_key=False, **config):
    """A converter that asks a FakeRegistry."""
    props = {"schema.registry.url": "http://registry:8081", **{key.replace("__", "."): value for key, value in config.items()}}
    converter = converter_class.of(props, is_key)
    converter.client = FakeRegistry() if registry is None else registry
    return converter
