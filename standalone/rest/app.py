"""The ASGI application: routes, errors in Connect's format, masked secrets."""

import logging

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from standalone.errors import AlreadyExistsError, BadRequestError, ConfigError, ConflictError, ConnectError, NotFoundError
from standalone.rest.front import Front
from standalone.rest.guard import Guard
from standalone.rest.hosts import AllowedHosts
from standalone.rest.masked import Masked
from standalone.rest.resource import json_answer
from standalone.rest.same_origin import SameOrigin

log = logging.getLogger(__name__)

_STATUS = {NotFoundError: 404, AlreadyExistsError: 409, ConflictError: 409, BadRequestError: 400, ConfigError: 400}


def make_app(routes, config, extensions=(), hosts=()):
    app = Starlette(
        routes=routes,
        exception_handlers={ConnectError: _on_connect_error, HTTPException: _on_http_error, Exception: _on_any_error},
    )
    app.router.redirect_slashes = False
    origins = config["access.control.allow.origin"]
    inner = Guard(SameOrigin(app, origins), extensions) if extensions else SameOrigin(app, origins)
    front = Front(AllowedHosts(inner, hosts), origins, config["access.control.allow.methods"], config["response.http.headers.config"])
    return Masked(front)


def _on_connect_error(request, error):
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    if status == 500:
        log.error("%s %s failed: %s", request.method, request.url.path, error)
    return _problem(status, str(error))


def _on_http_error(request, error):
    return _problem(error.status_code, f"HTTP {error.status_code} {error.detail}", error.headers)


def _on_any_error(request, error):
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _problem(500, f"{type(error).__name__}: {error}")


def _problem(status, message, headers=None):
    return json_answer({"error_code": status, "message": message}, status, headers)
