"""What extends the REST API: classes named in rest.extension.classes.

    from standalone.rest.extension import RestExtension

    class OnlyFromInside(RestExtension):
        def before(self, request):
            if request.client and not request.client.host.startswith("10."):
                return 403, "This worker answers to 10.0.0.0/8 only."

        def routes(self):
            return {"/inside/motd": lambda request: {"message": "Hello."}}

Extensions are asked in the order in which they are named. This module imports no server, so that naming one costs nothing.
"""


class RestExtension:
    """All methods may be left out. `before` and the handlers run on threads of a pool, several at a time."""

    paths: dict = {}  # what routes() said as the worker started
    realm = None  # a string makes refusals with 401 ask for a name and a password (Basic)

    def configure(self, properties):
        """Called once, before the listeners open, with all strings of the worker's configuration. May raise ConfigError."""

    def before(self, request):
        """Called with each request (Starlette's): None lets it pass, `(status, message)` ends it with that answer."""

    def routes(self):
        """{path: handler} of addresses of its own, for GET; asked once, behind `configure`. Each handler is given the request and returns what
        becomes JSON."""
        return {}

    def close(self):
        """Called when the worker stops."""
