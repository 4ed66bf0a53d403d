"""HeaderFrom: make headers of fields."""

from standalone import (
    BOOLEAN,
    HIGH,
    LIST,
    MEDIUM,
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
from standalone.transforms.struct_copy import column_at
from standalone.transforms.struct_edit import FieldsKept


class HeaderFrom(FieldTransform):
    """Copy or move fields of the key or value into headers.

    fields=id, headers=order, operation=move      {"id": 7, "item": "nut"}  ->  {"item": "nut"}, headers order=7
    """

    java_name = "org.apache.kafka.connect.transforms.HeaderFrom"
    config_def = ConfigDef(
        Option("fields", LIST, HIGH, "Names of the fields.", check=non_empty_list),
        Option("headers", LIST, HIGH, "Names of the headers, one for each of the fields, in their order.", check=non_empty_list),
        Option("operation", STRING, HIGH, "Whether the fields stay (copy) or go (move).", check=one_of("move", "copy")),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Put a field's default in the place of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

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
        self.rest = None
        if config["operation"] == "move":
            moved = PathTree.of(dict.fromkeys(paths, True))
            self.rest = FieldsKept(moved, None, EMPTY_TREE, "HeaderFrom", self.where, self.fills_defaults)
            self._copies = PerSchema(self.rest.of)

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        headers = list(record.headers)
        if schema is None:
            field_path.need_map(value, "HeaderFrom", self.where)
            headers += [Header(name, field_path.in_map(value, path)) for path, name in self.pairs]
            rest = value if self.rest is None else self.rest.map(value)
            return self.with_part(record, None, rest).with_(headers=tuple(headers))
        field_path.need_struct(value, "HeaderFrom", self.where)
        for path, name in self.pairs:
            field = field_path.field_at(schema, path)
            if field is None:
                names = ", ".join(each.name for each in schema.fields)
                raise DataError(f"HeaderFrom finds no field '{'.'.join(path)}' in the {self.where}. Its fields: {names or 'none'}.")
            headers.append(Header(name, field_path.in_struct(value, path, self.fills_defaults), field.schema))
        if self.rest is not None:
            copy = self._copies[schema]
            schema, value = copy.schema, copy.row(value)
        return self.with_part(record, schema, value).with_(headers=tuple(headers))

    # Column meaning: a column of values for each header, and a struct of what stays.
    def columns(self, columns):
        known, value, has_schema = self.known_struct(columns)
        with left_to_rows(DataError):
            edits = [self._header_edit(name, value, known, path, has_schema) for path, name in self.pairs]
            copy = self.rest.of(known, has_schema) if self.rest else None
        rest, failed = (value, None) if copy is None else copy.column(value)
        target = known if copy is None else copy.schema
        return self.with_known_part(columns, target, rest, [value.isNull(), failed], has_schema).with_header_edits(*edits)

    def _header_edit(self, name, value, known, path, has_schema):
        field = field_path.field_at(known, path)
        if field is None:
            raise NoColumns(f"there is no field '{'.'.join(path)}'")
        if not has_schema and _has_names(field.schema):
            raise NoColumns(f"without a schema the header '{name}' is a map")
        column = column_at(value, known, path, self.fills_defaults and has_schema)
        return HeaderEdit(added=Header(name, column, field.schema if has_schema else None), shape=None if has_schema else field.schema)


def _has_names(shape):
    """Whether a value of that shape holds maps: without a schema they are no structs."""
    return shape.type in (STRUCT, MAP) or shape.type == ARRAY and _has_names(shape.value_schema)
