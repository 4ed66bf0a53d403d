"""Results of SHOW and DESCRIBE: tables of columns and rows."""

from standalone.streams.sql import statements as s
from standalone.streams.sql.functions import RENAMED, REWRITTEN


def rows(columns, found):
    return {"kind": "table", "columns": list(columns), "rows": [list(row) for row in found]}


def table(arrow):
    """Convert a pa.Table to a result."""
    return rows(arrow.column_names, zip(*(plain(column.to_pylist()) for column in arrow.columns)) if arrow.num_rows else [])


def plain(value):
    """Convert a value for JSON."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def show(streams, statement):
    return {
        "TOPICS": _topics, "STREAMS": _sources, "TABLES": _sources, "QUERIES": _queries, "CONNECTORS": _connectors,
        "FUNCTIONS": _functions, "PROPERTIES": _properties,
    }[statement.what](streams, statement)  # fmt: skip


def _topics(streams, statement):
    found = streams.worker.log_view().topics()
    return rows(["topic", "partitions", "records"], [(each["name"], each["partitions"], each["records"]) for each in found])


def _sources(streams, statement):
    kind = s.STREAM if statement.what == "STREAMS" else s.TABLE
    found = sorted(streams.catalog.all(kind), key=lambda source: source.name)
    return rows(
        [kind.lower(), "topic", "key format", "value format", "windowed", *(["statement"] if statement.extended else [])],
        [
            (each.name, each.topic, each.key_format, each.value_format, bool(each.windows), *([each.statement] if statement.extended else []))
            for each in found
        ],
    )


def _queries(streams, statement):
    found = []
    for name in streams.queries.names():
        status, config = streams.queries.status(name), streams.queries.config(name)
        found.append((name, state_of(status), config["into"], config["statement"]))
    return rows(["query", "state", "writes", "statement"], found)


def state_of(status):
    """A query's task state, or its own state without a task."""
    return status["tasks"][0]["state"] if status["tasks"] else status["connector"]["state"]


def _connectors(streams, statement):
    found = []
    for name in streams.connectors.names():
        status = streams.connectors.status(name)
        if statement.filter in (None, status["type"].upper()):
            states = ", ".join(f"{task['state']}" for task in status["tasks"]) or "no task"
            found.append((name, status["type"], status["connector"]["state"], states, streams.connectors.config(name).get("connector.class")))
    return rows(["connector", "type", "state", "tasks", "class"], found)


def _functions(streams, statement):
    found = [*RENAMED.items(), *((name, "an expression of Spark's") for name in REWRITTEN)]
    own = [(each.name, f"{each.text}, of {each.place}") for each in streams.functions]
    return rows(["function", "here"], [*own, *sorted(found)])


def _properties(streams, statement):
    from standalone.streams.query import QueryConnector

    wanted = [option for option in QueryConnector.config_def if option.name not in ("statement", "into")]
    return rows(["property", "default", "meaning"], [(option.name, str(option.default), option.doc) for option in wanted])


def describe(streams, source, uses):
    lines = [("column", f"{name} {kind}{' KEY' if is_key else ''}") for name, kind, is_key in source.columns]
    lines += [("kind", source.kind), ("topic", source.topic), ("key format", source.key_format), ("value format", source.value_format)]
    if source.windows:
        lines.append(("windowed", source.windows if source.window_ms is None else f"{source.windows}, {source.window_ms} ms"))
    if source.timestamp:
        lines.append(("timestamp", source.timestamp))
    for name, reads, writes in uses:
        lines += _of_query(streams, name, "written by" if writes == source.name.lower() else "read by")
    lines.append(("statement", source.statement))
    return rows(["what", "is"], lines)


def _of_query(streams, name, how):
    status = streams.queries.status(name)
    found = [(how, f"{name}, {state_of(status)}")]
    part = status["tasks"][0] if status["tasks"] else status["connector"]
    if part.get("trace"):
        found.append(("why", part["trace"].strip().splitlines()[-1]))
    for figures in figures_of(streams, name).values():
        found += [(label.replace("-total", "").replace("-", " "), str(value)) for label, value in figures.items()]
    return found


def figures_of(streams, name):
    """Return {group: {metric: value}} of a running query."""
    tasks = next((counted.tasks for counted in streams.queries.count_connectors() if counted.name == name), ())
    runner = next((task.runner for task in tasks if task.runner is not None), None)
    return runner.metrics() if runner is not None else {}


def connector(status, config):
    lines = [("connector", status["name"]), ("type", status["type"]), ("state", status["connector"]["state"])]
    for task in status["tasks"]:
        lines.append((f"task {task['id']}", task["state"]))
        if task.get("trace"):
            lines.append(("why", task["trace"].strip().splitlines()[-1]))
    return rows(["what", "is"], [*lines, *(item for item in sorted(config.items()) if item[0] != "name")])
