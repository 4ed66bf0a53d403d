"""Numbers out of a column of texts, of those that are written plainly; all others are left to the rows engine."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone.data.arrow import arrow_type
from standalone.data.scalars import WIDTHS
from standalone.data.schema import FLOAT32, FLOAT64, Schema
from standalone.kernels import compiled, readonly
from standalone.wire import ByteColumn

MOST_DIGITS = 18  # so many fit into a long, whichever they are


def numbers_of(column, kind):
    """(an Arrow array of the numbers, null where there is none; a mask of the texts that are not plain ones)."""
    if not isinstance(column, ByteColumn):
        column = ByteColumn.from_arrow(column)
    plain = np.empty(len(column), np.bool_)
    data, starts, lengths = (readonly(part) for part in (column.data, column.starts, column.lengths))
    is_floating = kind in (FLOAT32, FLOAT64)
    _find_plain(data, starts, lengths, is_floating, plain)
    texts = ByteColumn(column.data, column.starts, np.where(plain, column.lengths, -1)).to_arrow(text=True)
    if is_floating:
        numbers = pc.cast(texts, arrow_type(Schema(kind)))
    else:
        wide, half = pc.cast(texts, pa.int64()), 1 << WIDTHS[kind] - 1
        fits = pc.and_(pc.greater_equal(wide, -half), pc.less_equal(wide, half - 1)).fill_null(False)
        plain &= fits.to_numpy(zero_copy_only=False)
        numbers = pc.cast(pc.if_else(fits, wide, None), arrow_type(Schema(kind)))
    return numbers, ~plain & (column.lengths >= 0)


@compiled
def _find_plain(data, starts, lengths, may_have_fraction, plain):
    """Texts like 12, -7 and, where there may be a fraction, 0.25."""
    for row in range(len(starts)):
        at, end = starts[row], starts[row] + lengths[row]
        if at < end and data[at] == 45:
            at += 1
        digits, points, is_digit = 0, 0, False
        good = end - at <= MOST_DIGITS + 1
        while at < end and good:
            is_digit = 48 <= data[at] <= 57
            if is_digit:
                digits += 1
            else:
                points += 1
                good = data[at] == 46 and may_have_fraction and points == 1 and digits > 0
            at += 1
        plain[row] = good and is_digit and digits <= MOST_DIGITS
