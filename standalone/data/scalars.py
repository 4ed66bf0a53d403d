"""Values with a specific Java class: integers and floats of a width, and points in time.

Plain int and float suffice if a schema gives the width. Without a schema an int counts as Java's Long and a float as
Double; the classes here mark Byte, Short, Integer, BigInteger and Float.
"""

import datetime
import decimal
import functools
import math
import struct
from fractions import Fraction


class Int8(int):
    __slots__ = ()


class Int16(int):
    __slots__ = ()


class Int32(int):
    __slots__ = ()


class Int64(int):
    __slots__ = ()


class BigInt(int):
    """An integer of any size, Java's BigInteger, which no schema type holds."""

    __slots__ = ()


class Float32(float):
    """The value must fit 32 bits; round with `to_float32` first."""

    __slots__ = ()


class Float64(float):
    """A Double even for a float32 schema, which accepts a plain float but not this class."""

    __slots__ = ()


_FLOAT = struct.Struct("<f")


def to_float32(number):
    """Return the Float32 nearest to an int, float, Decimal or Fraction, rounded once, half to even."""
    if isinstance(number, float):
        try:
            return Float32(_FLOAT.unpack(_FLOAT.pack(number))[0])
        except OverflowError:
            return Float32(math.copysign(math.inf, number))
    if not number:
        return Float32(math.copysign(0.0, number))  # a Decimal may be a negative zero
    if isinstance(number, decimal.Decimal) and abs(number.adjusted()) > 60:
        return Float32(math.copysign(0.0 if number.adjusted() < 0 else math.inf, number))
    exact = Fraction(number)
    if abs(exact) >= 1 << 128:
        return Float32(math.inf if exact > 0 else -math.inf)
    _, exponent = math.frexp(float(exact))
    step = Fraction(2) ** (max(exponent, -125) - 24)
    return to_float32(float(round(exact / step) * step) or math.copysign(0.0, exact))


WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
CLASSES = {"int8": Int8, "int16": Int16, "int32": Int32, "int64": Int64}

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)


@functools.total_ordering
class Instant:
    """A point in time in milliseconds since the epoch, UTC: the value of Date, Time and Timestamp, like Java's Date.

    Unlike datetime it supports years outside 1 to 9999. `Instant.of` accepts datetime, date and time objects.
    """

    __slots__ = ("ms",)

    def __init__(self, ms):
        self.ms = ms

    @classmethod
    def of(cls, value):
        if isinstance(value, Instant):
            return value
        if isinstance(value, datetime.datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
            return cls((aware - _EPOCH) // _MILLISECOND)
        if isinstance(value, datetime.date):
            return cls((value.toordinal() - _EPOCH.toordinal()) * 86_400_000)
        if isinstance(value, datetime.time):
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return cls(seconds * 1000 + value.microsecond // 1000)
        raise TypeError(f"{type(value).__name__} is not a point in time")

    def to_datetime(self):
        return _EPOCH + self.ms * _MILLISECOND

    def __eq__(self, other):
        return isinstance(other, Instant) and self.ms == other.ms

    def __lt__(self, other):
        return self.ms < other.ms

    def __hash__(self):
        return hash(self.ms)

    def __repr__(self):
        return f"Instant({self.ms})"
