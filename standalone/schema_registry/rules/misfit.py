"""A reason why one schema is incompatible with another."""

from typing import NamedTuple


class Misfit(NamedTuple):
    kind: str  # its name in Confluent's registry
    path: str
    said: str
    more: str = ""

    def __str__(self):
        description = f"{self.said} (at '{self.path}')"
        return "{errorType:'%s', description:\"%s\", additionalInfo:'%s'}" % (self.kind, description, self.more)
