"""The REST listener: binds early, serves from a thread of its own, turns errors into statuses.

    connectors.py   /connectors…
    admin.py        / and /health
"""

import logging
import socket
import threading
from urllib.parse import urlsplit

from standalone.errors import AlreadyExistsError, BadRequestError, ConfigError, ConflictError, ConnectError, NotFoundError, StartError

log = logging.getLogger(__name__)

_STATUS = {NotFoundError: 404, AlreadyExistsError: 409, ConflictError: 409, BadRequestError: 400, ConfigError: 400}
_STOP_SECONDS = 2.0
DEFAULT_PORT = 8083


class RestServer:
    """`bind` takes the port (so that a taken one is known at once), `start` serves, `stop` ends."""

    def __init__(self, listeners):
        self._addresses = [_address(listener) for listener in listeners]
        self._sockets = []
        self._server = None
        self._thread = None

    def bind(self):
        for host, port, listener in self._addresses:
            try:
                family, _, _, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
                bound = socket.create_server(address[:2], family=family, backlog=128, dualstack_ipv6=family == socket.AF_INET6 and not host)
            except OSError as error:
                self.close()
                raise StartError(f"The REST listener {listener} (listeners) cannot be opened: {error.strerror or error}. Is another worker running?") from error
            self._sockets.append(bound)
        return self

    @property
    def address(self):
        """(host, port) of the first listener."""
        return self._sockets[0].getsockname()[:2]

    def start(self, herder, worker):
        self._thread = threading.Thread(target=self._serve, args=(herder, worker), name="rest", daemon=True)
        self._thread.start()

    def _serve(self, herder, worker):
        import uvicorn  # here: the first record need not wait for it

        config = uvicorn.Config(
            make_app(herder, worker), log_config=None, access_log=False, lifespan="off", loop="asyncio", http="h11", ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None
        self._server.run(sockets=self._sockets)

    def stop(self):
        if self._server is not None:
            self._server.should_exit = True
            self._thread.join(_STOP_SECONDS)
        self.close()

    def close(self):
        for bound in self._sockets:
            bound.close()


def make_app(herder, worker):
    """The ASGI application: all routes, all errors in Connect's shape."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException

    from standalone.rest import admin, connectors

    def on_connect_error(request, error):
        status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
        if status == 500:
            log.error("%s %s failed: %s", request.method, request.url.path, error)
        return problem(status, str(error))

    def on_http_error(request, error):
        return problem(error.status_code, f"HTTP {error.status_code} {error.detail}")

    def on_any_error(request, error):
        log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, f"{type(error).__name__}: {error}")

    return Starlette(
        routes=admin.routes(herder, worker) + connectors.routes(herder),
        exception_handlers={ConnectError: on_connect_error, HTTPException: on_http_error, Exception: on_any_error},
    )


def answer(content, status=200, headers=None):
    """A JSON answer."""
    import orjson
    from starlette.responses import Response

    return Response(orjson.dumps(content), status, media_type="application/json", headers=headers)


def problem(status, message):
    return answer({"error_code": status, "message": message}, status)


def _address(listener):
    """(host, port, listener) of an http:// listener; the host is empty for all interfaces."""
    parts = urlsplit(listener if "//" in listener else f"http://{listener}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme.lower() != "http" or port is None:
        raise ConfigError.of({"listeners": f"'{listener}' is not of the form http://host:port"})
    return parts.hostname or "", port, listener
