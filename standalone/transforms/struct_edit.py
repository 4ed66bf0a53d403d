"""Edits of structs and maps for both forms, with and without schemas: change, drop, rename and add fields."""

from standalone import Change, ConnectError, DataError, Function, NoColumns
from standalone.errors import SchemaBuilderError
from standalone.stage import UNKNOWN
from standalone.transforms import field_path
from standalone.transforms.field_path import EMPTY_TREE
from standalone.transforms.struct_copy import StructCopy, struct_schema

_MOST_SHAPES = 1000  # cached, for maps whose names change constantly


class StructEdit(Change):
    """An edit of the struct or map at `place` (the value, or a field); `by` is the transform's name in errors."""

    def __init__(self, by, place, fills_defaults):
        self.by = by
        self.place = place
        self.fills_defaults = fills_defaults

    def of(self, schema, has_schema=True):
        if schema.type != "struct":
            found = schema.name or schema.type
            raise DataError(f"{self.by} needs a struct where the {self.place} has a schema; found a {found}.")
        return self.copy(schema, has_schema)

    def bare(self, value):
        if value.__class__ is not dict:
            field_path.need_map(value, self.by, self.place)
        return self.map(value)

    def copy(self, schema, checked, inside=False):
        """The StructCopy for structs of a schema; `inside`: nested in another struct."""
        raise NotImplementedError

    def map(self, value):
        """The edited map."""
        raise NotImplementedError

    def _copy_inside(self, field, edit, checked):
        """The StructCopy of the struct in a field."""
        if field.schema.type != "struct":
            found = field.schema.name or field.schema.type
            raise DataError(f"{self.by} cannot go into '{field.name}': it is not a struct but a {found}.")
        return edit.copy(field.schema, checked, inside=True)


class Unchanged(StructEdit):
    """Changes nothing, but requires a struct or a map."""

    def __init__(self, by, place):
        super().__init__(by, place, fills_defaults=False)

    def copy(self, schema, checked, inside=False):
        return _Same(schema)

    def map(self, value):
        return value


class _Same(Function):
    def __init__(self, schema):
        self.schema = schema

    def row(self, value):
        return value

    def column(self, column):
        return column, None


class FieldsChanged(StructEdit):
    """Changes fields: `tree` is a PathTree of Changes.

    `retyped` is False if the changes keep all types, so the schema is reused.
    """

    def __init__(self, tree, by, place, fills_defaults, retyped=True):
        super().__init__(by, place, fills_defaults)
        self._retyped = retyped
        self._inside = {
            name: below.said or type(self)(below, by, f"field '{name}'", fills_defaults, retyped) for name, below in tree.inside.items()
        }
        self._steps = [
            (name, change.by_class, change.bare, isinstance(change, FieldsChanged)) for name, change in self._inside.items()
        ]

    def copy(self, schema, checked, inside=False):
        missing = [] if checked else [name for name in self._inside if name not in schema]
        if missing:
            raise NoColumns(f"without a schema there is a null for each field that is missing, of no type: {', '.join(missing)}")
        fields, changes = [], {}
        for field in schema.fields:
            change, made = self._inside.get(field.name), field.schema
            if change is not None:
                if isinstance(change, FieldsChanged):
                    function = self._copy_inside(field, change, checked)
                else:
                    function = change.of(field.schema, checked)
                changes[field.name], made = function, function.schema
            fields.append((field.name, made))
        target = schema
        if self._retyped:
            target = struct_schema(fields, like=schema).with_(optional=schema.optional)
        return StructCopy(target, schema.fields, self.fills_defaults, changes, checked)

    def map(self, value):
        changed = dict(value)
        for name, by_class, bare, is_inside in self._steps:
            item = value.get(name)
            if item is None:
                if not is_inside:  # also for a missing key: Java then puts a null
                    changed[name] = None
                continue
            quick = by_class.get(item.__class__)
            try:
                changed[name] = bare(item) if quick is None else quick(item)
            except ConnectError as error:
                field_path.say_field(name, error)
                raise
        return changed


class FieldsKept(StructEdit):
    """Drops, keeps and renames fields by three PathTrees; `include` None keeps all."""

    def __init__(self, exclude, include, renames, by, place, fills_defaults):
        super().__init__(by, place, fills_defaults)
        self._exclude = exclude.inside
        self._include = None if include is None else include.inside
        self._renames = renames.inside
        self._originals = {tree.said: name for name, tree in renames.inside.items() if tree.said is not None}
        self._edits = {}
        self._shapes = {}
        self._deep = any(tree.inside for trees in (self._exclude, self._include or {}, self._renames) for tree in trees.values())

    def copy(self, schema, checked, inside=False):
        kept, changes = [], {}
        for field in schema.fields:
            if not self._keeps(field.name):
                continue
            below, made = self._edit_of(field.name), field.schema
            if below is not None:
                inner = changes[self._renamed(field.name)] = self._copy_inside(field, below, checked)
                made = inner.schema
            kept.append((field, made))
        target = struct_schema([(self._renamed(field.name), made) for field, made in kept], schema, inside)
        sources = [self._source(schema, field.name) for field in target.fields] if checked else [field for field, _ in kept]
        return StructCopy(target, sources, self.fills_defaults, changes, checked)

    def map(self, value):
        if not self._deep:
            return {new: value[old] for old, new in self._kept(value)}
        replaced = {}
        for name, item in value.items():
            if self._keeps(name):
                below = self._edit_of(name)
                replaced[self._renamed(name)] = item if below is None or item is None else below.bare(item)
        return replaced

    def _source(self, schema, name):
        """The field that is copied to `name`: the one renamed to it, even if that is dropped or does not exist."""
        original = self._originals.get(name, name)
        source = schema.field(original)
        if source is None:
            raise DataError(f"{self.by} should rename '{original}' to '{name}', but only the latter is in the {self.place}.")
        return source

    def _keeps(self, name):
        excluded = self._exclude.get(name)
        return not (excluded is not None and excluded.said) and (self._include is None or name in self._include)

    def _kept(self, names):
        """[(old name, new name)] of the kept names; cached for strings, because most maps have the same names."""
        names = tuple(names)
        kept = self._shapes.get(names)
        if kept is None:
            kept = [(name, self._renamed(name)) for name in names if self._keeps(name)]
            if all(isinstance(name, str) for name in names):  # other keys may be equal but different, like 1 and True
                if len(self._shapes) >= _MOST_SHAPES:
                    self._shapes.clear()
                self._shapes[names] = kept
        return kept

    def _renamed(self, name):
        tree = self._renames.get(name)
        return name if tree is None or tree.said is None else tree.said

    def _edit_of(self, name):
        """The subtrees for the fields of a nested struct; None if there are none."""
        if not self._deep:
            return None
        if name not in self._edits:
            self._edits[name] = self._made_edit(name)
        return self._edits[name]

    def _made_edit(self, name):
        included = None if self._include is None else self._include[name]
        exclude, renames = self._exclude.get(name, EMPTY_TREE), self._renames.get(name, EMPTY_TREE)
        include = None if included is None or included.said else included
        if not exclude.inside and include is None and not renames.inside:
            return None
        return FieldsKept(exclude, include, renames, self.by, f"field '{name}'", self.fills_defaults)


class FieldsAdded(StructEdit):
    """Adds Facts as fields, at any depth with an existing parent: `tree` is a PathTree of lists of Facts."""

    reads_record = True

    def __init__(self, tree, by, place, fills_defaults):
        super().__init__(by, place, fills_defaults)
        self._new = [(name, fact) for name, below in tree.inside.items() for fact in below.said or ()]
        self._steps = [(name, fact.constant, fact.row) for name, fact in self._new]
        self._inside = {
            name: FieldsAdded(below, by, f"field '{name}'", fills_defaults)
            for name, below in tree.inside.items()
            if not below.said
        }

    def copy(self, schema, checked, inside=False):
        fields, sources, changes = {}, {}, {}
        for field in schema.fields:
            edit = self._inside.get(field.name)
            if edit is not None:
                changes[field.name] = self._copy_inside(field, edit, checked)
            fields[field.name] = field.schema if edit is None else changes[field.name].schema
            sources[field.name] = field
        for name, fact in self._new:
            if checked and name in fields:
                raise SchemaBuilderError(f"{self.by} cannot add '{name}': the {self.place} has a field of that name.")
            fields[name] = fact.schema if checked else fact.shape
            sources.pop(name, None)
        target = struct_schema(list(fields.items()), schema if checked else None, inside)
        added = dict(self._new)
        return StructCopy(target, list(sources.values()), self.fills_defaults and checked, changes, checked, added, inside)

    def bare(self, value, record):
        if value.__class__ is not dict:
            field_path.need_map(value, self.by, self.place)
        inserted = dict(value)
        for name, item, known in self._steps:
            if item is None:
                item = known(record)
            if item is not UNKNOWN:
                inserted[name] = item
        if self._inside:
            for name, edit in self._inside.items():
                item = inserted.get(name)
                if item is not None:
                    inserted[name] = edit.bare(item, record)
        return inserted
