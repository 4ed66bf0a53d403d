"""Subject names: `orders-value` is in the default context, `:.dev:orders-value` in the context .dev."""

from typing import NamedTuple

from standalone.schema_registry.server import refusals

DEFAULT = "."
ANY = ":*:"
_RESERVED = ("__GLOBAL", "__EMPTY")


class Subject(NamedTuple):
    context: str
    name: str

    @classmethod
    def of(cls, text):
        """`:.:x` and `x` are the same; `:.dev:` is the context itself, its name empty."""
        if text.startswith(":.") and ":" in text[2:]:
            context, _, name = text[1:].partition(":")
            return cls(context, name)
        return cls(DEFAULT, text)

    @classmethod
    def valid(cls, text):
        """The same for a subject to be registered."""
        found = cls.of(text)
        if not found.name or found.name in _RESERVED or any(ord(each) < 32 or ord(each) == 127 for each in text):
            raise refusals.invalid_subject(text)
        return found

    def __str__(self):
        return self.name if self.context == DEFAULT else f":{self.context}:{self.name}"


def matches(subject, prefix):
    """Whether a subject has a prefix: `:*:a` matches in all contexts, `:.dev:a` in one, `a` in the default context."""
    if prefix.startswith(ANY):
        return subject.name.startswith(prefix[len(ANY) :])
    wanted = Subject.of(prefix)
    return subject.context == wanted.context and subject.name.startswith(wanted.name)
