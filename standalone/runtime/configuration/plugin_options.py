"""What can be set of a plugin, what is wrong with a configuration, and which of its values are secret: as the REST API tells it."""

import re

from standalone.config import LOW, PASSWORD, STRING, ConfigValue, Option, Password
from standalone.errors import ConfigError, NotFoundError
from standalone.log.client_config import SECRETS, AdminConfig, ConsumerConfig, ProducerConfig
from standalone.plugins import KINDS
from standalone.runtime.configuration.examine import examine
from standalone.runtime.configuration.worker_keys import CONVERTERS

HIDDEN = str(Password(""))  # what an answer shows in a secret's place
_CLIENTS = {"producer.override.": ProducerConfig, "consumer.override.": ConsumerConfig, "admin.override.": AdminConfig}
_SECRET_NAME = re.compile(r"password|secret|jaas\.config|user\.info|token|keystore\.key$", re.IGNORECASE)


def options_of(name, plugins):
    """The options of a plugin of any kind. Raises NotFoundError."""
    kind, found = _find_any(name, plugins)
    if found is None:
        raise NotFoundError(f"There is no plugin '{name}'.")
    if kind in ("source", "sink"):
        return [option for option, _ in examine({"connector.class": name}, plugins)]
    return list(found.config_def or ())


def examine_all(props, plugins, worker):
    """`examine` with the values to choose from, and with the overrides of client settings, each an option of its own."""
    found = {option.name: (option, value) for option, value in examine(props, plugins, worker, recommend=True)}
    for key in props:
        prefix = next((prefix for prefix in _CLIENTS if key.startswith(prefix)), None)
        if prefix is not None:
            errors = found[key][1].errors if key in found else []
            found[key] = _override(key, prefix, props[key], errors)
    for key in CONVERTERS:
        text, (option, value) = props.get(key), found.get(key, (None, None))
        if text and option is not None and value.value is None and _find_any(text, plugins)[1] is not None:
            # A class that is there, but no converter: it is shown, as in Kafka, and so is the version that it lacks.
            value.value = text
            found[f"{key}.plugin.version"][1].visible = True
    return list(found.values())


def secret_keys(plan):
    """The keys of a ConnectorConfig whose values are secret."""
    return frozenset(key for key in plan.originals if isinstance(plan.get(key), Password) or _is_secret_override(key))


def _find_any(name, plugins):
    """(kind, class) of the plugin of that name, or (None, None)."""
    for kind in KINDS:
        try:
            return kind, plugins.find(kind, name)
        except (NotFoundError, ConfigError):
            continue
    return None, None


def _override(key, prefix, text, errors):
    name = key[len(prefix) :]
    secret = _is_secret_override(key)
    default = _CLIENTS[prefix].KEYS.get(name, (None, None))[1]
    kind = PASSWORD if secret else STRING
    option = Option(key, kind, LOW, "A client's setting, for this connector's clients.", None if default is None else str(default), display=name)
    return option, ConfigValue(key, Password(text) if secret else text, [], errors)


def _is_secret_override(key):
    prefix = next((prefix for prefix in _CLIENTS if key.startswith(prefix)), None)
    name = key[len(prefix) :] if prefix else ""
    return bool(prefix) and (name in SECRETS or _SECRET_NAME.search(name) is not None)
