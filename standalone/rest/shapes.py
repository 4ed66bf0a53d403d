"""JSON Schemas of request and response bodies, named components of the OpenAPI document."""


class Shape:
    """A named JSON Schema; other schemas refer to it by `shape.ref`."""

    def __init__(self, name, schema):
        self.name = name
        self.schema = schema

    @property
    def ref(self):
        return {"$ref": f"#/components/schemas/{self.name}"}


ALL = {}

TEXT = {"type": "string"}
MAYBE_TEXT = {"type": ["string", "null"]}
WHOLE = {"type": "integer"}
YES_NO = {"type": "boolean"}


def _shape(name, schema):
    ALL[name] = Shape(name, schema)
    return ALL[name]


def _object(required, **optional):
    """An object with exactly these members; those in `optional` may be absent."""
    return {"type": "object", "properties": {**required, **optional}, "required": list(required), "additionalProperties": False}


def _list(of, **more):
    return {"type": "array", "items": of, **more}


def _map(of):
    return {"type": "object", "additionalProperties": of}


def words():
    """Member names and fixed strings of the API itself, which need no masking."""
    found = set()

    def gather(schema):
        if isinstance(schema, dict):
            found.update(schema.get("properties", ()))
            found.update(each for each in schema.get("enum", ()) if isinstance(each, str))
            schema = list(schema.values())
        for each in schema if isinstance(schema, list) else ():
            gather(each)

    for shape in ALL.values():
        gather(shape.schema)
    return found


PROBLEM = _shape("Problem", _object({"error_code": WHOLE, "message": TEXT}))
MESSAGE = _shape("Message", _object({"message": TEXT}))
NAMES = _shape("Names", _list(TEXT))

WORKER = _shape("Worker", _object({"version": TEXT, "commit": TEXT, "kafka_cluster_id": MAYBE_TEXT}))
HEALTH = _shape("Health", _object({"status": {"enum": ["starting", "healthy", "unhealthy"]}, "message": MAYBE_TEXT}))

CONFIG = _shape("Config", _map(MAYBE_TEXT))
# Numbers and booleans are accepted as their text.
CONFIG_SENT = _shape("ConfigSent", _map({"type": ["string", "number", "boolean", "null"]}))
TASK_ID = _shape("TaskId", _object({"connector": TEXT, "task": WHOLE}))
KIND = {"enum": ["source", "sink", "unknown"]}
CONNECTOR = _shape("Connector", _object({"name": TEXT, "config": CONFIG.ref, "tasks": _list(TASK_ID.ref), "type": KIND}))
NEW_CONNECTOR = _shape(
    "NewConnector",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "config": CONFIG_SENT.ref,
            "initial_state": {"enum": ["RUNNING", "PAUSED", "STOPPED", None]},
        },
        "required": ["name", "config"],
    },
)
STATES = {"enum": ["UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING", "DESTROYED"]}
_STATE = {"state": STATES, "worker_id": TEXT, "version": MAYBE_TEXT}
# More members may be present: the restart count, counters of failures.
CONNECTOR_STATE = _shape("ConnectorState", _object(_STATE, trace=TEXT) | {"additionalProperties": True})
TASK_STATE = _shape("TaskState", _object({"id": WHOLE, **_STATE}, trace=TEXT) | {"additionalProperties": True})
STATUS = _shape(
    "Status", _object({"name": TEXT, "connector": CONNECTOR_STATE.ref, "tasks": _list(TASK_STATE.ref), "type": KIND}) | {"additionalProperties": True}
)
EXPANDED = _shape("Expanded", _map(_object({}, status=STATUS.ref, info=CONNECTOR.ref)))
LISTED = _shape("Listed", {"anyOf": [NAMES.ref, EXPANDED.ref]})
HISTORY = _shape(
    "History",
    _list(_object({"time": TEXT, "connector": TEXT, "task": {"type": ["integer", "null"]}, "state": TEXT, "worker_id": TEXT, "trace": MAYBE_TEXT})),
)
_ENGINES = ("identity", "rows", "columns", "spark")
_TASK_PIPELINE = _shape(
    "TaskPipeline",
    _object(
        {
            **{"id": WHOLE, "records": _object(dict.fromkeys(_ENGINES, WHOLE)), "redone": WHOLE, "failed_batches": WHOLE, "chain": _list(TEXT)},
            "by_rows": _list(_object({"reason": TEXT, "records": WHOLE})),
            "spark_plans": _list(_object({"title": TEXT, "spark": TEXT})),
            "counted": _list(_object({"what": TEXT, "count": {"type": "number"}})),
        }
    ),
)
PIPELINE = _shape("Pipeline", _object({"name": TEXT, "type": KIND, "tasks": _list(_TASK_PIPELINE.ref)}))
TASKS = _shape("Tasks", _list(_object({"id": TASK_ID.ref, "config": CONFIG.ref})))
TOPICS = _shape("Topics", _map(_object({"topics": _list(TEXT)})))

_ANY_OBJECT = {"type": ["object", "null"]}
OFFSETS = _shape("Offsets", _object({"offsets": _list(_object({"partition": _ANY_OBJECT, "offset": _ANY_OBJECT}))}))
OFFSETS_SENT = _shape(
    "OffsetsSent",
    {
        "type": "object",
        "properties": {
            "offsets": _list(
                {"type": "object", "properties": {"partition": _ANY_OBJECT, "offset": _ANY_OBJECT}, "required": ["partition"]}, minItems=1
            )
        },
        "required": ["offsets"],
    },
)

PLUGINS = _shape("Plugins", _list(_object({"class": TEXT, "type": TEXT, "version": MAYBE_TEXT})))
KEY = _shape(
    "Key",
    _object(
        {
            **{"name": TEXT, "type": TEXT, "required": YES_NO, "default_value": MAYBE_TEXT, "importance": TEXT, "documentation": TEXT},
            **{"group": MAYBE_TEXT, "order_in_group": WHOLE, "width": TEXT, "display_name": TEXT, "dependents": _list(TEXT)},
        }
    ),
)
KEYS = _shape("Keys", _list(KEY.ref))
VALUE = _shape(
    "Value",
    _object({"name": TEXT, "value": MAYBE_TEXT, "recommended_values": _list(MAYBE_TEXT), "errors": _list(TEXT), "visible": YES_NO}),
)
_KEY_OR_NOT = {"anyOf": [KEY.ref, {"type": "null"}]}
VERDICT = _shape(
    "Verdict",
    _object({"name": TEXT, "error_count": WHOLE, "groups": _list(TEXT), "configs": _list(_object({"definition": _KEY_OR_NOT, "value": VALUE.ref}))}),
)

LOGGER = _shape("Logger", _object({"level": TEXT, "last_modified": {"type": ["integer", "null"]}}))
LOGGERS = _shape("Loggers", _map(LOGGER.ref))
LEVEL_SENT = _shape("LevelSent", {"type": "object", "properties": {"level": TEXT}, "required": ["level"]})
DOCUMENT = _shape("Document", {"type": "object"})

_PROPERTIES = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}
SQL_SENT = _shape("SqlSent", _object({"sql": TEXT}, properties={**_PROPERTIES, "type": ["object", "null"]}))
_ROWS = _list(_list({}))
SQL_ANSWERS = _shape(
    "SqlAnswers",
    _list(
        _object(
            {"statement": TEXT, "kind": {"enum": ["message", "table", "cursor"]}},
            **{"message": TEXT, "query": TEXT, "columns": _list(TEXT), "rows": _ROWS, "cursor": TEXT},
        )
    ),
)
CURSOR_ROWS = _shape("CursorRows", _object({"rows": _ROWS, "done": YES_NO}))
QUERY = _shape("Query", _object({"name": TEXT, "config": CONFIG.ref, "tasks": _list({"type": "object"}), "figures": _map({"type": "object"})}))
