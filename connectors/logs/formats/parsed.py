"""The result of parsing lines: a column of values, their schema, and details about each line."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Parsed:
    value: Any  # a column: ByteColumn, Arrow array, or list
    schema: Any
    times: np.ndarray | None = None  # milliseconds since the epoch, -1: none
    rows: np.ndarray | None = None  # the numbers of the lines that produced values, unless all did
    unparsed: np.ndarray | None = None  # which lines do not match the format
