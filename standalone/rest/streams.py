"""/sql: run SQL statements; /queries: the persistent queries.

    POST   /sql                    {"sql": "…; …", "properties": {…}}   [a result per statement: a message, a table, or a cursor]
    GET    /sql/cursors/{id}       new rows, waits up to ?wait.ms=… (10 s); {"rows": […], "done": …}
    DELETE /sql/cursors/{id}       close it
    GET    /queries                names                GET /queries/{name}           configuration, states, metrics
    GET    /queries/{name}/history                      PUT /queries/{name}/pause, resume   POST /queries/{name}/restart
"""

from standalone.errors import BadRequestError
from standalone.rest import shapes
from standalone.rest.resource import Operation, body_object, json_answer, nothing, resource

_LONGEST_WAIT_MS = 30_000
_MAY_FAIL = (409, 500)


def routes(worker):
    def engine():
        return worker.streaming.get()

    def run(request, body):
        said = body_object(body)
        properties = {} if said.get("properties") is None else said["properties"]
        if not isinstance(said.get("sql"), str) or set(said) - {"sql", "properties"} or not isinstance(properties, dict):
            raise BadRequestError('The body must be {"sql": "statements, with ; after each"}, and may have "properties": {name: value}.')
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

    def change(verb, summary):
        def changed(request):
            getattr(engine().queries, verb)(name(request))
            return nothing(202)

        return Operation(changed, summary, {202: None}, problems=_MAY_FAIL)

    def history(request):
        return json_answer(engine().queries.history(name(request)))

    def restart(request):
        engine().queries.restart(name(request), include_tasks=True)
        return nothing(202)

    def listed(request):
        return json_answer(worker.streaming.opened.queries.names() if worker.streaming.opened is not None else [])

    wait = {"wait.ms": {"type": "integer", "minimum": 0, "default": 10_000}}
    return [
        resource(
            "/sql",
            POST=Operation(run, "Run SQL statements", {200: shapes.SQL_ANSWERS}, body=shapes.SQL_SENT, problems=[404, *_MAY_FAIL]),
        ),
        resource(
            "/sql/cursors/{cursor}",
            GET=Operation(rows, "New rows of a push query or of PRINT", {200: shapes.CURSOR_ROWS}, wait, problems=_MAY_FAIL),
            DELETE=Operation(end, "End it", {204: None}, problems=_MAY_FAIL),
        ),
        resource("/queries", GET=Operation(listed, "Names of the persistent queries", {200: shapes.NAMES})),
        resource("/queries/{query}", GET=Operation(look, "Configuration, states and metrics of a query", {200: shapes.QUERY}, problems=_MAY_FAIL)),
        resource("/queries/{query}/history", GET=Operation(history, "States and failures of a query", {200: shapes.HISTORY}, problems=_MAY_FAIL)),
        resource("/queries/{query}/pause", PUT=change("pause", "Pause a query")),
        resource("/queries/{query}/resume", PUT=change("resume", "Resume a query")),
        resource("/queries/{query}/restart", POST=Operation(restart, "Restart a query", {202: None}, problems=_MAY_FAIL)),
    ]
