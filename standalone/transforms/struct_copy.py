"""Copies a struct while dropping, renaming, changing and adding fields; shared by transforms of structs, in both forms."""

from standalone import ConnectError, DataError, F, Function, Instant, NoColumns, SchemaBuilder, Struct
from standalone.data.arrow import arrow_type
from standalone.data.struct import checked as checked_value
from standalone.data.struct import validate_value
from standalone.stage import UNKNOWN
from standalone.transforms import expressions, field_path

_NESTED = ("struct", "array", "map")


def struct_schema(fields, like=None, inside=False):
    """A schema of these (name, schema) pairs, with the name, version, doc and parameters of `like`. Raises SchemaBuilderError.

    As in Java the schema of a whole key or value always becomes required; the schema of a nested struct (`inside`) stays optional.
    """
    builder = SchemaBuilder.struct()
    for name, schema in fields:
        builder.field(name, schema)
    made = builder.build()
    return made if like is None else like.with_(fields=made.fields, default=None, optional=inside and like.optional)


class StructCopy(Function):
    """Copies structs of one schema into another: `sources` are the Fields that those of the target are taken from, in order.

    A copied value is checked as `Struct.put` does: a null where the schema wants a value is an error, though it may have been there
    before. `changes` has, by the name of a target's field, the Function that is applied to it; a StructCopy is one. `added` has, by the
    name of a target's field that has no source, the Fact that it holds: both forms are handed the record then.
    """

    def __init__(self, target, sources, fills_defaults, changes=None, checked=True, added=None, inside=False):
        self.schema = target
        self._sources = sources
        self._changes = changes or {}
        self._fills = fills_defaults
        self._checked = checked  # False for a shape, which nobody checks
        self._added = added or {}
        self._inside = inside
        self._picked = [source.index for source in sources]
        self._picks_all = all(source.index == at for at, source in enumerate(sources))  # as they come
        taken = [field for field in target.fields if field.name not in self._added]
        named = list(zip(taken, sources))
        self._taken = taken
        self._defaults = [(at, source.schema.default) for at, source in enumerate(sources) if source.schema.default is not None and fills_defaults]
        place = {field.name: at for at, field in enumerate(taken)}
        self._changed = [(place[name], change.row) for name, change in self._changes.items() if not self._grows(change)]
        self._grown = [(place[name], change) for name, change in self._changes.items() if self._grows(change)]
        self._refusing = [(place[name], change) for name, change in self._changes.items() if change.refuses_null]
        self._required = [(at, field) for at, field in enumerate(taken) if not field.schema.optional]
        unchanged = [(at, field, source) for at, (field, source) in enumerate(named) if field.name not in self._changes]
        # Others have been checked when they were put where they come from.
        self._strange = [
            (at, field) for at, field, source in unchanged if field.schema.type in _NESTED or field.schema != source.schema
        ]
        facts = [(field, self._added[field.name]) for field in target.fields if field.name in self._added]
        self._new = [(field, fact.constant, fact.row) for field, fact in facts]
        self.grows = bool(self._new or self._grown)

    @staticmethod
    def _grows(change):
        return isinstance(change, StructCopy) and change.grows

    def row(self, struct, record=None):
        stored = struct.values
        values = stored[: len(self._picked)] if self._picks_all else [stored[at] for at in self._picked]
        for at, default in self._defaults:
            if values[at] is None:
                values[at] = default
        if self._refusing:
            self._refuse()
        for at, change in self._changed:
            if values[at] is not None:
                try:
                    values[at] = change(values[at])
                except ConnectError as error:
                    field_path.say_field(self._taken[at].name, error)
                    raise
        for at, field in self._required:
            if values[at] is None:
                validate_value(field.schema, None, field.name)
        for at, field in self._strange:
            if values[at] is not None:
                validate_value(field.schema, values[at], field.name)
        if self.grows:
            for at, copy in self._grown:
                if values[at] is not None:
                    values[at] = copy.row(values[at], record)
            for field, constant, known in self._new:
                values.append(_fitting(field, known(record)) if constant is None else constant)
        return Struct.trusted(self.schema, values)

    def _refuse(self):
        for at, change in self._refusing:
            try:
                change.row(None)
            except ConnectError as error:
                field_path.say_field(self._taken[at].name, error)
                raise

    def column(self, column, columns=None):
        """(the copy, where the rows engine must do it: a column or None). Raises NoColumns.

        A null becomes a struct of nulls: what a null means is for the caller to say. He may put a null in its place, since every part of
        it is nullable then: Arrow will not have a null struct of fields that never are.
        """
        parts, failed, there = [], [], column.isNotNull()
        sources = iter(self._sources)
        for field in self.schema.fields:
            if field.name in self._added:
                part, bad = self._added[field.name].column(columns, self._checked)
                failed.append(bad)
                parts.append((F.when(there, part) if self._inside else part).alias(field.name))
                continue
            source = next(sources)
            part = column.getField(source.name)
            if self._fills and source.schema.default is not None:
                part = F.when(there, F.coalesce(part, expressions.literal(source.schema.default, source.schema)))
            change = self._changes.get(field.name)
            if change is None:
                if source.schema is not field.schema and source.schema != field.schema:
                    raise NoColumns(f"whether the values of '{source.name}' fit under the name '{field.name}' depends on them")
                failed.append(expressions.misfit(part, field.schema) if self._checked else None)
            else:
                present = part.isNotNull()
                part, bad = change.column(part, columns) if self._grows(change) else change.column(part)
                failed.append(None if bad is None else present & bad)
                if self._checked and not source.schema.optional:
                    failed.append(~present)
                if not change.keeps_nulls:
                    part = F.when(present, part)
                    # The cast says of what has parts, as a Decimal has, that they are nullable, too.
                    part = part if isinstance(change, StructCopy) else part.cast(arrow_type(field.schema))
            parts.append(part.alias(field.name))
        return F.struct(*parts), expressions.any_of(failed)


def _fitting(field, item):
    """The value of an added field."""
    if item is UNKNOWN:
        return None
    if item is None:
        checked_value(field.schema, None, field.name)
    return Instant(int(item)) if field.schema.logical else item


class FieldAt(Function):
    """The field at the end of a path through a struct; null if it is missing."""

    def __init__(self, path, source, fills_default, by, place):
        """`by` and `place` are named in errors. Raises DataError if the schema has no such field."""
        field = field_path.field_at(source, path)
        if field is None:
            names = ", ".join(each.name for each in source.fields)
            raise DataError(f"{by} finds no field '{'.'.join(path)}' in the {place}. Its fields: {names or 'none'}.")
        self.name, self.schema = field.name, field.schema
        self._path, self._source, self._fills = path, source, fills_default

    def row(self, struct):
        return None if struct is None else field_path.in_struct(struct, self._path, self._fills)

    def column(self, column):
        for depth, name in enumerate(self._path, 1):
            holder, column = column, column.getField(name)
            if depth < len(self._path) and field_path.field_at(self._source, self._path[:depth]).schema.default is not None:
                raise NoColumns(f"a whole struct is the default of '{name}'")
        if self._fills and self.schema.default is not None:
            default = expressions.literal(self.schema.default, self.schema)
            return F.when(holder.isNotNull(), F.coalesce(column, default)), None
        return column, None
