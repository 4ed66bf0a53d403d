"""/openapi.json, and HTML pages: /docs (all paths of that document) and /docs/configuration (all keys).

The pages are plain HTML without scripts, and load nothing from elsewhere.
"""

from html import escape

from starlette.responses import Response

from standalone.config import said
from standalone.rest import shapes
from standalone.rest.openapi import document
from standalone.rest.resource import Operation, json_answer, resource

HTML = "text/html"
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;border-bottom:1px solid #ccc;padding:.3rem .6rem}"
    "code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}a{color:#8ab4f8}th,td{border-color:#444}}"
)


def routes(others, worker, secured):
    """Return the routes that describe `others` and themselves."""
    own = []

    def described():
        return document([*others, *own], secured)

    def openapi(request):
        return json_answer(described())

    def addresses(request):
        return _page("REST API", _addresses(described()))

    def configuration(request):
        return _page("Configuration", _configuration(worker.config.plugins))

    own += [
        resource("/openapi.json", GET=Operation(openapi, "This document", {200: shapes.DOCUMENT})),
        resource("/docs", GET=Operation(addresses, "A page of all addresses", {200: shapes.TEXT}, media=HTML)),
        resource("/docs/configuration", GET=Operation(configuration, "A page of all configuration keys", {200: shapes.TEXT}, media=HTML)),
    ]
    return own


def _page(title, body):
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} - connect-standalone</title><style>{_STYLE}</style></head>'
    links = '<nav><a href="/docs">REST API</a> · <a href="/docs/configuration">Configuration</a> · <a href="/openapi.json">OpenAPI document</a></nav>'
    return Response(f"{head}<body>{links}<main><h1>{title}</h1>{body}</main></body></html>", media_type=HTML, headers=_HEADERS)


def _addresses(found):
    rows = []
    for path, methods in found["paths"].items():
        for method, said_of_it in methods.items():
            query = [parameter["name"] for parameter in said_of_it.get("parameters", ()) if parameter["in"] == "query"]
            address = f"{method.upper()} {path}" + (f"?{'&'.join(query)}" if query else "")
            rows.append([_code(address), escape(said_of_it["summary"]), _shape_of(said_of_it.get("requestBody")), _answers(said_of_it["responses"])])
    parts = [_table(["Request", "What it does", "Body", "Answers"], rows), "<h2>Shapes</h2>"]
    for name, schema in found["components"]["schemas"].items():
        parts.append(f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{_schema(schema)}</p>')
    return "".join(parts)


def _answers(responses):
    return "<br>".join(f"{status} {_shape_of(answer) or escape(answer['description'])}" for status, answer in responses.items() if status < "400") + (
        "<br>" + " ".join(status for status in responses if status >= "400")
    )


def _shape_of(part):
    """Return a link to a body's schema."""
    content = (part or {}).get("content", {})
    return next((_schema(each["schema"]) for each in content.values()), "")


def _schema(schema):
    """Format a JSON Schema in one line."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(_schema(each) for each in schema["anyOf"])
    if "enum" in schema:
        return escape(" | ".join(str(each) for each in schema["enum"]))
    if schema.get("properties"):
        needed = schema.get("required", ())
        members = [f"<code>{escape(name)}</code>{'' if name in needed else '?'}: {_schema(each)}" for name, each in schema["properties"].items()]
        return "{ " + ", ".join(members) + " }"
    if schema.get("items"):
        return f"[ {_schema(schema['items'])} … ]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"{{ text: {_schema(schema['additionalProperties'])} … }}"
    kind = schema.get("type", "anything")
    return escape(" or ".join(kind) if isinstance(kind, list) else kind)


def _configuration(plugins):
    from standalone.runtime.configuration.connector_keys import SINK, SOURCE
    from standalone.runtime.configuration.worker_keys import WORKER

    sections = [("Worker", WORKER), ("Every source connector", SOURCE), ("Every sink connector", SINK)]
    for plugin in plugins.list():
        sections.append((f"{plugin['class']} ({plugin['type'].replace('_', ' ')})", None))
    parts = []
    for title, options in sections:
        if options is None:
            parts.append(f'<li><a href="/connector-plugins/{escape(title.split(" ")[0])}/config">{escape(title)}</a></li>')
            continue
        rows = [
            [
                *(_code(option.name), escape(option.type.lower()), "required" if option.required else _code(option.default_text)),
                *(escape(said(option.check)) if option.check is not None else "", escape(option.importance.lower()), escape(option.doc)),
            ]
            for option in options
            if not option.internal
        ]
        parts.append(f"<h2>{escape(title)}</h2>" + _table(["Key", "Type", "Default", "Valid values", "Importance", "Meaning"], rows))
    listed = [part for part in parts if part.startswith("<li>")]
    return "".join(part for part in parts if not part.startswith("<li>")) + f"<h2>Plugins</h2><ul>{''.join(listed)}</ul>"


def _code(text):
    return f"<code>{escape(text)}</code>" if text else ""


def _table(heads, rows):
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
