"""ReplaceField: drop or rename fields, or keep only some."""

from standalone import BOOLEAN, LIST, MEDIUM, ConfigDef, ConfigError, FieldTransform, Option
from standalone.transforms import field_path
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_edit import FieldsKept


def _mapping(name, text):
    """(old name, new name) of `old:new`."""
    parts = text.split(":")
    while parts and parts[-1] == "":
        parts.pop()  # Java's split drops trailing empty strings
    if len(parts) != 2:
        raise ConfigError.of({name: f"must be a list of old:new, with one colon each; found '{text}'."})
    return parts


def rename_mappings(name, value):
    """a list of old:new"""
    for text in value or ():
        _mapping(name, text)


class ReplaceField(FieldTransform):
    """Drop the fields in `exclude`, or all fields except those in `include`, and rename fields by `renames`.

    exclude=pin                   {"card": "4111", "pin": 7}  ->  {"card": "4111"}
    include=card                  {"card": "4111", "pin": 7}  ->  {"card": "4111"}
    renames=card:number           {"card": "4111", "pin": 7}  ->  {"number": "4111", "pin": 7}
    """

    java_name = "org.apache.kafka.connect.transforms.ReplaceField"
    config_def = ConfigDef(
        Option("exclude", LIST, MEDIUM, "Fields to drop; takes precedence over 'include'.", default=[], check=field_path.optional_names),
        Option("include", LIST, MEDIUM, "Fields to keep; empty: all.", default=[], check=field_path.optional_names),
        Option("renames", LIST, MEDIUM, "New names of fields: a list of old:new.", default=[], check=rename_mappings),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Replace a field's null by its default.", default=True),
        field_path.OWN_SYNTAX,
    )

    def computes(self):
        return False

    def configure(self, config):
        def tree(said):
            return PathTree.of({field_path.field_path(name, config): word for name, word in said.items()})

        include = tree(dict.fromkeys(config["include"], True)) if config["include"] else None
        renames = tree(dict(_mapping("renames", text) for text in config["renames"] or ()))
        exclude = tree(dict.fromkeys(config["exclude"], True))
        self.does(FieldsKept(exclude, include, renames, "ReplaceField", self.where, config["replace.null.with.default"]))
