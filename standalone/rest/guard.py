"""Run REST extensions: load them by name, call them before each request, close them at the end."""

import logging

from standalone.config.types import load_class
from standalone.errors import ConfigError, ConnectError
from standalone.rest.basic_auth import JAVA_NAME, BasicAuthSecurityRestExtension
from standalone.rest.extension import RestExtension

log = logging.getLogger(__name__)

_AT_ONCE = 32  # threads that run extensions


def load_extensions(names, properties):
    """Load and configure the extensions with these names. Raise ConfigError."""
    return [_load(name, properties) for name in names]


def _load(name, properties):
    if name in (JAVA_NAME, JAVA_NAME.rpartition(".")[2]):
        found = BasicAuthSecurityRestExtension
    else:
        found = _python_class(name)
    try:
        extension = found()
        extension.configure(properties)
        extension.paths = _paths(extension)
    except ConnectError:
        raise
    except Exception as error:  # third-party code
        raise ConfigError.of({"rest.extension.classes": f"'{name}' cannot be used: {type(error).__name__}: {error}"}) from error
    log.info("The REST API is extended by %s", name)
    return extension


def _paths(extension):
    """Return {path: handler}, validated at the worker's start: routes are built only with the first request."""
    paths = dict(extension.routes())
    for path, handler in paths.items():
        if not isinstance(path, str) or not path.startswith("/") or not callable(handler):
            raise ValueError(f"routes() must give {{path: handler}}, as in {{'/motd': lambda request: ...}}, not {path!r}: {handler!r}.")
    return paths


def _python_class(name):
    try:
        found = load_class(name)
    except Exception as error:  # the import of a third-party module may raise anything
        raise ConfigError.of({"rest.extension.classes": f"'{name}' cannot be loaded: {type(error).__name__}: {error}"}) from error
    if not (isinstance(found, type) and issubclass(found, RestExtension)):
        said = "is not known; Java's classes are not run" if found is None else "is not a class derived from standalone.rest.extension.RestExtension"
        raise ConfigError.of({"rest.extension.classes": f"'{name}' {said}. Write package.module:Class, or BasicAuthSecurityRestExtension."})
    return found


def close_extensions(extensions):
    for extension in extensions:
        try:
            extension.close()
        except Exception:
            log.exception("While closing %s", type(extension).__name__)


class Guard:
    """ASGI middleware: each extension may end a request. CORS preflight requests pass, since they carry no
    credentials by design."""

    def __init__(self, app, extensions):
        self._app = app
        self._extensions = extensions
        self._limiter = None

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not _is_preflight(scope):
            answer = await self._asked(scope)
            if answer is not None:
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _asked(self, scope):
        import anyio
        from starlette.requests import Request

        from standalone.rest.resource import json_answer

        self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
        request = Request(scope)
        for extension in self._extensions:
            try:
                ended = await anyio.to_thread.run_sync(extension.before, request, limiter=self._limiter)
            except Exception as error:
                log.exception("%s %s: the extension %s failed", scope["method"], scope["path"], type(extension).__name__)
                ended = 500, f"The extension {type(extension).__name__} failed: {type(error).__name__}"
            if ended is not None:
                status, message = ended
                headers = {"WWW-Authenticate": f'Basic realm="{extension.realm}", charset="UTF-8"'} if status == 401 and extension.realm else None
                return json_answer({"error_code": status, "message": message}, status, headers)
        return None


def _is_preflight(scope):
    return scope["method"] == "OPTIONS" and any(name == b"access-control-request-method" for name, _ in scope["headers"])
