"""The REST listeners: bind early, serve on their own thread, stop in time.

    table.py        all routes: collected from the API's modules
    resource.py     one path and its methods: the base of routes and OpenAPI document
    connectors.py   /connectors…
    plugins.py      /connector-plugins…
    admin.py        /, /health and /admin/loggers
    shapes.py openapi.py documentation.py       /openapi.json and /docs
    ui_pages.py     /ui: the web page, its files in ui/; its own API is in browse.py
    app.py          errors -> statuses
    front.py        rejected request targets, CORS, added headers
    masked.py       masks config provider values in responses
    hosts.py        allowed hosts, and a warning about listeners reachable from elsewhere
    same_origin.py  rejects changes by other origins' pages
    guard.py extension.py basic_auth.py         rest.extension.classes
    tls.py          certificates of https listeners
"""

import importlib.util
import logging
import select
import socket
import threading

from standalone.errors import ConfigError, ConnectError, StartError
from standalone.rest.extension import RestExtension
from standalone.rest.guard import close_extensions, load_extensions
from standalone.runtime.configuration.worker_keys import parse_listener

log = logging.getLogger(__name__)

_NEEDED = ("starlette", "uvicorn", "h11", "anyio")  # loaded with the first request; checked at the start
_LOOPBACK = "127.0.0.1"
_STOP_SECONDS = 2.0


class RestServer:
    """`bind` opens the ports (so that a port in use fails early), `start` serves, `stop` ends.

    Without admin.listeners /admin is served on `listeners`; if it is empty, nowhere.
    """

    def __init__(self, config):
        self._config = config
        self._admin_apart = config["admin.listeners"] is not None
        self._listeners = [Listener(text, "listeners", "listeners.https.") for text in config["listeners"]]
        self._admin_listeners = [Listener(text, "admin.listeners", "admin.listeners.https.") for text in config["admin.listeners"] or ()]
        self._contexts = {}
        self._extensions = []
        self._servers = []
        self._thread = None
        self._stopping = False
        self._wake, self._woken = socket.socketpair()

    def bind(self):
        """Open the listeners. Raise ConfigError or StartError."""
        for package in _NEEDED:
            if importlib.util.find_spec(package) is None:
                raise StartError(f"The REST API needs the Python package '{package}', which is not installed here. Install connect-standalone again.")
        try:
            for listener in self._all():
                if listener.scheme == "https" and listener.prefix not in self._contexts:
                    from standalone.rest.tls import server_context

                    self._contexts[listener.prefix] = server_context(self._config, listener.prefix)
            self._extensions = load_extensions(self._config["rest.extension.classes"], dict(self._config.originals))
            self._config.asks_who_calls = any(extension.realm for extension in self._extensions)
            for listener in self._all():
                listener.bind()
            self._warn()
        except (ConfigError, StartError):
            self.close()
            raise
        return self

    def _warn(self):
        from standalone.rest.hosts import warn_of_open_doors

        def asks_for_certificate(listener):
            return self._contexts[listener.prefix].verify_mode.name == "CERT_REQUIRED"

        protects = any(type(extension).before is not RestExtension.before for extension in self._extensions)
        warn_of_open_doors(self._all(), protects, asks_for_certificate)

    def _all(self):
        return [*self._listeners, *self._admin_listeners]

    @property
    def address(self):
        """(host, port) of the first listener."""
        return self._listeners[0].address

    @property
    def addresses(self):
        """URLs of all listeners."""
        return [listener.url for listener in self._all()]

    @property
    def admin_address(self):
        """(host, port) of the first admin listener, or None."""
        return self._admin_listeners[0].address if self._admin_listeners else None

    def advertised(self):
        """(host, port) advertised to others: rest.advertised.*, or the first listener of that protocol (default http)."""
        schemes = [listener.scheme for listener in self._listeners]
        scheme = (self._config["rest.advertised.listener"] or "").lower() or ("http" if "http" in schemes else "https")
        listener = next((each for each in self._listeners if each.scheme == scheme), self._listeners[0])
        host, port = listener.address
        return self._config["rest.advertised.host.name"] or listener.host or host, self._config["rest.advertised.port"] or port

    def start(self, herder, worker, failed):
        """Serve. Calls `failed(error)` on the server's thread if it cannot serve or stops serving."""
        self._thread = threading.Thread(target=self._run, args=(herder, worker, failed), name="rest", daemon=True)
        self._thread.start()

    def _run(self, herder, worker, failed):
        # The server loads with the first request: that request waits a moment, but the first record does not, and unused servers cost nothing.
        select.select([*(listener.socket for listener in self._all()), self._woken], [], [])
        try:
            if not self._stopping:
                self._serve(herder, worker)
            if not self._stopping:
                raise ConnectError("The REST server stopped unexpectedly.")
        except BaseException as error:  # uvicorn raises SystemExit if it cannot start
            log.exception("The REST API failed")
            failed(error)

    def _serve(self, herder, worker):
        import asyncio

        from standalone.rest.app import make_app
        from standalone.rest.hosts import names_of
        from standalone.rest.table import tables

        common, own = tables(herder, worker, self._extensions, self._admin_apart)
        names = names_of(self._all(), self._config["rest.advertised.host.name"], self._config["rest.allowed.hosts"] or ())
        servers = []
        for routes, listeners in ((common, self._listeners), (own, self._admin_listeners)):
            app = make_app(routes, self._config, self._extensions, names)
            for scheme in dict.fromkeys(listener.scheme for listener in listeners):
                chosen = [listener for listener in listeners if listener.scheme == scheme]
                context = self._contexts[chosen[0].prefix] if scheme == "https" else None
                servers.append((http_server(app, context), [listener.socket for listener in chosen]))
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
        extensions, self._extensions = self._extensions, []
        close_extensions(extensions)
        for listener in self._all():
            listener.close()
        for end in (self._wake, self._woken):
            end.close()


def http_server(app, context):
    import uvicorn

    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", loop="asyncio", http="h11", ws="none",
        server_header=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    config.load()
    config.ssl = context  # uvicorn itself would build one from files only
    return uvicorn.Server(config)


class Listener:
    """One listener: its text, and its socket once bound."""

    def __init__(self, text, key, prefix):
        self.scheme, self.host, self._port = parse_listener(text if "//" in text else f"http://{text}")
        self.prefix = prefix
        self._text, self._key = text, key
        self.socket = None

    @property
    def address(self):
        return self.socket.getsockname()[:2]

    @property
    def url(self):
        host, port = self.address
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def bind(self):
        try:
            # Java binds all interfaces if no host is given; here that must be explicit.
            found = socket.getaddrinfo(self.host or _LOOPBACK, self._port, type=socket.SOCK_STREAM)[0]
            family, address = found[0], found[4]
            dual = family == socket.AF_INET6 and address[0] == "::"
            self.socket = socket.create_server(address[:2], family=family, backlog=128, dualstack_ipv6=dual)
            # Accepted sockets inherit it. Without it a response's body waits 40 ms for the acknowledgement of its head.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise StartError(
                f"The REST listener {self._text} ({self._key}) cannot be opened: {error.strerror or error}. Is another worker running?"
            ) from error

    def close(self):
        if self.socket is not None:
            self.socket.close()
