"""Why one schema does not follow another."""

from typing import NamedTuple


class Misfit(NamedTuple):
    kind: str  # the name that Confluent's registry gives it
    path: str
    said: str
    more: str = ""

    def __str__(self):
        description = f"{self.said} (at '{self.path}')"
        return "{errorType:'%s', description:\"%s\", additionalInfo:'%s'}" % (self.kind, description, self.more)
