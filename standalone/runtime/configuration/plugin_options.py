"""Options of a plugin, validation of a configuration, and which of its values are secret, for the REST API."""

import re
from dataclasses import replace

from standalone.config import CLASS, ConfigValue, Password, message_of, parse_type, with_prefix
from standalone.config.types import JAVA_CLASSES
from standalone.data.java_hash import hash_map_order
from standalone.errors import ConfigError, NotFoundError
from standalone.log.client_config import SECRETS
from standalone.plugins import KINDS
from standalone.runtime.configuration.client_keys import OPTIONS
from standalone.runtime.configuration.examine import connector_class_of, examine
from standalone.runtime.configuration.worker_keys import CONVERTERS

HIDDEN = str(Password(""))  # shown instead of a secret
_CLIENTS = ("producer.override.", "consumer.override.", "admin.override.")
_BASES = ("org.apache.kafka.connect.storage.Converter", "org.apache.kafka.connect.storage.HeaderConverter")  # interfaces in Java
_SECRET_NAME = re.compile(r"password|secret|jaas\.config|user\.info|token|keystore\.key$", re.IGNORECASE)


def options_of(name, plugins):
    """The options of a plugin of any kind. Raises NotFoundError. Imports no module that is not a plugin."""
    kind, found = _find_any(name, plugins, known_only=True)
    if found is None:
        raise NotFoundError(f"There is no plugin '{name}'.")
    if kind in ("source", "sink"):
        return [option for option, _ in examine({"connector.class": name}, plugins) if option is not None]  # None for unknown keys with an error
    return list(found.config_def or ())


def examine_all(props, plugins, worker):
    """`examine` with recommended values, and with the client overrides as options."""
    found = {value.name: (option, value) for option, value in examine(props, plugins, worker, recommend=True)}
    for key in CONVERTERS:
        text, (option, value) = props.get(key), found.get(key, (None, None))
        if text and option is not None and value.value is None and _is_a_class(text, plugins):
            # An existing class that is no converter is shown, as in Kafka, and so is its missing version.
            value.value = text
            found[f"{key}.plugin.version"][1].visible = True
    for kind in _clients_of(props, plugins):
        for key in _overrides(props, kind):
            errors = found.pop(key)[1].errors if key in found else []
            found[key] = _override(key, kind, props[key], errors)
    return list(found.values())


def _clients_of(props, plugins):
    """The clients whose overrides apply: those that the connector uses. Its own topics are created by an admin client."""
    kind, _, _ = connector_class_of(props, plugins)
    if kind == "source":
        return ("producer", *(("admin",) if any(key.startswith("topic.creation.") for key in props) else ()))
    has_queue = bool((props.get("errors.deadletterqueue.topic.name") or "").strip())
    return ("producer", "consumer", "admin") if has_queue else ("consumer",) if kind == "sink" else ()


def _overrides(props, kind):
    prefix = f"{kind}.override."
    return [prefix + name for name in hash_map_order(with_prefix(props, prefix))]


def _is_a_class(text, plugins):
    return text in JAVA_CLASSES or text in _BASES or _find_any(text, plugins)[1] is not None


def secret_keys(plan):
    """The keys of a ConnectorConfig whose values are secret."""
    prefixes = (*_CLIENTS, *plan.connector_class.passing)
    return frozenset(key for key in plan.originals if isinstance(plan.get(key), Password) or _is_secret_override(key, prefixes))


def _find_any(name, plugins, known_only=False):
    """(kind, class) of the plugin of that name, or (None, None)."""
    for kind in KINDS:
        try:
            return kind, plugins.find(kind, name, known_only)
        except (NotFoundError, ConfigError):
            continue
    return None, None


def _override(key, kind, text, errors):
    """The value of one override: defined by Kafka; None for a key that no such client has."""
    name = key.removeprefix(f"{kind}.override.")
    known = OPTIONS[kind].get(name)
    secret = _is_secret_override(key)
    if known is not None and not secret and text is not None and known.type != CLASS:
        try:
            parse_type(name, text, known.type)
        except ConfigError as error:
            errors = [*errors, message_of(error, name)]
    return known and replace(known, name=key, display=name), ConfigValue(key, Password(text) if secret and text is not None else text, [], errors)


def _is_secret_override(key, prefixes=_CLIENTS):
    prefix = next((prefix for prefix in prefixes if key.startswith(prefix)), None)
    name = key[len(prefix) :] if prefix else ""
    return bool(prefix) and (name in SECRETS or _SECRET_NAME.search(name) is not None)
