"""The listener of the embedded registry: it binds its port at start, loads the server on the first request, and runs in its own thread."""

import logging
import select
import socket
import threading

from standalone.errors import StartError

log = logging.getLogger(__name__)

_STOP_SECONDS = 2.0


class EmbeddedRegistry:
    """`start` creates the file and binds the port, `stop` closes both. `url` is its address."""

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
                raise StartError("embedded.registry.listener supports only http://. Put a TLS proxy in front of it, or bind it to localhost.")
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
        # The server is loaded on the first request: a worker whose registry is unused does not pay for it.
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
