"""Clients of the log as the worker's and a connector's keys want them."""

from standalone.log.admin import Admin
from standalone.log.client_config import AdminConfig


class LogClients:
    """`bootstrap(properties)` says where the log is, with what a client that brings no login of its own needs: {setting: value}."""

    def __init__(self, config, clusters, clock, bootstrap):
        self._config = config
        self._clusters = clusters
        self._clock = clock
        self._bootstrap = bootstrap

    def properties(self, kind, connector=None, defaults=None):
        """Java-named properties of a client: the worker's own, then the connector's overrides."""
        found = {**(defaults or {}), **self._config.client(kind, connector)}
        if found["bootstrap.servers"] == self._config.bootstrap():  # not overridden
            found.update(self._bootstrap(found))
        return found

    def cluster(self, config):
        """The connections that all clients of these settings share."""
        return self._clusters.get(config)

    def admin(self, connector):
        config = AdminConfig.of(self.properties("admin", connector))
        return Admin(self.cluster(config), config, self._clock)
