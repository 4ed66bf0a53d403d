"""Field paths: a field's name (field.syntax.version V1), or the names that lead to it (V2), as in `order.customer.name`.

In Kafka only ExtractField supports V2. Here every transform with field names does, by one rule: a nested field is treated like a
top-level field, and is skipped if its parent is missing.
"""

from dataclasses import replace

from standalone import HIGH, STRING, ConfigError, DataError, Option, Struct, case_insensitive_one_of

SYNTAX = Option(
    "field.syntax.version",
    STRING,
    HIGH,
    "V1: a field is given by its name, which may contain dots. V2: dots separate the names of nested fields; a name that contains dots "
    "is enclosed in backticks, with a backtick before a dot written as \\`.",
    default="V1",
    check=case_insensitive_one_of("V1", "V2"),
)
# For transforms that support paths only here, not in Kafka: the REST API lists this key only if it is set.
OWN_SYNTAX = replace(SYNTAX, internal=True)


def field_names(name, value):
    """names of fields, none of them empty"""
    if not value:
        raise ConfigError.of({name: "must name at least one."})
    optional_names(name, value)


def optional_names(name, value):
    """names, none of them empty"""
    if value is None or "" in value:
        raise ConfigError.of({name: f"must not hold an empty name; found {value}. Is there a comma too many?"})


def not_null(name, value):
    """any text"""
    if value is None:
        raise ConfigError.of({name: "must be a text; found null."})


def field_path(text, config):
    """The names that lead to a field, as a tuple, in the configured syntax."""
    if config["field.syntax.version"].upper() == "V1":
        return (text,)
    return _steps(text)


def _steps(text):
    steps, at = [], 0
    while at < len(text):
        if text[at] == "`":
            name, at = _quoted(text, at)
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            name, at = text[at:end], end + 1
        steps.append(name)
    return tuple(steps + [""] if text.endswith(".") else steps)


def _quoted(text, start):
    """(name, start of the next one). The name ends at a backtick before a dot or the end; a backslash escapes such a backtick."""
    parts, at = [], start + 1
    begin = at
    while (at := text.find("`", at)) >= 0:
        escaped = text[at - 1] == "\\"
        is_last = at == len(text) - 1
        if is_last and escaped:
            break
        if is_last or text[at + 1] == "." and not escaped:
            return "".join(parts) + text[begin:at], at + 2
        if text[at + 1] == ".":
            parts.append(text[begin : at - 1] + "`")
            begin = at + 1
        at += 1
    raise ConfigError(f"The path '{text}' opens a name at {start} with a backtick that nothing closes. Close it, or escape it as \\`.")


# --- Lookup --------------------------------------------------------------------------------------------------------


def field_at(schema, path):
    """The Field at the end of a path through a schema, or None. Raises DataError if the path leads through a type without fields."""
    for name in path[:-1]:
        field = schema.field(name)
        if field is None:
            return None
        schema = field.schema
    return schema.field(_last(path))


def in_struct(struct, path, fills_default):
    """The value at the end of a path through a struct, or None. The field is known to be in the schema."""
    for name in path[:-1]:
        struct = struct.get(name)
        if struct is None:
            return None
    name = _last(path)
    return struct.get(name) if fills_default else struct.stored(name)


def in_map(value, path):
    """The value at the end of a path through maps, or None."""
    for name in path[:-1]:
        value = value.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise DataError(f"'{name}' of '{'.'.join(path)}' should be a map; found a {type(value).__name__}.")
    return value.get(_last(path))


def _last(path):
    if not path:
        raise DataError("The path is empty, and names no field.")
    return path[-1]


# --- Many paths ----------------------------------------------------------------------------------------------------


class PathTree:
    """A tree of paths: `said` is the entry of the path that ends here, `inside` the subtrees of the next names."""

    __slots__ = ("said", "inside")

    def __init__(self):
        self.said = None
        self.inside = {}

    @classmethod
    def of(cls, said):
        """From {path: entry}; entries are never None."""
        root = cls()
        for path, word in said.items():
            tree = root
            for name in path:
                tree = tree.inside.setdefault(name, cls())
            tree.said = word
        return root


EMPTY_TREE = PathTree()


# --- Requirements --------------------------------------------------------------------------------------------------


def need_struct(value, transform, part):
    """Raise DataError unless the part of the record is a struct."""
    if not isinstance(value, Struct):
        raise DataError(f"{transform} needs a struct where the {part} has a schema; found {kind_of(value)}.")


def need_map(value, transform, part):
    """Raise DataError unless the part of the record is a map."""
    if not isinstance(value, dict):
        raise DataError(f"{transform} needs a map where the {part} has no schema; found {kind_of(value)}.")


def kind_of(value):
    return "null" if value is None else f"a {type(value).__name__}"


def say_field(name, error):
    """Add the field's name or path to a ConnectError about its value, unless it contains it already, and raise it again."""
    said, path = getattr(error, "said_of_field", (str(error), None))
    if path is None and f"'{name}'" in said:
        return
    path = name if path is None else f"{name}.{path}"
    error.said_of_field = said, path
    error.args = (f"Field '{path}': {said}",)
