"""EnvVarConfigProvider: values from environment variables."""

import os

from standalone import LOW, STRING, ConfigDef, ConfigError, ConfigProvider, Option, Values, regex_compiles
from standalone.data.java_regex import compile_java


class EnvVarConfigProvider(ConfigProvider):
    """${env:DB_PASSWORD}: the value of an environment variable."""

    java_name = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    config_def = ConfigDef(
        Option(
            *("allowlist.pattern", STRING, LOW, "Regular expression that the whole name of a variable must fit to be read."),
            *(".*", regex_compiles),
        ),
    )

    def configure(self, config):
        self._allowed = compile_java(config["allowlist.pattern"])

    def get(self, path, keys):
        if path:
            raise ConfigError(f"environment variables have no path, but '{path}' is given: write ${{name:VARIABLE}}")
        return Values({key: os.environ[key] for key in keys if key in os.environ and self._allowed.fullmatch(key)})
