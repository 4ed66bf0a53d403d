"""HeaderFrom: copy or move fields to headers."""

from standalone import (
    BOOLEAN,
    HIGH,
    LIST,
    MEDIUM,
    NULL_IS_REFUSED,
    STRING,
    ConfigDef,
    ConfigError,
    DataError,
    FieldTransform,
    Header,
    HeaderEdit,
    NoColumns,
    Option,
    non_empty_list,
    one_of,
)
from standalone.data.schema import ARRAY, MAP, STRUCT
from standalone.stage import PerSchema, left_to_rows
from standalone.transforms import field_path
from standalone.transforms.field_path import EMPTY_TREE, PathTree
from standalone.transforms.struct_copy import FieldAt
from standalone.transforms.struct_edit import FieldsKept, Unchanged


class HeaderFrom(FieldTransform):
    """Copy or move fields of the key or value into headers.

    fields=id, headers=order, operation=move      {"id": 7, "item": "nut"}  ->  {"item": "nut"}, headers order=7
    """

    java_name = "org.apache.kafka.connect.transforms.HeaderFrom"
    config_def = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the fields.", check=non_empty_list),
        Option("headers", LIST, HIGH, "Names of the headers, one for each field, in the same order.", check=non_empty_list),
        Option("operation", STRING, HIGH, "Whether to keep the fields (copy) or remove them (move).", check=one_of("move", "copy")),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Replace a field's null by its default.", default=True),
        field_path.OWN_SYNTAX,
    )

    nulls = NULL_IS_REFUSED

    def computes(self):
        return False

    def configure(self, config):
        fields, headers = config["fields"], config["headers"]
        if len(fields) != len(headers):
            message = f"names {len(headers)} headers for {len(fields)} fields. Name one for each."
            raise ConfigError.of({"headers": message})
        paths = [field_path.field_path(name, config) for name in fields]
        self.pairs = list(zip(paths, headers))
        self.fills_defaults = config["replace.null.with.default"]
        self._fields = PerSchema(self._fields_of)
        if config["operation"] == "move":
            moved = PathTree.of(dict.fromkeys(paths, True))
            self.does(FieldsKept(moved, None, EMPTY_TREE, "HeaderFrom", self.where, self.fills_defaults))
        else:
            self.does(Unchanged("HeaderFrom", self.where))

    def _fields_of(self, schema, has_schema=True):
        fills = self.fills_defaults and has_schema
        return [(name, FieldAt(path, schema, fills, "HeaderFrom", self.where)) for path, name in self.pairs]

    # The change of the key or value is declared above; the methods below add the headers.
    def apply(self, record):
        schema, value = self.part(record)
        if schema is None:
            field_path.need_map(value, "HeaderFrom", self.where)
            added = [Header(name, field_path.in_map(value, path)) for path, name in self.pairs]
        else:
            field_path.need_struct(value, "HeaderFrom", self.where)
            added = [Header(name, field.row(value), field.schema) for name, field in self._fields[schema]]
        return super().apply(record).with_(headers=(*record.headers, *added))

    def columns(self, columns):
        known, value, has_schema = self.known_struct(columns)
        with left_to_rows(DataError):
            fields = self._fields_of(known, has_schema)
        return super().columns(columns).with_header_edits(*(_edit(name, field, value, has_schema) for name, field in fields))


def _edit(name, field, value, has_schema):
    column, _ = field.column(value)
    if has_schema:
        return HeaderEdit(added=Header(name, column, field.schema))
    if _has_names(field.schema):
        raise NoColumns(f"without a schema the header '{name}' is a map")
    return HeaderEdit(added=Header(name, column), shape=field.schema)


def _has_names(shape):
    """Whether values of a shape contain maps: without a schema they are no structs."""
    return shape.type in (STRUCT, MAP) or shape.type == ARRAY and _has_names(shape.value_schema)
