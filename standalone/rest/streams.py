"""/sql: statements and what they answer; /queries: the queries that they have made.

    POST   /sql                    {"sql": "…; …", "properties": {…}}   [an answer for each statement: a message, a table, or a cursor]
    GET    /sql/cursors/{id}       rows that have come since, waited for ?wait.ms=… at most (10 s); {"rows": […], "done": …}
    DELETE /sql/cursors/{id}       no more of it
    GET    /queries                names                GET /queries/{name}           configuration, states, figures
    GET    /queries/{name}/history                      PUT /queries/{name}/pause, resume   POST /queries/{name}/restart
"""

from standalone.errors import BadRequestError
from standalone.rest.resource import Operation, body_object, json_answer, nothing, resource

WORDS = frozenset("statement kind message columns rows cursor done query table sql properties".split())
_LONGEST_WAIT_MS = 30_000


def routes(worker):
    def engine():
        return worker.streaming.get()

    def run(request, body):
        said = body_object(body)
        properties = said.get("properties") or {}
        if not isinstance(said.get("sql"), str) or set(said) - {"sql", "properties"} or not isinstance(properties, dict):
            raise BadRequestError('The body must be {"sql": "statements, with ; behind each"}, and may have "properties": {name: value}.')
        return json_answer(engine().execute(said["sql"], {str(key): str(value) for key, value in properties.items()}))

    def rows(request):
        text = request.query_params.get("wait.ms", "10000")
        if not text.isdecimal():
            raise BadRequestError("wait.ms must be a number of milliseconds.")
        return json_answer(engine().cursors.rows(request.path_params["cursor"], min(int(text), _LONGEST_WAIT_MS) / 1000))

    def end(request):
        engine().cursors.end(request.path_params["cursor"])
        return nothing()

    def name(request):
        return request.path_params["query"]

    def look(request):
        from standalone.streams.answers import figures_of

        queries = engine().queries
        status, config = queries.status(name(request)), queries.config(name(request))
        tasks = [{key: value for key, value in task.items() if key != "version"} for task in status["tasks"]]
        return json_answer({"name": status["name"], "config": config, "tasks": tasks, "figures": figures_of(engine(), status["name"])})

    def change(verb):
        def changed(request):
            getattr(engine().queries, verb)(name(request))
            return nothing(202)

        return Operation(changed, None, {})

    def restart(request):
        engine().queries.restart(name(request), include_tasks=True)
        return nothing(202)

    def listed(request):
        return json_answer(worker.streaming.opened.queries.names() if worker.streaming.opened is not None else [])

    return [
        resource("/sql", POST=Operation(run, None, {}, body={})),
        resource("/sql/cursors/{cursor}", GET=Operation(rows, None, {}), DELETE=Operation(end, None, {})),
        resource("/queries", GET=Operation(listed, None, {})),
        resource("/queries/{query}", GET=Operation(look, None, {})),
        resource("/queries/{query}/history", GET=Operation(lambda request: json_answer(engine().queries.history(name(request))), None, {})),
        resource("/queries/{query}/pause", PUT=change("pause")),
        resource("/queries/{query}/resume", PUT=change("resume")),
        resource("/queries/{query}/restart", POST=Operation(restart, None, {})),
    ]
