"""What came of lines: a column of values, their schema, and what is told of each."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Parsed:
    value: Any  # a column: ByteColumn, Arrow array, or list
    schema: Any
    times: np.ndarray | None = None  # milliseconds since the epoch, -1: none
    rows: np.ndarray | None = None  # the numbers of the lines that made the values, where not each did
    unparsed: np.ndarray | None = None  # which lines are not of the format
