"""Each kind of case by its row form: an outcome for a case."""

import base64

from goldenlib import encoding
from standalone import (
    ConnectError,
    Schema,
    SchemaBuilder,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from standalone.data.projector import project
from standalone.data.struct import validate_value
from standalone.data.values import convert, infer_schema
from standalone.errors import NotFoundError
from standalone.plugins import Plugins

PLUGINS = Plugins()


class Failed(Exception):
    """A step failed: `stage` says where, `__cause__` why."""

    def __init__(self, stage, at=None):
        super().__init__(stage)
        self.stage = stage
        self.at = at

    @property
    def outcome(self):
        """In the encoding of the cases: errors outside Connect's families have their Python names."""
        error = self.__cause__
        name = error.java_class.rpartition(".")[2] if isinstance(error, ConnectError) else type(error).__name__
        at = {} if self.at is None else {"at": self.at}
        return {"error": name, "stage": self.stage, **at, "message": str(error)}


def attempt(stage, work, at=None):
    """The result of `work`, or Failed at that stage."""
    try:
        return work()
    except Exception as error:
        raise Failed(stage, at) from error


def configured(kind, java_name, config, prepare=lambda plugin: None):
    """A configured plugin of that kind."""
    plugin = PLUGINS.find(kind, java_name)()
    prepare(plugin)
    plugin.configure(plugin.config_def.parse(config) if plugin.config_def is not None else config)
    return plugin


# --- Transforms ----------------------------------------------------------------------------------------------------


def chain_of(case):
    """[(transform, predicate or None, negate)], each configured in order."""
    steps = []
    for at, step in enumerate(case["chain"]):
        transform = attempt("configure", lambda: configured("transform", step["class"], step["config"]), at)
        said = step.get("predicate")
        predicate = said and attempt("configure", lambda: configured("predicate", said["class"], said["config"]), at)
        steps.append((transform, predicate, bool(said) and said["negate"]))
    return steps


def transforms(case):
    record = encoding.read_record(case["record"])
    for at, (transform, predicate, negate) in enumerate(chain_of(case)):
        record = attempt("apply", lambda: apply(record, transform, predicate, negate), at)
        if record is None:
            return {"dropped": True, "at": at}
    return {"record": encoding.write_record(record)}


def apply(record, transform, predicate, negate):
    return record if predicate is not None and predicate.test(record) == negate else transform.apply(record)


# --- Converters ----------------------------------------------------------------------------------------------------

TOPIC, HEADER = "t", "h"


def converter_of(case):
    """The case's converter, configured as a key's, a value's or a header's."""
    as_header = case["direction"].endswith("Header") or "SimpleHeader" in case["class"]
    kind = "header_converter" if as_header else "converter"
    role = "header" if as_header else "key" if case["isKey"] else "value"

    def prepare(plugin):
        plugin.is_key = case["isKey"]

    return attempt("configure", lambda: configured(kind, case["class"], {**case["config"], "converter.type": role}, prepare))


def converters(case):
    converter, direction, given = converter_of(case), case["direction"], case["input"]
    if "bytes" in given:
        data = None if given["bytes"] is None else base64.b64decode(given["bytes"])
        if direction == "to":
            result = attempt("convert", lambda: converter.to_connect(TOPIC, data))
        else:
            result = attempt("convert", lambda: converter.to_header(TOPIC, HEADER, data))
        return read(result)
    schema = encoding.read_schema(given["schema"])
    value = encoding.read_value(given["value"], schema)
    if direction == "fromHeader":
        return written(attempt("convert", lambda: converter.from_header(TOPIC, HEADER, schema, value)))
    data = attempt("convert", lambda: converter.from_connect(TOPIC, schema, value))
    if direction == "from":
        return written(data)
    return read(attempt("convert", lambda: converter.to_connect(TOPIC, data)))


def written(data):
    return {"bytes": None if data is None else base64.b64encode(data).decode()}


def read(result):
    if result is None:
        return {"none": True}
    schema, value = result
    return {"schema": encoding.write_schema(schema), "value": encoding.write_value(value, schema)}


# --- Values --------------------------------------------------------------------------------------------------------


def values(case):
    schema = encoding.read_schema(case["schema"])
    value = encoding.read_value(case["value"], schema)
    return attempt("call", lambda: _VALUES[case["op"]](case, schema, value))


def _validate(case, schema, value):
    validate_value(schema, value)
    return {"valid": True}


def _struct_put(case, schema, value):
    struct = Struct(SchemaBuilder.struct().field("f", schema).build()).put("f", value)
    struct.validate()
    return {"value": encoding.write_value(struct.get("f"), schema)}


def _default(case, schema, value):
    builder = SchemaBuilder(schema.type, schema.key_schema, schema.value_schema)
    if schema.optional:
        builder.optional()
    return {"value": encoding.write_value(builder.default(value).build().default, schema)}


def _infer(case, schema, value):
    return {"schema": encoding.write_schema(infer_schema(value))}


_TYPES = {"Byte": "int8", "Short": "int16", "Integer": "int32", "Long": "int64", "Float": "float32", "Double": "float64"}
_TYPES |= {name.title(): name for name in ("boolean", "string")}
_LOGICAL = {"Date": date_schema, "Time": time_schema, "Timestamp": timestamp_schema}


def _convert(case, schema, value):
    """As Values.convertToX(schema, value): null is refused where X is a list, a map, a Decimal or a point in time."""
    name = case["op"].removeprefix("convertTo")
    if name in _TYPES:
        target = Schema(_TYPES[name], optional=True)
    elif name == "Decimal":
        target = decimal_schema(case["scale"])
    elif name in _LOGICAL:
        target = _LOGICAL[name]()
    else:
        target = Schema({"List": "array", "Map": "map"}[name])
    return {"value": encoding.write_value(convert(target, schema, value))}


_VALUES = {"validate": _validate, "structPut": _struct_put, "default": _default, "inferSchema": _infer}
_VALUES |= {f"convertTo{name}": _convert for name in (*_TYPES, *_LOGICAL, "Decimal", "List", "Map")}


def schema_projector(case):
    source, target = encoding.read_schema(case["source"]), encoding.read_schema(case["target"])
    projected = attempt("project", lambda: project(source, encoding.read_value(case["value"], source), target))
    return {"value": encoding.write_value(projected, target)}


_KINDS = {"transforms": transforms, "converters": converters, "values": values, "schema_projector": schema_projector}


def outcome(kind, case):
    """The outcome of a case; a class that does not exist yet is a NotFoundException at configure."""
    try:
        return _KINDS[kind](case)
    except Failed as failure:
        if isinstance(failure.__cause__, NotFoundError):
            return {"error": "NotFoundException", "stage": "configure", "message": str(failure.__cause__)}
        return failure.outcome
