"""Expressions over columns, written down as they are said and not computed.

A transform says its columnar form in the words of pyspark.sql.functions and of pyspark's Column. What it says is kept as a tree, so
that the pipeline can tell an edit of the schema, which costs nothing, from what is computed, which is Spark's.

    from standalone import F

    F.when(columns.value.getField("level").isNull(), F.lit("INFO"))
"""

COLUMN = "Column."  # the functions that are methods of pyspark's Column begin with it


class Expression:
    """A function of Spark's and what it is given: expressions and plain values. Never changes; one is equal to itself alone."""

    __slots__ = ("function", "given")

    def __init__(self, function, *given):
        self.function = function
        self.given = given

    def __bool__(self):
        raise TypeError("An expression over columns has no truth of its own: join conditions by &, | and ~.")

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


FLOAT_TEXT = "float_text"  # not one of Spark's: each version of Java writes digits of its own


def float_text(number, kind):
    """The text of a float32 or float64 column in the digits of Java 17, written by a kernel behind Spark's job. Nothing can compute with it."""
    return Expression(FLOAT_TEXT, number, kind)


MISFIT_WITHIN = "misfit_within"  # neither: a kernel finds it in the buffers of lists and maps that are as they came


def misfit_within(items, schema, said):
    """Where a list or map of the schema holds a null that is forbidden; `said` is the same for Spark, which computes it of lists just made."""
    return Expression(MISFIT_WITHIN, items, schema, said)


def is_expression(value):
    return isinstance(value, Expression)
