"""The listener of the worker's own registry: it binds at once, is loaded with the first request, and serves from its own thread."""

import logging
import select
import socket
import threading

from standalone.errors import StartError

log = logging.getLogger(__name__)

_STOP_SECONDS = 2.0


class EmbeddedRegistry:
    """`start` makes the file and takes the port, `stop` ends both. `url` is where it is."""

    def __init__(self, path, listener, allowed_hosts=()):
        self._path, self._allowed = path, allowed_hosts
        from standalone.rest.server import Listener

        self._listener = Listener(listener, "embedded.registry.listener", "")
        self._store = self._server = self._thread = None
        self._stopping = False
        self._lock = threading.Lock()
        self._wake, self._woken = socket.socketpair()

    @property
    def url(self):
        return self._listener.url

    def start(self):
        """Once, anyone who asks. Raises StartError."""
        with self._lock:
            if self._thread is not None:
                return self
            from standalone.schema_registry.server.store import Store

            if self._listener.scheme != "http":
                raise StartError("embedded.registry.listener is served as http:// only: put a proxy with TLS before it, or leave it on this machine.")
            self._listener.bind()
            try:
                self._store = Store(self._path)
            except StartError:
                self._listener.close()
                raise
            from standalone.rest.hosts import warn_of_open_doors

            warn_of_open_doors([self._listener], False, lambda listener: False)
            self._thread = threading.Thread(target=self._serve, name="schema-registry", daemon=True)
            self._thread.start()
            log.info("The embedded schema registry is at %s, its schemas are in %s", self.url, self._path)
        return self

    def _serve(self):
        # The first caller waits a moment for the server to be loaded; who never calls never pays.
        select.select([self._listener.socket, self._woken], [], [])
        if self._stopping:
            return
        import asyncio

        from standalone.rest.hosts import AllowedHosts, names_of
        from standalone.rest.same_origin import SameOrigin
        from standalone.rest.server import http_server
        from standalone.schema_registry.server.api import api
        from standalone.schema_registry.server.registry import Registry

        names = names_of([self._listener], None, self._allowed)
        app = AllowedHosts(SameOrigin(api(Registry(self._store))), names)
        self._server = http_server(app, None)
        if not self._stopping:
            asyncio.run(self._server.serve([self._listener.socket]))

    def stop(self):
        self._stopping = True
        self._wake.send(b"x")
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
            self._listener.close()
            self._store.close()
        for end in (self._wake, self._woken):
            end.close()
