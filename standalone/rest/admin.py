"""/ and /health: the worker's version and health. /admin/loggers: log levels, changed at runtime."""

from starlette.exceptions import HTTPException

from standalone.errors import BadRequestError
from standalone.rest import shapes
from standalone.rest.connectors import texts
from standalone.rest.resource import Operation, body_object, json_answer, nothing, resource
from standalone.runtime.supervision.loggers import ROOT


def routes(worker):
    def root(request):
        return json_answer(worker.about())

    def health(request):
        if worker.starting:
            return json_answer({"status": "starting", "message": "Worker is still starting up."}, 503)
        if (health_problem := worker.health_problem()) is not None:
            return json_answer({"status": "unhealthy", "message": health_problem}, 500)
        return json_answer({"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."})

    return [
        resource("/", GET=Operation(root, "Version and cluster id of the worker", {200: shapes.WORKER})),
        resource("/health", GET=Operation(health, "How it is", {200: shapes.HEALTH, 500: shapes.HEALTH, 503: shapes.HEALTH})),
    ]


def admin_routes(worker):
    loggers = worker.loggers

    def listed(request):
        return json_answer(loggers.all())

    def shown(request):
        return json_answer(loggers.get(_name(request)))

    def changed(request, said):
        level = texts(body_object(said)).get("level")
        if level is None:
            raise BadRequestError("The request has no 'level': it must be a string such as DEBUG.")
        if not loggers.knows_level(level):
            raise HTTPException(404, f"'{level}' is not a level. Levels: {', '.join(loggers.LEVELS)}.")
        touched = loggers.set(_name(request), level)
        # Any other scope means the worker, as in Connect.
        cluster = next(iter(request.query_params.getlist("scope")), "").lower() == "cluster"
        return nothing() if cluster else json_answer(touched)

    return [
        resource("/admin/loggers", GET=Operation(listed, "Loggers with their own level", {200: shapes.LOGGERS})),
        resource(
            "/admin/loggers/{name}",
            GET=Operation(shown, "A logger's level", {200: shapes.LOGGER}),
            PUT=Operation(
                changed,
                "Give a logger and those below it a level",
                {200: shapes.NAMES, 204: None},
                query={"scope": {"enum": ["worker", "cluster"], "default": "worker"}},
                body=shapes.LEVEL_SENT,
                as_texts=True,
            ),
        ),
    ]


def _name(request):
    """Return the logger's name; root matches in any case, as in Connect."""
    name = request.path_params["name"]
    return ROOT if name.lower() == ROOT else name
