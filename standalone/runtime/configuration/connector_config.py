"""One connector's configuration: parsed and validated, with all errors reported at once.

`ConnectorConfig.of` raises one ConfigError with all errors (examine.py): of the keys that every connector has (connector_keys.py), the
connector's own keys, and those of its converters, transforms and predicates.
"""

from typing import NamedTuple

from standalone.config import Config
from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError
from standalone.runtime.configuration import unread_keys
from standalone.runtime.configuration.config_values import Providers
from standalone.runtime.configuration.connector_keys import OWN
from standalone.runtime.configuration.examine import connector_class_of, examine, names_in
from standalone.runtime.configuration.registry_keys import missing_url, with_address
from standalone.runtime.configuration.topic_groups import topic_groups
from standalone.runtime.configuration.worker_config import converter_props
from standalone.runtime.configuration.worker_keys import CONVERTERS
from standalone.secrets import mask

_STAGE_KEYS = ("type", "plugin.version", "predicate", "negate")


class LinkConfig(NamedTuple):
    """A transform of the chain with its predicate; the configurations are unparsed."""

    alias: str
    transform: type
    config: dict
    predicate: type | None
    predicate_alias: str | None
    predicate_config: dict
    negate: bool

    def build(self):
        """(alias, transform, predicate or None, negate), configured."""
        predicate = self.predicate.of(self.predicate_config) if self.predicate else None
        return self.alias, self.transform.of(self.config), predicate, self.negate


class ConnectorConfig(Config):
    """Every parsed value, including the connector's own. `warnings` are sentences about keys that have no effect."""

    def __init__(self, values, resolved, connector_class, kind, topic_groups, warnings):
        super().__init__(values, resolved.texts)
        self.references = resolved.references  # key -> the original text, for keys with a value from a config provider
        self.ttl_ms = resolved.ttl_ms
        self.connector_class = connector_class
        self.kind = kind  # source or sink
        self.warnings = warnings
        self.has_end = kind == "source" and bool(connector_class().has_end(resolved.texts))
        self._topic_groups = topic_groups

    @classmethod
    def of(cls, props, plugins, worker=None):
        """Parse a configuration. Raises one ConfigError with every wrong key. `worker`: a WorkerConfig, for default converters and policies."""
        resolved = (worker.providers if worker is not None else Providers()).resolve(props)
        props = resolved.texts
        found = examine(props, plugins, worker)
        errors = {value.name: value.errors[0] for _, value in found if value.errors}
        values = {value.name: value.value for _, value in found}
        kind, connector_class, _ = connector_class_of(props, plugins)
        for alias in names_in(props, "transforms"):
            predicate = values.get(f"transforms.{alias}.predicate")
            if predicate and predicate not in names_in(props, "predicates"):
                known = ", ".join(names_in(props, "predicates")) or "none"
                errors[f"transforms.{alias}.predicate"] = f"names the predicate '{predicate}', which is not in 'predicates' ({known})"
        for key in CONVERTERS if worker is not None else ():
            errors.update(missing_url(key, props, values.get(key) if props.get(key) is not None else None, worker.embedded))
        groups, wrong = topic_groups(props) if kind == "source" else ([], {})
        errors.update(wrong)
        if errors:
            raise ConfigError.of({key: mask(message) for key, message in errors.items()})
        values = {**OWN[kind].defaults(), **values}
        warnings = unread_keys.of_connector(
            *(props, found, OWN[kind].names(), CONVERTERS),
            takes_anything=connector_class.config_def is None,
            topic_creation=worker is None or worker["topic.creation.enable"],
            read=connector_class.passing,
        )
        return cls(values, resolved, connector_class, kind, groups, warnings)

    def renewed(self, texts, before):
        """Strings created with the plan `before`, with the current values of config providers."""
        return {key: self.originals[key] if key in self.references and value == before.originals.get(key) else value for key, value in texts.items()}

    def links(self):
        """The chain: a LinkConfig for each transform, in order."""
        return [self._link(alias) for alias in self["transforms"]]

    def _link(self, alias):
        predicate_alias = self[f"transforms.{alias}.predicate"]
        return LinkConfig(
            alias,
            self[f"transforms.{alias}.type"],
            self._stage_texts(f"transforms.{alias}."),
            self[f"predicates.{predicate_alias}.type"] if predicate_alias else None,
            predicate_alias,
            self._stage_texts(f"predicates.{predicate_alias}.") if predicate_alias else {},
            self[f"transforms.{alias}.negate"],
        )

    def _stage_texts(self, prefix):
        return {key: value for key, value in self.with_prefix(prefix).items() if key not in _STAGE_KEYS}

    def converter(self, part, worker):
        """The converter of "key", "value" or "header": the connector's own if configured, else the worker's."""
        key = f"{part}.converter"
        own = self.originals.get(key) is not None
        found = self[key] if own else worker[key]
        props = with_address(converter_props(key, self.originals if own else worker.originals), found, lambda: worker.embedded_registry())
        return found.of(props) if part == "header" else found.of(props, is_key=part == "key")

    def topic_groups(self):
        """Of a source: the TopicGroups that say how to create its topics, the default last; empty if topic.creation.* is not set."""
        return self._topic_groups

    @property
    def subscription(self):
        """Of a sink: {"topics": names} or {"pattern": compiled}."""
        pattern = self["topics.regex"]
        return {"pattern": compile_java(pattern)} if pattern else {"topics": self["topics"]}
