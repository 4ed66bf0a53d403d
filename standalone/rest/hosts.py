"""Which hosts the REST API answers to, and which listeners others can reach.

A browser sends `Host` as the page's address says. A stranger's page can make its own name mean this machine (DNS rebinding) and then
counts as the worker's own origin: so a request that names any other host than the worker's is refused, one that only looks, too.
"""

import ipaddress
import logging
import socket

log = logging.getLogger(__name__)

ALL = "*"
_MOST_TOLD = 20  # refused hosts that are logged, each once


class AllowedHosts:
    """An ASGI application around another. `known` are names beside loopback and the address at which a request arrives."""

    def __init__(self, app, known):
        self._app = app
        self._known = {each.strip().strip("[]").lower() for each in known if each and each.strip()}
        self._told = set()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and (host := self._stranger(scope)) is not None:
            from standalone.rest.resource import json_answer

            self._tell(host)
            message = f"This worker does not answer to the name '{host}'. If it is one of its names, add it to rest.allowed.hosts."
            await json_answer({"error_code": 403, "message": message}, 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _stranger(self, scope):
        """The first host named by the request that is not the worker's; None where there is none."""
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
    """The host of `host:port`, in lower case and without brackets."""
    place = place.strip().lower()
    host = place[1:].partition("]")[0] if place.startswith("[") else place.rpartition(":")[0] if place.count(":") == 1 else place
    return host.removesuffix(".")


def is_loopback(host):
    """Whether it means this machine wherever it is looked up."""
    address = _address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback


def names_of(listeners, advertised, allowed):
    """What may be in Host: the listeners' hosts (where one takes all interfaces, the machine's name), rest.advertised.host.name and
    rest.allowed.hosts."""
    hosts = [listener.host for listener in listeners]
    if any(_is_any(host) for host in hosts):
        hosts.append(socket.gethostname())
    return [*hosts, advertised, *allowed]


def warn_of_open_doors(listeners, protects, asks_for_certificate):
    """One WARN for all listeners that others can reach without TLS or without saying who they are."""
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
            "Other machines can reach the REST API at %s: anyone who does may read and change everything, files and secrets of this machine "
            "among them. Listen on 127.0.0.1, or write an https:// listener (ssl.*) and rest.extension.classes=BasicAuthSecurityRestExtension "
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
