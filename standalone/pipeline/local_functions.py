"""What has a name (standalone/expression.py's Known) and is worked out on this side, a column at a time."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from standalone.data.arrow import arrow_type, buffer_of, nulls_of
from standalone.data.schema import Schema
from standalone.pipeline import local_dates
from standalone.pipeline.text_numbers import numbers_of
from standalone.stage import (
    CUT_DIV,
    FLOOR_MOD,
    FLOOR_TO,
    MILLIS_OF_TEXT,
    NO_MILLIS_OF_TEXT,
    NO_NUMBER_OF_TEXT,
    NO_TEXT_OF_MILLIS,
    NUMBER_OF_TEXT,
    TEXT_OF_MILLIS,
    TIMES,
)

_LONGS = np.iinfo(np.int64)


class Function(NamedTuple):
    """`work(column, *given)` takes a column of the Arrow type `takes`, texts also as a ByteColumn, and makes (column, mask of the rows that it
    leaves to the rows engine, or None); what is null stays null. `makes(*given)` is the Arrow type of what comes out, None where it cannot.
    """

    takes: Any
    makes: Any
    work: Any


def _by_long(work):
    """Of a function of numpy's longs and a fixed number."""

    def column(longs, by):
        return pa.array(work(buffer_of(longs), by), mask=nulls_of(longs)), None

    return Function(pa.int64(), lambda by: pa.int64(), column)


def _cut_div(numbers, by):
    quotients = numbers // by
    return quotients + ((numbers < 0) & (quotients * by != numbers))


def _times(numbers, factor):
    limit = _LONGS.max // factor
    with np.errstate(over="ignore"):
        products = numbers * factor
    products[numbers > limit], products[numbers < -limit] = _LONGS.max, _LONGS.min
    return products


FUNCTIONS = {
    NUMBER_OF_TEXT: Function(pa.string(), lambda kind: arrow_type(Schema(kind)), numbers_of),
    MILLIS_OF_TEXT: Function(pa.string(), lambda parts: pa.int64() if local_dates.can_read(parts) else None, local_dates.millis_of),
    TEXT_OF_MILLIS: Function(pa.int64(), lambda parts: pa.string() if local_dates.can_write(parts) else None, local_dates.written),
    CUT_DIV: _by_long(_cut_div),
    FLOOR_MOD: _by_long(lambda numbers, by: numbers % by),
    FLOOR_TO: _by_long(lambda numbers, by: numbers - numbers % by),
    TIMES: _by_long(_times),
}
# Conditions: the rows that one of these leaves to the rows engine.
LEFT_BY = {NO_NUMBER_OF_TEXT: NUMBER_OF_TEXT, NO_MILLIS_OF_TEXT: MILLIS_OF_TEXT, NO_TEXT_OF_MILLIS: TEXT_OF_MILLIS}
