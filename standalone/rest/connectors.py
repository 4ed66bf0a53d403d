"""/connectors: list, create, get, change, restart, delete; topics and offsets."""

import re
from urllib.parse import quote

from starlette.exceptions import HTTPException

from standalone.errors import BadRequestError, NotFoundError
from standalone.rest import shapes
from standalone.rest.resource import Operation, body_object, flag, json_answer, nothing, resource
from standalone.runtime.herder import check_target
from standalone.runtime.offsets import changes as offset_changes

_VIEWS = ("status", "info")
_WHOLE = re.compile(r"\+?\d{1,99}")  # as Java parses an int: digits of any script
_MOST = (1 << 31) - 1


def routes(herder):
    def listed(request):
        names = herder.names()
        if "expand" not in request.query_params:
            return json_answer(names)
        wanted = [view for view in _VIEWS if view in request.query_params.getlist("expand")]
        found = {name: _expanded(herder, name, wanted) for name in names}
        return json_answer({name: views for name, views in found.items() if views is not None})

    def create(request, said):
        said = body_object(said)
        if not isinstance(said.get("config"), dict):
            raise BadRequestError("The request has no 'config': it must be an object with string values.")
        name, config = _name(said.get("name")), texts(said["config"])
        _must_agree(config, name, "The request")
        target = check_target(said["initial_state"]) if said.get("initial_state") is not None else None
        info, _ = herder.create(name, {**config, "name": name}, target)
        return json_answer(info, 201, _location(name))

    def put_config(request, said):
        name, config = _path_name(request), texts(body_object(said))
        _must_agree(config, name, "The address")
        info, new = herder.create(name, {**config, "name": name}, replace=True)
        return json_answer(info, 201 if new else 200, _location(name) if new else None)

    def patch_config(request, said):
        return json_answer(herder.patch(_path_name(request), texts(body_object(said))))

    def restart(request):
        include_tasks, only_failed = (flag(request, key) for key in ("includeTasks", "onlyFailed"))
        shown = herder.restart(_path_name(request), include_tasks, only_failed)
        return json_answer(shown, 202) if include_tasks or only_failed else nothing()

    def restart_task(request):
        herder.restart_task(_path_name(request), _task_number(request))
        return nothing()

    def task_status(request):
        return json_answer(herder.task_status(_path_name(request), _task_number(request)))

    def topics(request):
        _must_be_enabled(herder, "topic.tracking.enable")
        name = _path_name(request)
        return json_answer({name: {"topics": herder.topics(name)}})

    def reset_topics(request):
        _must_be_enabled(herder, "topic.tracking.enable")
        _must_be_enabled(herder, "topic.tracking.allow.reset")
        herder.reset_topics(_path_name(request))
        return nothing(202)

    def offsets(request):
        return json_answer({"offsets": herder.offsets(_path_name(request))})

    def change_offsets(request, said):
        entries = offset_changes.parse(said)
        managed = herder.change_offsets(_path_name(request), entries)
        return json_answer({"message": "The offsets have been set." + ("" if managed else _FRAMEWORK_ONLY)})

    def reset_offsets(request):
        managed = herder.reset_offsets(_path_name(request))
        return json_answer({"message": "The offsets have been reset." + ("" if managed else _FRAMEWORK_ONLY)})

    def look(ask, summary, shape):
        return Operation(lambda request: json_answer(ask(_path_name(request))), summary, {200: shape})

    def act(on, summary, status):
        def handler(request):
            on(_path_name(request))
            return nothing(status)

        return Operation(handler, summary, {status: None}, problems=_BUSY)

    one, a_task = "/connectors/{name}", "/connectors/{name}/tasks/{task}"
    info, created = {200: shapes.CONNECTOR}, {201: shapes.CONNECTOR}
    changed = {"body": shapes.CONFIG_SENT, "problems": _BUSY, "as_texts": True}
    flags = {"includeTasks": shapes.YES_NO, "onlyFailed": shapes.YES_NO}
    return [
        resource(
            "/connectors",
            GET=Operation(listed, "The connectors' names, or with `expand` their views", {200: shapes.LISTED}, query={"expand": _EXPAND}),
            POST=Operation(create, "Create a connector", created, body=shapes.NEW_CONNECTOR, problems=_BUSY, as_texts=True),
        ),
        resource(
            one,
            GET=look(herder.info, "A connector: its configuration and tasks", shapes.CONNECTOR),
            DELETE=act(herder.delete, "Delete a connector", 204),
        ),
        resource(
            f"{one}/config",
            GET=look(herder.config, "A connector's configuration", shapes.CONFIG),
            PUT=Operation(put_config, "Create a connector or replace its configuration", info | created, **changed),
            PATCH=Operation(patch_config, "Change keys of a configuration; null removes one", info, **changed),
        ),
        resource(f"{one}/status", GET=look(herder.status, "States of a connector and its tasks", shapes.STATUS)),
        resource(f"{one}/history", GET=look(herder.history, "States and failures of a connector and its tasks, newest first", shapes.HISTORY)),
        resource(
            f"{one}/pipeline",
            GET=look(herder.pipeline, "The compiled chain of each running task, and its records per engine", shapes.PIPELINE),
        ),
        resource(f"{one}/tasks", GET=look(herder.tasks, "A connector's tasks with their configurations", shapes.TASKS)),
        resource(f"{a_task}/status", GET=Operation(task_status, "State of a task", {200: shapes.TASK_STATE})),
        resource(f"{a_task}/restart", POST=Operation(restart_task, "Restart a task", {204: None}, problems=_BUSY)),
        resource(
            f"{one}/restart",
            POST=Operation(
                restart,
                "Restart a connector; with `includeTasks` its tasks, too; with `onlyFailed` only failed ones",
                {202: shapes.STATUS, 204: None},
                query=flags,
                problems=_BUSY,
            ),
        ),
        resource(f"{one}/pause", PUT=act(herder.pause, "Pause a connector and its tasks", 202)),
        resource(f"{one}/resume", PUT=act(herder.resume, "Resume a paused or stopped connector", 202)),
        resource(f"{one}/stop", PUT=act(herder.stop, "Stop a connector and end its tasks; its configuration stays", 204)),
        resource(f"{one}/topics", GET=Operation(topics, "Topics that a connector has used", {200: shapes.TOPICS}, problems=[403])),
        resource(f"{one}/topics/reset", PUT=Operation(reset_topics, "Forget the topics that a connector has used", {202: None}, problems=[403])),
        resource(
            f"{one}/offsets",
            GET=Operation(offsets, "A connector's offsets", {200: shapes.OFFSETS}, problems=_BUSY),
            PATCH=Operation(
                change_offsets, "Set offsets of a stopped connector; null resets one", {200: shapes.MESSAGE}, body=shapes.OFFSETS_SENT, problems=_BUSY
            ),
            DELETE=Operation(reset_offsets, "Reset all offsets of a stopped connector", {200: shapes.MESSAGE}, problems=_BUSY),
        ),
    ]


_BUSY = (409,)
_EXPAND = {"type": "array", "items": {"enum": list(_VIEWS)}}
_FRAMEWORK_ONLY = " If the connector also stores positions outside Connect, set those, too."


def _expanded(herder, name, wanted):
    """Return the views of a connector; None if it was deleted meanwhile."""
    try:
        return {view: getattr(herder, view)(name) for view in wanted}
    except NotFoundError:
        return None


def _must_be_enabled(herder, key):
    if not herder.worker_value(key):
        raise HTTPException(403, f"Forbidden: {key} is false")


def _must_agree(config, name, who):
    said = config.get("name")
    if said is not None and said.strip() != name:
        raise BadRequestError(f"{who} names the connector '{name}', its config '{said}'. They must agree.")


def _location(name):
    return {"Location": f"/connectors/{quote(name, safe='')}"}


def texts(config):
    """Return a configuration as strings; numbers and booleans keep their original text (see Operation.as_texts)."""
    wrong = [key for key, value in config.items() if isinstance(value, (dict, list))]
    if wrong:
        raise BadRequestError(f"The values of a config must be strings; {', '.join(wrong)} is not.")
    return {key: _text(value) for key, value in config.items()}


def _text(value):
    return ("false", "true")[value] if isinstance(value, bool) else value


def _name(name):
    name = _text(name)
    if not isinstance(name, str) or not name.strip():
        raise BadRequestError("The request has no connector 'name'.")
    name = name.strip()
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        raise BadRequestError("A connector's name must not contain control characters.")
    return name


def _path_name(request):
    return request.path_params["name"]


def _task_number(request):
    text = request.path_params["task"]
    if not _WHOLE.fullmatch(text) or int(text) > _MOST:
        raise NotFoundError(f"'{text}' is not a task's number.")
    return int(text)
