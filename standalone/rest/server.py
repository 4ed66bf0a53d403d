"""The REST listener: binds early, serves from a thread of its own, and ends in time.

    front.py        addresses that are refused, CORS, added headers
    app.py          errors -> statuses
    resource.py     one path and its methods
    connectors.py   /connectors…
    plugins.py      /connector-plugins…
    admin.py        /, /health and /admin/loggers
"""

import select
import socket
import threading
from urllib.parse import urlsplit

from standalone.errors import ConfigError, StartError

_STOP_SECONDS = 2.0
DEFAULT_PORT = 8083


class RestServer:
    """`bind` takes the ports (so that a taken one is known at once), `start` serves, `stop` ends.

    `admin_listeners`: None serves /admin on `listeners`, an empty list nowhere.
    """

    def __init__(self, listeners, admin_listeners=None):
        self._addresses = [_address(listener, "listeners") for listener in listeners]
        self._admin_addresses = [_address(listener, "admin.listeners") for listener in admin_listeners or ()]
        self._admin_apart = admin_listeners is not None
        self._sockets = []
        self._admin_sockets = []
        self._servers = []
        self._thread = None
        self._stopping = False
        self._wake, self._woken = socket.socketpair()

    def bind(self):
        for addresses, sockets in ((self._addresses, self._sockets), (self._admin_addresses, self._admin_sockets)):
            for address in addresses:
                try:
                    sockets.append(_bound(*address))
                except StartError:
                    self.close()
                    raise
        return self

    @property
    def address(self):
        """(host, port) of the first listener."""
        return self._sockets[0].getsockname()[:2]

    @property
    def admin_address(self):
        """(host, port) of the first admin listener, or None."""
        return self._admin_sockets[0].getsockname()[:2] if self._admin_sockets else None

    def start(self, herder, worker):
        self._thread = threading.Thread(target=self._serve, args=(herder, worker), name="rest", daemon=True)
        self._thread.start()

    def _serve(self, herder, worker):
        # The first caller waits a moment for the server to be loaded; the first record does not, and who never calls never pays.
        select.select([*self._sockets, *self._admin_sockets, self._woken], [], [])
        if self._stopping:
            return
        import asyncio

        import uvicorn

        from standalone.rest import admin, connectors, plugins
        from standalone.rest.app import make_app

        common = admin.routes(worker) + connectors.routes(herder) + plugins.routes(herder)
        own = admin.admin_routes(worker)
        apps = [(common if self._admin_apart else common + own, self._sockets)]
        if self._admin_sockets:
            apps.append((own, self._admin_sockets))
        servers = []
        for routes, sockets in apps:
            config = uvicorn.Config(
                make_app(routes, worker.config), log_config=None, access_log=False, lifespan="off", loop="asyncio", http="h11", ws="none",
                server_header=False, timeout_graceful_shutdown=1,
            )  # fmt: skip
            servers.append((uvicorn.Server(config), sockets))
        self._servers = [server for server, _ in servers]
        if self._stopping:
            return

        async def serve_all():
            await asyncio.gather(*(server.serve(sockets) for server, sockets in servers))

        asyncio.run(serve_all())

    def stop(self):
        self._stopping = True
        self._wake.send(b"x")
        for server in self._servers:
            server.should_exit = True
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
        self.close()

    def close(self):
        for bound in [*self._sockets, *self._admin_sockets, self._wake, self._woken]:
            bound.close()


def _bound(host, port, listener, key):
    try:
        family, _, _, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=128, dualstack_ipv6=family == socket.AF_INET6 and not host)
    except OSError as error:
        raise StartError(
            f"The REST listener {listener} ({key}) cannot be opened: {error.strerror or error}. Is another worker running?"
        ) from error


def _address(listener, key):
    """(host, port, listener, key) of an http:// listener; the host is empty for all interfaces."""
    parts = urlsplit(listener if "//" in listener else f"http://{listener}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme.lower() != "http" or port is None:
        raise ConfigError.of({key: f"'{listener}' is not of the form http://host:port"})
    return parts.hostname or "", port, listener, key
