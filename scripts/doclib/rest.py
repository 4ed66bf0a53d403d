"""The page of the REST API: each path and method out of the table that the routes are made of, with a request by curl."""

HEAD = """# REST API

This page lists every path and method. It is generated from the code by `scripts/docs`. Paths, bodies and status codes are those of Kafka Connect;
`history`, `pipeline` and `/openapi.json` are additions. A running worker serves the same information as `/openapi.json` and as a page at `/docs`. All
responses are JSON except [`/metrics`](metrics.md) and the web page at `/ui`.

Errors are `{"error_code": 404, "message": "…"}`. The examples are for a local worker without a password; otherwise add `-u NAME:PASSWORD` and
`--cacert`.
"""
_NAMES = {"/connectors": "my-source", "/connector-plugins": "FileStreamSource", "/admin": "root"}
_CONFIG = '{"connector.class": "FileStreamSource", "file": "test.txt", "topic": "lines"}'
_BODIES = {
    ("POST", "/connectors"): '{"name": "my-source", "config": %s}' % _CONFIG,
    ("PUT", "/connectors/{name}/config"): _CONFIG,
    ("PATCH", "/connectors/{name}/config"): '{"tasks.max": "2", "errors.tolerance": null}',
    ("PATCH", "/connectors/{name}/offsets"): '{"offsets": [{"partition": {"filename": "test.txt"}, "offset": {"position": 0}}]}',
    ("PUT", "/connector-plugins/{name}/config/validate"): _CONFIG,
    ("PUT", "/admin/loggers/{name}"): '{"level": "DEBUG"}',
}


def document():
    from standalone.rest import admin, connectors, documentation, openapi, plugins

    class Anything:
        """A placeholder for herder and worker: routes only keep references to their methods."""

        def __getattr__(self, name):
            return None

    known = Anything()
    routes = [*admin.routes(known), *connectors.routes(known), *plugins.routes(known), *admin.admin_routes(known)]
    return openapi.document([*routes, *documentation.routes(routes, known, False)])


def requests():
    """[(method, path with names in it, body)] of every operation."""
    found = []
    for path, operations in document()["paths"].items():
        name = next((value for prefix, value in _NAMES.items() if path.startswith(prefix)), "")
        for method in operations:
            filled = path.replace("{name}", name).replace("{task}", "0")
            found.append((path, method.upper(), filled, _BODIES.get((method.upper(), path))))
    return found


def page():
    described = document()
    parts, group = [HEAD], None
    for path, method, filled, body in requests():
        operation = described["paths"][path][method.lower()]
        if operation["tags"][0] != group:
            group = operation["tags"][0]
            parts.append(f"\n## {group}\n")
        parts.append(f"### {method} {path}\n\n{operation['summary']}.\n")
        query = [parameter for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
        if query:
            parts.append("Query: " + ", ".join(f"`{parameter['name']}`" for parameter in query) + ".\n")
        verb = "" if method == "GET" else f"-X {method} "
        sent = f" \\\n      -H 'Content-Type: application/json' -d '{body}'" if body else ""
        parts.append(f"    curl -s {verb}http://localhost:8083{filled}{sent}\n")
        said = [f"{status} {_brief(answer['description'])}" for status, answer in operation["responses"].items()]
        parts.append(f"Answers: {', '.join(said)}.\n")
    return "\n".join(parts)


def _brief(description):
    return description.partition(":")[0].partition(";")[0].lower()
