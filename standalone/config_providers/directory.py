"""DirectoryConfigProvider: values from the contents of files, such as secrets mounted by Kubernetes."""

import os

from standalone import ConfigError, ConfigProvider, Values
from standalone.config_providers.paths import PARAMETERS, allowed_path, check_allowed, read_text


class DirectoryConfigProvider(ConfigProvider):
    """${directory:/mnt/secrets:password}: the content of the file /mnt/secrets/password, including a final newline."""

    java_name = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
    config_def = PARAMETERS

    def configure(self, config):
        self._allowed = check_allowed(config["allowed.paths"])
        self._ttl_ms = config["ttl.ms"]

    def get(self, path, keys):
        if not path:
            return Values({})
        folder = allowed_path(path, self._allowed)
        if not os.path.isdir(folder):
            raise ConfigError(f"{folder} is not a directory")
        files = {key: os.path.join(folder, key) for key in keys if key and "/" not in key}
        return Values({key: read_text(path) for key, path in files.items() if os.path.isfile(path)}, self._ttl_ms)
