"""Expressions (standalone/expression.py) as columns of Spark, which needs a session."""

import inspect

import pyarrow as pa

from standalone.expression import COLUMN, Expression, Known, is_expression

MADE = "a column of Spark"  # an expression that is one already


def made(column):
    """A column of Spark as an expression."""
    return Expression(MADE, column)


class SparkColumns:
    """Makes columns; an expression that stands in many places is made once."""

    def __init__(self):
        self._made = {}  # by identity; the expression too, or another might get its place

    def of(self, expression):
        known = self._made.get(id(expression))
        if known is None:
            known = self._made[id(expression)] = (expression, self._column(expression))
        return known[1]

    def _column(self, expression):
        from pyspark.sql import functions

        if isinstance(expression, Known):
            return self.of(expression.meaning)
        if expression.function == MADE:
            return expression.given[0]
        given = [self._given(each) for each in expression.given]
        if expression.function.startswith(COLUMN):
            return getattr(given[0], expression.function.removeprefix(COLUMN))(*given[1:])
        return getattr(functions, expression.function)(*given)

    def _given(self, value):
        if is_expression(value):
            return self.of(value)
        if isinstance(value, pa.DataType):
            from pyspark.sql.pandas.types import from_arrow_type

            return from_arrow_type(value)
        return self._lambda(value) if inspect.isfunction(value) else value

    def _lambda(self, function):
        """Spark looks at how many columns it takes."""

        def work(*columns):
            return self.of(function(*map(made, columns)))

        work.__signature__ = inspect.signature(function)
        return work
