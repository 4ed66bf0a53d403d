"""What a config provider is: it looks up the values that are in configurations as ${name:path:key} or ${name:key}.

    class Vault(ConfigProvider):
        config_def = ConfigDef(Option("url", STRING, HIGH, "Where it is."))

        def get(self, path, keys):
            return Values({key: ... for key in keys}, ttl_ms=60_000)

`config.providers=vault`, `config.providers.vault.class=…` and `config.providers.vault.param.url=…` in the worker's file make it known.
Other than in Java, where a provider is configured and subscribed to, `get` is all there is: it is asked again when values expire.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Values:
    """{key: text} and, if they are to be looked up again, after how long."""

    texts: dict
    ttl_ms: int | None = None


class ConfigProvider:
    """`self.config` holds the parsed parameters. May be asked from multiple threads."""

    config_def = None
    java_name = None
    version = None

    config = None

    def configure(self, config):
        """Take the parameters: parsed where there is a config_def, else strings."""
        self.config = config

    def get(self, path, keys):
        """The values of these keys at that path (empty where the reference names none), as Values or {key: text}.

        A key that is not there is left out: the reference then stays as it is, as in Kafka Connect. Raise ConfigError where the path
        cannot be read.
        """
        raise NotImplementedError(f"{type(self).__name__} must define get(path, keys)")

    def close(self):
        pass
