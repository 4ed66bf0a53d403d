"""A schema as a registry knows it."""

from dataclasses import asdict, dataclass

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"
KINDS = (AVRO, PROTOBUF, JSON)


@dataclass(frozen=True)
class Reference:
    """A schema that another one names: `name` as it is in the text (a record, a file to import, a $ref), and where it is to be had."""

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
        """As a request carries it. AVRO is left out, as Confluent's clients leave it out: a registry of old knows no other kind."""
        said = {"schema": self.text}
        if self.kind != AVRO:
            said["schemaType"] = self.kind
        if self.references:
            said["references"] = [asdict(reference) for reference in self.references]
        return said

    @classmethod
    def of(cls, answer):
        """From the answer of a registry."""
        references = tuple(Reference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ())
        return cls(answer["schema"], answer.get("schemaType") or AVRO, references)
