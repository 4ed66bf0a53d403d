"""Options that name a class: Java's class name, a short name, or a custom Python class.

    partitioner.class=io.confluent.connect.storage.partitioner.HourlyPartitioner
    partitioner.class=Hourly
    partitioner.class=mine.partitions:ByCountry
"""

import importlib

from standalone import ConfigError


class Choice:
    """`known` maps names to their values; a custom class must be a subclass of `base`, if set."""

    def __init__(self, key, known, base=None, what="class"):
        self._key, self._known, self._base, self._what = key, known, base, what

    def __call__(self, name, value):
        """Validate an option's value."""
        if value:
            self.find(value)

    def __str__(self):
        return f"one of {', '.join(sorted(name for name in self._known if '.' not in name))}, Java's classes for them" + (
            ", or package.module:Class" if self._base else ""
        )

    def find(self, text):
        found = self._known.get(text)
        if found is not None:
            return found
        if self._base is not None and ":" in text:
            return self._own(text)
        short = ", ".join(sorted(name for name in self._known if "." not in name))
        own = " or a Python class of your own as package.module:Class" if self._base else ""
        raise self._wrong(f"'{text}' is not a known {self._what}. Known: {short}, and Java's classes for them{own}.")

    def _own(self, text):
        module, _, name = text.partition(":")
        try:
            found = getattr(importlib.import_module(module), name, None)
        except Exception as error:  # the import of a third-party module may raise anything
            raise self._wrong(f"'{text}' cannot be loaded: {type(error).__name__}: {error}") from error
        if not (isinstance(found, type) and issubclass(found, self._base)):
            raise self._wrong(f"'{text}' is not a class derived from {self._base.__module__}.{self._base.__name__}.")
        return found

    def _wrong(self, message):
        return ConfigError(f"{self._key}: {message}", {self._key: message})
