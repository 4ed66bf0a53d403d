"""A struct made out of another one: fields left out, renamed, changed. What transforms of structs share, in both meanings."""

import contextlib

from standalone import ConnectError, DataError, F, NoColumns, SchemaBuilder, Struct
from standalone.data.arrow import arrow_type
from standalone.data.struct import validate_value
from standalone.transforms import expressions, field_path

_NESTED = ("struct", "array", "map")
_MOST_SCHEMAS = 1000  # of a source whose schema changes all the time


class PerSchema(dict):
    """What is worked out of a schema, once for each: `per_schema[schema]`."""

    def __init__(self, make):
        super().__init__()
        self._make = make
        self._last = self._found = None

    def of(self, schema):
        """The same as [schema], quicker for the schema that was asked for last: batches have one."""
        if schema is not self._last:
            self._found = self[schema]
            self._last = schema
        return self._found

    def __missing__(self, schema):
        if len(self) >= _MOST_SCHEMAS:
            self.clear()
        made = self[schema] = self._make(schema)
        return made


def struct_schema(fields, like=None, inside=False):
    """A schema of these (name, schema) pairs, with the name, version, doc and parameters of `like`. Raises SchemaBuilderError.

    As in Java the schema of a whole key or value becomes required, whatever it was; one that is `inside` of it stays optional.
    """
    builder = SchemaBuilder.struct()
    for name, schema in fields:
        builder.field(name, schema)
    made = builder.build()
    return made if like is None else like.with_(fields=made.fields, default=None, optional=inside and like.optional)


class StructCopy:
    """Copies structs of one schema into another: `sources` are the Fields that those of the target are taken from, in order.

    A copied value is checked as `Struct.put` does: a null where the schema wants a value is an error, though it may have been there
    before. `changes` has, by the name of a target's field, what else is to be done: an object with the two meanings `row(value)`, of
    values that are not null, and `column(column)`. A StructCopy is such an object.
    """

    def __init__(self, target, sources, fills_defaults, changes=None, checked=True):
        self.target = target
        self._sources = sources
        self._changes = changes or {}
        self._fills = fills_defaults
        self._checked = checked  # False for a shape, which nobody checks
        self._picked = [source.index for source in sources]
        self._picks_all = all(source.index == at for at, source in enumerate(sources))  # as they come
        named = list(zip(target.fields, sources))
        defaults = [(field.index, source.schema.default) for field, source in named]
        self._defaults = [(at, default) for at, default in defaults if default is not None and fills_defaults]
        self._changed = [(target.field(name).index, change.row) for name, change in self._changes.items()]
        self._required = [field for field in target.fields if not field.schema.optional]
        unchanged = [(field, source) for field, source in named if field.name not in self._changes]
        # Others have been checked when they were put where they come from.
        self._strange = [field for field, source in unchanged if field.schema.type in _NESTED or field.schema != source.schema]

    def row(self, struct):
        return Struct.trusted(self.target, self.values(struct))

    def values(self, struct):
        """The values of the copy, in the order of its fields, as a list of the caller's own."""
        stored = struct.values
        values = stored[: len(self._picked)] if self._picks_all else [stored[at] for at in self._picked]
        for at, default in self._defaults:
            if values[at] is None:
                values[at] = default
        for at, change in self._changed:
            if values[at] is not None:
                try:
                    values[at] = change(values[at])
                except ConnectError as error:
                    field_path.say_field(self.target.fields[at].name, error)
                    raise
        for field in self._required:
            if values[field.index] is None:
                validate_value(field.schema, None, field.name)
        for field in self._strange:
            if values[field.index] is not None:
                validate_value(field.schema, values[field.index], field.name)
        return values

    def column(self, column):
        """(the copy, where the rows engine must do it: a column or None). Raises NoColumns.

        A null becomes a struct of nulls: what a null means is for the caller to say. He may put a null in its place, since every part of
        it is nullable then: Arrow will not have a null struct of fields that never are.
        """
        parts, failed, there = [], [], column.isNotNull()
        for field, source in zip(self.target.fields, self._sources):
            part = column.getField(source.name)
            if self._fills and source.schema.default is not None:
                part = F.when(there, F.coalesce(part, expressions.literal(source.schema.default, source.schema)))
            change = self._changes.get(field.name)
            if change is None:
                if source.schema is not field.schema and source.schema != field.schema:
                    raise NoColumns(f"whether the values of '{source.name}' fit under the name '{field.name}' hangs on them")
                failed.append(expressions.misfit(part, field.schema) if self._checked else None)
            else:
                present, (part, bad) = part.isNotNull(), change.column(part)
                failed.append(None if bad is None else present & bad)
                if self._checked and not source.schema.optional:
                    failed.append(~present)
                if not getattr(change, "keeps_nulls", False):
                    # The cast says of what has parts, as a Decimal has, that they are nullable, too.
                    part = F.when(present, part if isinstance(change, StructCopy) else part.cast(arrow_type(field.schema)))
            parts.append(part.alias(field.name))
        return F.struct(*parts), expressions.any_of(failed)


def column_at(column, schema, path, fills_default):
    """The Spark column at the end of a path through a struct, as field_path.in_struct has it for rows. Raises NoColumns.

    The field is known to be in the schema.
    """
    holder = None
    for depth, name in enumerate(path, 1):
        holder, column = column, column.getField(name)
        field = field_path.field_at(schema, path[:depth])
        if depth < len(path) and field.schema.default is not None:
            raise NoColumns(f"a whole struct is the default of '{name}'")
    if fills_default and field.schema.default is not None:
        return F.when(holder.isNotNull(), F.coalesce(column, expressions.literal(field.schema.default, field.schema)))
    return column


@contextlib.contextmanager
def left_to_rows(*errors):
    """These errors come wherever there is a value: the rows engine raises them."""
    try:
        yield
    except errors as error:
        raise NoColumns(f"it is an error: {error}") from error


def need_names(known, names, has_schema):
    """Raise NoColumns where there are no such fields, and a map would get a null of no type for each that it lacks."""
    missing = [] if has_schema else [name for name in names if name not in known]
    if missing:
        raise NoColumns(f"without a schema there is a null for each field that is missing, of no type: {', '.join(missing)}")


def need_struct_schema(field, transform):
    """Raise DataError unless a path may go on inside of that field."""
    if field.schema.type != "struct":
        raise DataError(f"{transform} cannot go into '{field.name}': it is no struct but a {field.schema.name or field.schema.type}.")
