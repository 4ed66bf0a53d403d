"""The worker's own schema registry, started when somebody asks for it, and a client for what the REST API shows of schemas."""

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
        """Where the worker's own is; it is started for that. Raises StartError."""
        with self._lock:
            if self._embedded is None:
                from standalone.schema_registry.server.listener import EmbeddedRegistry

                config = self._config
                path = config["embedded.registry.file"] or os.path.join(config.state_dir, "schemas.db")
                self._embedded = EmbeddedRegistry(path, config["embedded.registry.listener"], config["rest.allowed.hosts"] or ()).start()
            return self._embedded.url

    def client(self):
        """Of the registry that the worker's converters ask, else of its own. Raises NotFoundError where there is none.

        Each is new: people see what is there now, also of what was deleted for good and registered again.
        """
        from standalone.schema_registry.client import SchemaRegistryClient

        return SchemaRegistryClient.from_config(self._client_props())

    def url(self):
        """The first address of that registry, without credentials. Raises NotFoundError where there is none."""
        from standalone.schema_registry.credentials import split_url

        return split_url(self._client_props()[URL].split(",")[0].strip())[0]

    def _client_props(self):
        originals = self._config.originals
        for key in ("value.converter.", "key.converter."):
            props = with_prefix(originals, key)
            if props.get(URL, EMBEDDED).strip() != EMBEDDED:
                # People wait for the answer: the next question is another try.
                return {**props, "max.retries": "0", "http.connect.timeout.ms": "5000", "http.read.timeout.ms": "10000"}
        if self._embedded is None and not any(f"{key}.converter.{URL}" in originals for key in ("value", "key")):
            raise NotFoundError(
                f"There is no schema registry: no converter of the worker names one ({URL}), and its own is not started. "
                "Set embedded.registry.enable=true, or use a converter that asks for one."
            )
        return {URL: self.embedded_url(), "max.retries": "0"}

    def close(self):
        if self._embedded is not None:
            self._embedded.stop()
