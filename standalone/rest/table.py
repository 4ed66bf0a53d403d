"""All routes, collected from the API's modules."""

from standalone.rest import admin, connectors, documentation, metrics, plugins, streams, ui_pages
from standalone.rest.resource import json_answer, resource


def tables(herder, worker, extensions, admin_apart):
    """Return (routes of `listeners`, routes of `admin.listeners`)."""
    own = admin.admin_routes(worker)
    common = [
        *admin.routes(worker),
        *connectors.routes(herder),
        *plugins.routes(herder),
        *metrics.routes(herder, worker),
        *streams.routes(worker),
        *ui_pages.routes(herder, worker),
        *(resource(path, GET=_as_json(handler)) for extension in extensions for path, handler in extension.paths.items()),
        *([] if admin_apart else own),
    ]
    secured = any(extension.realm for extension in extensions)
    return common + documentation.routes(common, worker, secured), own


def _as_json(handler):
    return lambda request: json_answer(handler(request))
