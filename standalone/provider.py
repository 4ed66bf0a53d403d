"""The config provider API: a provider resolves ${name:path:key} and ${name:key} in configurations.

    class Vault(ConfigProvider):
        config_def = ConfigDef(Option("url", STRING, HIGH, "Where it is."))

        def get(self, path, keys):
            return Values({key: ... for key in keys}, ttl_ms=60_000)

Register it in the worker's file: `config.providers=vault`, `config.providers.vault.class=…`, `config.providers.vault.param.url=…`.
Unlike in Java there is no subscription: `get` is called again when values expire.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Values:
    """{key: text}, and the time after which they expire, if they do."""

    texts: dict
    ttl_ms: int | None = None


class ConfigProvider:
    """`self.config` contains the parsed parameters. Must be thread-safe."""

    config_def = None
    java_name = None
    version = None

    config = None

    def configure(self, config):
        """Receive the parameters: parsed if there is a config_def, else strings."""
        self.config = config

    def get(self, path, keys):
        """The values of these keys at a path (empty if the reference has none), as Values or {key: text}.

        Omit missing keys: as in Kafka Connect their references stay unresolved. Raise ConfigError if the path cannot be read.
        """
        raise NotImplementedError(f"{type(self).__name__} must define get(path, keys)")

    def close(self):
        pass
