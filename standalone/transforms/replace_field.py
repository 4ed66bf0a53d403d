"""ReplaceField: leave fields out, keep only some, or rename them."""

from standalone import BOOLEAN, LIST, MEDIUM, ConfigDef, ConfigError, DataError, FieldTransform, Option
from standalone.transforms import field_path
from standalone.transforms.field_path import EMPTY_TREE, PathTree
from standalone.transforms.struct_copy import PerSchema, StructCopy, left_to_rows, need_struct_schema, struct_schema

_MOST_SHAPES = 1000  # of maps whose names change all the time


def _mapping(name, text):
    """(old name, new name) of `old:new`."""
    parts = text.split(":")
    while parts and parts[-1] == "":
        parts.pop()  # Java does not see them
    if len(parts) != 2:
        raise ConfigError.of({name: f"must be a list of old:new, with one colon each; found '{text}'."})
    return parts


def rename_mappings(name, value):
    """a list of old:new"""
    for text in value or ():
        _mapping(name, text)


class ReplaceField(FieldTransform):
    """Leave out the fields in `exclude`, or all but those in `include`, and give others the names that `renames` has for them.

    exclude=pin                   {"card": "4111", "pin": 7}  ->  {"card": "4111"}
    include=card                  {"card": "4111", "pin": 7}  ->  {"card": "4111"}
    renames=card:number           {"card": "4111", "pin": 7}  ->  {"number": "4111", "pin": 7}
    """

    java_name = "org.apache.kafka.connect.transforms.ReplaceField"
    config_def = ConfigDef(
        Option("exclude", LIST, MEDIUM, "Fields to leave out, 'include' or not.", default=[], check=field_path.optional_names),
        Option("include", LIST, MEDIUM, "Fields to keep; empty keeps all.", default=[], check=field_path.optional_names),
        Option("renames", LIST, MEDIUM, "New names of fields: a list of old:new.", default=[], check=rename_mappings),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Put a field's default in the place of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

    def computes(self):
        return False

    def configure(self, config):
        def tree(said):
            return PathTree.of({field_path.field_path(name, config): word for name, word in said.items()})

        include = tree(dict.fromkeys(config["include"], True)) if config["include"] else None
        renames = tree(dict(_mapping("renames", text) for text in config["renames"] or ()))
        self._rules = _Rules(tree(dict.fromkeys(config["exclude"], True)), include, renames)
        self.fills_defaults = config["replace.null.with.default"]
        self._copies = PerSchema(lambda schema: self._copy(schema, self._rules))

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            field_path.need_map(value, "ReplaceField", self.where)
            return self.with_part(record, None, self._replaced_map(value, self._rules))
        field_path.need_struct(value, "ReplaceField", self.where)
        copy = self._copies.of(value.schema)
        return self.with_part(record, copy.target, copy.row(value))

    def _replaced_map(self, value, rules):
        if not rules.deep:
            return {new: value[old] for old, new in rules.kept(value)}
        replaced = {}
        for name, item in value.items():
            if not rules.keep(name):
                continue
            below = rules.below(name)
            if below is not None and item is not None:
                field_path.need_map(item, "ReplaceField", f"field '{name}'")
                item = self._replaced_map(item, below)
            replaced[rules.renamed(name)] = item
        return replaced

    def _copy(self, schema, rules, checked=True, inside=False):
        """How structs of that schema are copied."""
        kept, changes = [], {}
        for field in schema.fields:
            if not rules.keep(field.name):
                continue
            below = rules.below(field.name)
            if below is None:
                kept.append((field, field.schema))
                continue
            need_struct_schema(field, "ReplaceField")
            inner = changes[rules.renamed(field.name)] = self._copy(field.schema, below, checked, inside=True)
            kept.append((field, inner.target))
        target = struct_schema([(rules.renamed(field.name), own) for field, own in kept], schema, inside)
        sources = [self._source(schema, rules, field.name) for field in target.fields] if checked else [field for field, _ in kept]
        return StructCopy(target, sources, self.fills_defaults, changes, checked)

    def _source(self, schema, rules, name):
        """The field that is copied to `name`: whichever would be renamed to it, even where that one is left out or does not exist."""
        source = schema.field(rules.original(name))
        if source is None:
            raise DataError(f"ReplaceField should rename '{rules.original(name)}' to '{name}', but only the latter is in the {self.where}.")
        return source

    # Column meaning: a struct of other fields.
    def columns(self, columns):
        if self.is_null(columns):
            return columns
        known, value, has_schema = self.known_struct(columns)
        with left_to_rows(DataError):  # or two fields of a map become one
            copy = self._copy(known, self._rules, checked=has_schema)
        copied, failed = copy.column(value)
        # A null keeps its old schema beside rows that have the new one: the rows engine takes such rows.
        return self.with_known_part(columns, copy.target, copied, [value.isNull(), failed], has_schema)


class _Rules:
    """What is said of the fields at one place."""

    def __init__(self, exclude, include, renames):
        self._exclude = exclude.inside
        self._include = None if include is None else include.inside  # None keeps all
        self._renames = renames.inside
        self._originals = {tree.said: name for name, tree in renames.inside.items() if tree.said is not None}
        self._below = {}
        self._shapes = {}
        self.deep = any(tree.inside for trees in (self._exclude, self._include or {}, self._renames) for tree in trees.values())

    def keep(self, name):
        excluded = self._exclude.get(name)
        return not (excluded is not None and excluded.said) and (self._include is None or name in self._include)

    def kept(self, names):
        """[(old name, new name)] of the names that stay; worked out once for texts, since maps mostly have the same."""
        names = tuple(names)
        kept = self._shapes.get(names)
        if kept is None:
            kept = [(name, self.renamed(name)) for name in names if self.keep(name)]
            if all(isinstance(name, str) for name in names):  # others may be equal and not the same: 1 and True
                if len(self._shapes) >= _MOST_SHAPES:
                    self._shapes.clear()
                self._shapes[names] = kept
        return kept

    def renamed(self, name):
        tree = self._renames.get(name)
        return name if tree is None or tree.said is None else tree.said

    def original(self, name):
        return self._originals.get(name, name)

    def below(self, name):
        """What is said of the fields inside of that one; None where nothing is."""
        if not self.deep:
            return None
        if name not in self._below:
            self._below[name] = self._rules_below(name)
        return self._below[name]

    def _rules_below(self, name):
        included = None if self._include is None else self._include[name]
        exclude, renames = self._exclude.get(name, EMPTY_TREE), self._renames.get(name, EMPTY_TREE)
        include = None if included is None or included.said else included
        return _Rules(exclude, include, renames) if exclude.inside or include is not None or renames.inside else None
