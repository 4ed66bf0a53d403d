"""/connectors: list, create, look at, change, restart, delete.

Handlers are plain functions: Starlette runs each on a thread of its pool, where it may wait for the herder.
"""

from urllib.parse import quote

import orjson
from starlette.responses import Response
from starlette.routing import Route

from standalone.errors import BadRequestError, NotFoundError
from standalone.rest.server import answer
from standalone.runtime.herder import check_target


def routes(herder):
    def listed(request):
        names = herder.names()
        if "expand" not in request.query_params:
            return answer(names)
        wanted = request.query_params.getlist("expand")
        return answer({name: _expanded(herder, name, wanted) for name in names})

    def create(request, body):
        said = _object(body)
        config = said.get("config")
        if not isinstance(config, dict):
            raise BadRequestError("The request has no 'config': it must be an object of texts.")
        config = _texts(config)
        name = _name(said.get("name") or config.get("name"))
        if "name" in config and config["name"].strip() != name:
            raise BadRequestError(f"The request names the connector '{name}', its config '{config['name']}'. They must agree.")
        target = check_target(said["initial_state"]) if said.get("initial_state") is not None else None
        info, _ = herder.create(name, config, target)
        return answer(info, 201, {"Location": f"/connectors/{quote(name)}"})

    def put_config(request, body):
        name = _path_name(request)
        config = _texts(_object(body))
        if config.get("name", name) != name:
            raise BadRequestError(f"The config names the connector '{config['name']}', the address '{name}'. They must agree.")
        info, new = herder.create(name, config, replace=True)
        return answer(info, 201 if new else 200, {"Location": f"/connectors/{quote(name)}"} if new else None)

    def restart(request):
        def flag(key):
            return request.query_params.get(key, "false").lower() == "true"

        include_tasks, only_failed = flag("includeTasks"), flag("onlyFailed")
        shown = herder.restart(_path_name(request), include_tasks, only_failed)
        return answer(shown, 202) if include_tasks or only_failed else Response(status_code=204)

    def delete(request):
        herder.delete(_path_name(request))
        return Response(status_code=204)

    def restart_task(request):
        herder.restart_task(_path_name(request), _task_number(request))
        return Response(status_code=204)

    def accepted(act):
        def handler(request):
            act(_path_name(request))
            return Response(status_code=202)

        return handler

    def shown(ask):
        return lambda request: answer(ask(_path_name(request)))

    one = "/connectors/{name}"
    return [
        Route("/connectors", listed),
        Route("/connectors/", listed),
        Route("/connectors", _with_body(create), methods=["POST"]),
        Route("/connectors/", _with_body(create), methods=["POST"]),
        Route(one, shown(herder.info)),
        Route(one, delete, methods=["DELETE"]),
        Route(one + "/config", shown(herder.config)),
        Route(one + "/config", _with_body(put_config), methods=["PUT"]),
        Route(one + "/status", shown(herder.status)),
        Route(one + "/tasks", shown(herder.tasks)),
        Route(one + "/tasks/{task}/status", lambda request: answer(herder.task_status(_path_name(request), _task_number(request)))),
        Route(one + "/tasks/{task}/restart", restart_task, methods=["POST"]),
        Route(one + "/restart", restart, methods=["POST"]),
        Route(one + "/pause", accepted(herder.pause), methods=["PUT"]),
        Route(one + "/resume", accepted(herder.resume), methods=["PUT"]),
        Route(one + "/stop", accepted(herder.stop), methods=["PUT"]),
    ]


def _expanded(herder, name, wanted):
    out = {}
    for what, ask in (("status", herder.status), ("info", herder.info)):
        if what in wanted:
            out[what] = ask(name)
    return out


def _with_body(handler):
    """Reads the body where reading may wait, then runs the handler on the pool."""

    async def endpoint(request):
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(handler, request, await request.body())

    return endpoint


def _object(body):
    try:
        said = orjson.loads(body)
    except ValueError as error:
        raise BadRequestError(f"The body is not JSON: {error}.") from error
    if not isinstance(said, dict):
        raise BadRequestError("The body must be a JSON object.")
    return said


def _texts(config):
    """A configuration as texts; Connect takes numbers and booleans as what they look like."""
    wrong = [key for key, value in config.items() if isinstance(value, (dict, list))]
    if wrong:
        raise BadRequestError(f"The values of a config are texts, but not that of {', '.join(wrong)}.")
    return {key: value if isinstance(value, str) or value is None else orjson.dumps(value).decode() for key, value in config.items()}


def _name(name):
    if not isinstance(name, str) or not name.strip():
        raise BadRequestError("The request has no 'name' of a connector.")
    name = name.strip()
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        raise BadRequestError("A connector's name holds no control characters.")
    return name


def _path_name(request):
    return request.path_params["name"]


def _task_number(request):
    text = request.path_params["task"]
    if not text.isdigit():
        raise NotFoundError(f"'{text}' is no task's number.")
    return int(text)
