"""REST extensions: the base of classes in rest.extension.classes.

    from standalone.rest.extension import RestExtension

    class OnlyFromInside(RestExtension):
        def before(self, request):
            if request.client and not request.client.host.startswith("10."):
                return 403, "This worker answers to 10.0.0.0/8 only."

        def routes(self):
            return {"/inside/motd": lambda request: {"message": "Hello."}}

Extensions run in the order in which they are listed. This module imports no server, so importing it is cheap.
"""


class RestExtension:
    """All methods are optional. `before` and the handlers run on threads of a pool, several at once."""

    paths: dict = {}  # the result of routes() at the worker's start
    realm = None  # a string: responses with 401 ask for Basic authentication in this realm

    def configure(self, properties):
        """Called once before the listeners open, with the worker's configuration as strings. May raise ConfigError."""

    def before(self, request):
        """Called for each request (Starlette's): None continues, `(status, message)` responds at once."""

    def routes(self):
        """Additional {path: handler} for GET; called once, after `configure`. Each handler takes the request and returns a value for
        JSON."""
        return {}

    def close(self):
        """Called when the worker stops."""
