"""Allowed hosts of the REST API, and a warning about listeners reachable from other machines.

A browser sends the page's host as `Host`. A foreign page can make its own name resolve to this machine (DNS rebinding) and then
counts as the worker's origin: so requests for any other host name are rejected, including reads.
"""

import ipaddress
import logging
import socket

log = logging.getLogger(__name__)

ALL = "*"
_MOST_TOLD = 20  # rejected hosts that are logged, once each


class AllowedHosts:
    """ASGI middleware. `known` are allowed names besides loopback and the address at which a request arrives."""

    def __init__(self, app, known):
        self._app = app
        self._known = {each.strip().strip("[]").lower() for each in known if each and each.strip()}
        self._told = set()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and (host := self._foreign_host(scope)) is not None:
            from standalone.rest.resource import json_answer

            self._tell(host)
            message = f"This worker does not answer to the name '{host}'. If it is one of its names, add it to rest.allowed.hosts."
            await json_answer({"error_code": 403, "message": message}, 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _foreign_host(self, scope):
        """Return the first host in the request that is not the worker's; None if there is none."""
        if ALL in self._known:
            return None
        here = (scope.get("server") or ("",))[0]
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        return next((host for host in map(host_of, named) if not self._is_own(host, here)), None)

    def _is_own(self, host, here):
        return host == "" or host in self._known or is_loopback(host) or (host == here and _address(host) is not None)

    def _tell(self, host):
        if host not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(host)
            log.warning("A request for the host '%s' was refused: if that is a name of this worker, add it to rest.allowed.hosts", host)


def host_of(place):
    """Return the host of `host:port`, in lower case and without brackets."""
    place = place.strip().lower()
    host = place[1:].partition("]")[0] if place.startswith("[") else place.rpartition(":")[0] if place.count(":") == 1 else place
    return host.removesuffix(".")


def is_loopback(host):
    """Whether it resolves to loopback everywhere."""
    address = _address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback


def names_of(listeners, advertised, allowed):
    """Return the allowed host names: the listeners' hosts (for all interfaces, the machine's name), rest.advertised.host.name and
    rest.allowed.hosts."""
    hosts = [listener.host for listener in listeners]
    if any(_is_any(host) for host in hosts):
        hosts.append(socket.gethostname())
    return [*hosts, advertised, *allowed]


def warn_of_open_doors(listeners, protects, asks_for_certificate):
    """Log one WARN for all listeners that other machines can reach without TLS or authentication."""
    doubts = []
    for listener in listeners:
        if is_loopback(listener.address[0]):
            continue
        missing = [] if listener.scheme == "https" else ["TLS"]
        if not protects and not (listener.scheme == "https" and asks_for_certificate(listener)):
            missing.append("authentication")
        if missing:
            doubts.append(f"{listener.url} (without {' and '.join(missing)})")
    if doubts:
        log.warning(
            "Other machines can reach the REST API at %s: anyone who can connect may read and change everything, including files and secrets "
            "of this machine. Listen on 127.0.0.1, or write an https:// listener (ssl.*) and rest.extension.classes=BasicAuthSecurityRestExtension "
            "or ssl.client.auth=required.",
            ", ".join(doubts),
        )


def _is_any(host):
    address = _address(host)
    return address is not None and address.is_unspecified


def _address(host):
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
