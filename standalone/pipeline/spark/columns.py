"""Convert expressions (standalone/expression.py) to Spark columns; needs a session."""

import inspect

import pyarrow as pa

from standalone.expression import COLUMN, is_expression
from standalone.pipeline.columns.prune import Lambda


class SparkColumns:
    """Converts expressions; one used several times is converted once."""

    def __init__(self):
        self._made = {}  # keyed by identity; holds the expression so that its id is not reused

    def of(self, expression):
        known = self._made.get(id(expression))
        if known is None:
            known = self._made[id(expression)] = (expression, self._column(expression))
        return known[1]

    def _column(self, expression):
        from pyspark.sql import functions

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
        if inspect.isfunction(value):
            value = Lambda.of(value)
        return self._lambda(value) if isinstance(value, Lambda) else value

    def _lambda(self, function):
        """Return a Python function with as many parameters as Spark expects columns."""

        def work(*columns):
            inside = SparkColumns()  # its parameters are columns of this call only
            inside._made.update((id(parameter), (parameter, column)) for parameter, column in zip(function.parameters, columns))
            return inside._given(function.body)

        names = [f"x{at}" for at in range(len(function.parameters))]
        work.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names])
        return work
