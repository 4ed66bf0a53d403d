"""Unevaluated expressions over columns.

A transform's columnar form uses the functions of pyspark.sql.functions and the methods of pyspark's Column. They build a tree, so that the
pipeline can distinguish schema edits, which cost nothing, from computations, which run in Spark.

    from standalone import F

    F.when(columns.value.getField("level").isNull(), F.lit("INFO"))
"""

COLUMN = "Column."  # the functions that are methods of pyspark's Column begin with it


class Expression:
    """A Spark function and its arguments: expressions and plain values. Immutable; compared by identity."""

    __slots__ = ("function", "given")

    def __init__(self, function, *given):
        self.function = function
        self.given = given

    def __bool__(self):
        raise TypeError("An expression over columns has no truth value: combine conditions with &, | and ~.")

    def __iter__(self):
        raise TypeError("An expression over columns cannot be iterated over.")

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{self.function}({', '.join(map(repr, self.given))})"


def _method(name):
    def say(self, *given):
        return Expression(COLUMN + name, self, *given)

    say.__name__ = name
    return say


_OPERATORS = "eq ne lt le gt ge and rand or ror invert neg add radd sub rsub mul rmul truediv rtruediv mod rmod getitem".split()
_METHODS = """alias asc between bitwiseAND bitwiseOR bitwiseXOR cast contains desc dropFields endswith eqNullSafe getField getItem ilike isin
isNaN isNotNull isNull like otherwise rlike startswith substr try_cast when withField""".split()
for _name in (*(f"__{operator}__" for operator in _OPERATORS), *_METHODS):
    setattr(Expression, _name, _method(_name))


class _Functions:
    """All of pyspark.sql.functions, by their names."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def say(*given):
            return Expression(name, *given)

        say.__name__ = name
        setattr(self, name, say)
        return say


F = _Functions()


FLOAT_TEXT = "float_text"  # not a Spark function: Java versions print floats with different digits


def float_text(number, kind):
    """The text of a float32 or float64 column as Java 17 prints it. A kernel writes it after Spark's job, so it cannot be used in expressions."""
    return Expression(FLOAT_TEXT, number, kind)


MISFIT_WITHIN = "misfit_within"  # not a Spark function either: a kernel checks the buffers of unchanged lists and maps


def misfit_within(items, schema, said):
    """True in rows where a list or map of the schema contains a forbidden null; `said` is the Spark expression, for computed lists."""
    return Expression(MISFIT_WITHIN, items, schema, said)


def is_expression(value):
    return isinstance(value, Expression)
