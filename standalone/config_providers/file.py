"""FileConfigProvider: values from a properties file."""

from standalone import ConfigProvider, Values
from standalone.config_providers.paths import PARAMETERS, allowed_path, check_allowed, read_text
from standalone.properties import parse


class FileConfigProvider(ConfigProvider):
    """${file:/etc/secrets.properties:db.password}: the value of a key in a properties file.

    As in Java this file is read as UTF-8, unlike worker and connector files, which are ISO-8859-1.
    """

    java_name = "org.apache.kafka.common.config.provider.FileConfigProvider"
    config_def = PARAMETERS

    def configure(self, config):
        self._allowed = check_allowed(config["allowed.paths"])
        self._ttl_ms = config["ttl.ms"]

    def get(self, path, keys):
        if not path:
            return Values({})
        found = parse(read_text(allowed_path(path, self._allowed)), where=path)
        return Values({key: found[key] for key in keys if key in found}, self._ttl_ms)
