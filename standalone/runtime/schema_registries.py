"""The worker's own schema registry, started on first use, and a client for the schemas that the REST API shows."""

import os
import threading

from standalone.config import with_prefix
from standalone.errors import NotFoundError
from standalone.schema_registry.keys import EMBEDDED, URL


class SchemaRegistries:
    def __init__(self, config):
        self._config = config
        self._embedded = None
        self._lock = threading.Lock()

    def open(self):
        if self._config["embedded.registry.enable"]:
            self.embedded_url()

    def embedded_url(self):
        """The URL of the worker's own registry, which this starts. Raises StartError."""
        with self._lock:
            if self._embedded is None:
                from standalone.schema_registry.server.listener import EmbeddedRegistry

                config = self._config
                path = config["embedded.registry.file"] or os.path.join(config.state_dir, "schemas.db")
                self._embedded = EmbeddedRegistry(path, config["embedded.registry.listener"], config["rest.allowed.hosts"] or ()).start()
            return self._embedded.url

    def client(self):
        """A client of the registry that the worker's converters use, else of the worker's own. Raises NotFoundError if there is none.

        Each call returns a new client, so that nothing is cached: it sees schemas that were deleted and registered again.
        """
        from standalone.schema_registry.client import SchemaRegistryClient

        return SchemaRegistryClient.from_config(self._client_props())

    def url(self):
        """The first URL of that registry, without credentials. Raises NotFoundError if there is none."""
        from standalone.schema_registry.credentials import split_url

        return split_url(self._client_props()[URL].split(",")[0].strip())[0]

    def _client_props(self):
        originals = self._config.originals
        for key in ("value.converter.", "key.converter."):
            props = with_prefix(originals, key)
            if props.get(URL, EMBEDDED).strip() != EMBEDDED:
                # A user waits for the answer and can retry.
                return {**props, "max.retries": "0", "http.connect.timeout.ms": "5000", "http.read.timeout.ms": "10000"}
        if self._embedded is None and not any(f"{key}.converter.{URL}" in originals for key in ("value", "key")):
            raise NotFoundError(
                f"There is no schema registry: no converter of the worker sets {URL}, and the worker's own is not started. "
                "Set embedded.registry.enable=true, or use a converter that needs a registry."
            )
        return {URL: self.embedded_url(), "max.retries": "0"}

    def close(self):
        if self._embedded is not None:
            self._embedded.stop()
