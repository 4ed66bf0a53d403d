"""What can be set of a plugin, and which values of a configuration are secret."""

import re

from standalone.config import Password
from standalone.errors import ConfigError, NotFoundError
from standalone.plugins import KINDS
from standalone.runtime.connector_config import examine

HIDDEN = str(Password(""))  # what an answer shows in a secret's place
_SECRET_OVERRIDE = re.compile(r"(producer|consumer|admin)\.override\..*(password|secret|jaas\.config|user\.info|token|ssl\..*key$)", re.IGNORECASE)


def options_of(name, plugins, worker):
    """The options of a plugin of any kind. Raises NotFoundError."""
    for kind in KINDS:
        try:
            found = plugins.find(kind, name)
        except (NotFoundError, ConfigError):
            continue
        if kind in ("source", "sink"):
            return [option for option, _ in examine({"connector.class": name}, plugins, worker)]
        return list(found.config_def or ())
    raise NotFoundError(f"There is no plugin '{name}'.")


def secret_keys(plan):
    """The keys of a ConnectorConfig whose values are secret."""
    return frozenset(
        key for key in plan.originals if isinstance(plan.get(key), Password) or _SECRET_OVERRIDE.fullmatch(key)
    )
