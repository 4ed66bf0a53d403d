"""A schema in a registry: text, type, references."""

from dataclasses import asdict, dataclass

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"
KINDS = (AVRO, PROTOBUF, JSON)


@dataclass(frozen=True)
class Reference:
    """A reference to another schema: `name` in the text (a record, an imported file, a $ref), and its subject and version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class RegistrySchema:
    """Frozen and hashable: the key of every cache of schemas."""

    text: str
    kind: str = AVRO
    references: tuple = ()

    def body(self):
        """The body of a request. Like Confluent's clients it omits the type AVRO, the only one that old registries support."""
        said = {"schema": self.text}
        if self.kind != AVRO:
            said["schemaType"] = self.kind
        if self.references:
            said["references"] = [asdict(reference) for reference in self.references]
        return said

    @classmethod
    def of(cls, answer):
        """From a registry's response."""
        references = tuple(Reference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ())
        return cls(answer["schema"], answer.get("schemaType") or AVRO, references)
