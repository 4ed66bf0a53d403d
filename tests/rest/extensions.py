"""REST extensions for the tests. Named by path: tests.rest.extensions:Name."""

from standalone.rest.extension import RestExtension

SEEN = []


class Notes(RestExtension):
    """Notes what it is told; refuses who says so; has its own page."""

    def configure(self, properties):
        self._greeting = properties["greeting"]
        SEEN.append("configured")

    def before(self, request):
        if "x-fail" in request.headers:
            raise RuntimeError("the extension's own bug")
        return (403, "You said so.") if "x-refuse" in request.headers else None

    def routes(self):
        return {"/greeting/{name}": lambda request: {"message": f"{self._greeting}, {request.path_params['name']}"}}

    def close(self):
        SEEN.append("closed")


class Fails(RestExtension):
    def configure(self, properties):
        raise ValueError("nothing to configure")


class FailsToRoute(RestExtension):
    def routes(self):
        raise KeyError("greeting")


class RoutesNowhere(RestExtension):
    def routes(self):
        return {"greeting": print}


class NoExtension:
    pass
