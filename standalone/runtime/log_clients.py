"""Kafka clients configured by the worker's and a connector's keys."""

from standalone.log.admin import Admin
from standalone.log.client_config import AdminConfig


class LogClients:
    """`bootstrap(properties)` returns the cluster's address, with credentials for a client that has none of its own: {setting: value}."""

    def __init__(self, config, clusters, clock, bootstrap):
        self._config = config
        self._clusters = clusters
        self._clock = clock
        self._bootstrap = bootstrap

    def properties(self, kind, connector=None, defaults=None):
        """Java-named properties of a client: the worker's, overridden by the connector's."""
        found = {**(defaults or {}), **self._config.client(kind, connector)}
        if found["bootstrap.servers"] == self._config.bootstrap():  # not overridden
            found.update(self._bootstrap(found))
        return found

    def cluster(self, config):
        """The connections shared by all clients with these settings."""
        return self._clusters.get(config)

    def admin(self, connector):
        config = AdminConfig.of(self.properties("admin", connector))
        return Admin(self.cluster(config), config, self._clock)
