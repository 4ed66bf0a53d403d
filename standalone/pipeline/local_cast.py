"""Casts between numbers, and from whole numbers to text, of an Arrow array: as Java's narrowing does them, a pass over the array each."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone.data.arrow import buffer_of, nulls_of

_NUMPY = {pa.int8(): np.int8, pa.int16(): np.int16, pa.int32(): np.int32, pa.int64(): np.int64, pa.float32(): np.float32, pa.float64(): np.float64}
_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def can_cast(source, target):
    """Whether it is done here."""
    if target in (pa.string(), pa.bool_()):
        return source in _WHOLE or source == pa.bool_()
    return (source in _NUMPY or source == pa.bool_()) and target in _NUMPY


def cast(array, target):
    """The array as that type; what is null stays null. Floats are cut to the nearest whole number that there is, whole numbers wrap."""
    source = array.type
    if target == pa.string() or source == pa.bool_():
        return pc.cast(array, target)
    return pa.array(_cast_numbers(buffer_of(array), source, target), target, mask=nulls_of(array))


def _cast_numbers(numbers, source, target):
    if target == pa.bool_():
        return numbers != 0
    if source in _WHOLE or target not in _WHOLE:
        with np.errstate(over="ignore"):
            return numbers.astype(_NUMPY[target])
    return _cut(numbers, np.int64 if target == pa.int64() else np.int32).astype(_NUMPY[target])


def _cut(numbers, kind):
    """Floats without their fractions; what is beyond the whole numbers is the outermost of these, and no number is 0."""
    limits = np.iinfo(kind)
    too_large, too_small = numbers >= float(limits.max) + (kind is np.int32), numbers <= float(limits.min)
    with np.errstate(invalid="ignore"):
        cut = np.where(np.isnan(numbers) | too_large | too_small, 0, numbers).astype(kind)
    cut[too_large], cut[too_small] = limits.max, limits.min
    return cut
