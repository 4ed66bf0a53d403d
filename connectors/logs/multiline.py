"""Events of multiple lines, such as stack traces: finds where each begins and ends, without copying, for whole chunks at once.

An incomplete event is not consumed: so it stays whole across reads, restarts and partial writes.
"""

import re

import numpy as np

from connectors.logs.lines import FeedLines
from standalone import ByteColumn

# Lines that continue the previous event.
PRESETS = {
    "java": r"^(?:\s|Caused by:|Suppressed:|\.\.\. \d+ more|[\w.$]+(?:Exception|Error)(?::|$))",
    "python": r"^(?:\s|Traceback \(most recent call last\):|During handling of the above|The above exception was|"
    r"[\w.]+(?:Error|Exception|Warning|Interrupt|Exit)(?::|$)|$)",
    "go": r"^(?:\s|goroutine \d+ \[|panic: |\[signal |created by |exit status \d|[\w./*()]+\(.*\)$|$)",
    "ruby": r"^(?:\s|from |\d+: from )",
    "node": r"^(?:\s|Caused by:|\[cause\]:|[\])}])",
    "indent": r"^\s",
}
TIMESTAMP = r"^\W{0,2}(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d[-/.]\w{2,3}[-/.]\d{2,4}|[A-Z][a-z]{2} [ \d]\d \d\d:|\d{10})"


class Rule:
    """Which lines belong to one event. At least one pattern is set.

    starts: begins an event; goes_on: continues the previous line; ends: ends its event; carries_on: is continued by the next line.
    """

    def __init__(self, starts=None, goes_on=None, ends=None, carries_on=None, most_lines=1000, most_bytes=1 << 20):
        self.starts, self.goes_on, self.ends, self.carries_on = starts, goes_on, ends, carries_on
        self.most_lines, self.most_bytes = most_lines, most_bytes

    @classmethod
    def preset(cls, name, **limits):
        return cls(starts=TIMESTAMP, **limits) if name == "timestamp" else cls(goes_on=PRESETS[name], **limits)

    def breaks(self, column):
        """For each line, whether it begins an event; and whether the last line certainly ends its event."""
        begins = np.zeros(len(column), bool)
        last_ends = False
        if self.starts is not None:
            begins |= matches(column, self.starts)
        if self.goes_on is not None:
            begins |= ~matches(column, self.goes_on)
        if self.ends is not None:
            ends = matches(column, self.ends)
            begins[1:] |= ends[:-1]
            last_ends = bool(ends[-1])
        if self.carries_on is not None:
            on = matches(column, self.carries_on)
            begins[1:] |= ~on[:-1]
            last_ends |= not on[-1]
        if len(begins):
            begins[0] = True
        return begins, last_ends


class Events:
    """Groups the lines of another splitter into events."""

    def __init__(self, rule, lines=FeedLines, text=ByteColumn):
        """`text(data, starts, lengths)`: the lines as UTF-8, for matching."""
        self._rule = rule
        self._lines = lines
        self._text = text
        self.first_end = lines.first_end
        self.pending = lines.pending
        self.late_end = lines.late_end

    def split(self, data, begin=0, final=False):
        starts, lengths, end = self._lines.split(data, begin, final)
        if not len(starts):
            return starts, lengths, end
        begins, last_ends = self._rule.breaks(self._text(data, starts, lengths))
        first = np.flatnonzero(begins)
        last = np.append(first[1:] - 1, len(starts) - 1)
        event_starts, event_lengths = starts[first], starts[last] + lengths[last] - starts[first]
        if (last - first >= self._rule.most_lines).any() or (event_lengths > self._rule.most_bytes).any():
            first, last = self._divided(first, last, starts, lengths)
            event_starts, event_lengths = starts[first], starts[last] + lengths[last] - starts[first]
            is_full = last[-1] - first[-1] + 1 >= self._rule.most_lines or event_lengths[-1] >= self._rule.most_bytes
        else:
            is_full = False
        if not (final or last_ends or is_full):  # the following lines may belong to the last event
            end = int(event_starts[-1])
            event_starts, event_lengths = event_starts[:-1], event_lengths[:-1]
        return event_starts, event_lengths.astype(np.int32), end

    def _divided(self, first, last, starts, lengths):
        """Split events that are too long."""
        firsts, lasts = [], []
        for low, high in zip(first.tolist(), last.tolist()):
            begun = low
            for line in range(low + 1, high + 1):
                size = int(starts[line] + lengths[line] - starts[begun])
                if line - begun >= self._rule.most_lines or size > self._rule.most_bytes:
                    firsts.append(begun)
                    lasts.append(line - 1)
                    begun = line
            firsts.append(begun)
            lasts.append(high)
        return np.array(firsts, np.int64), np.array(lasts, np.int64)


def matches(column, pattern):
    """For each line, whether the pattern (RE2) matches. Bytes are read as Latin-1, so that all are valid."""
    import pyarrow.compute as pc  # imported late: saves memory if no pattern is configured

    found = pc.match_substring_regex(column.to_arrow(), pattern)
    return found.to_numpy(zero_copy_only=False)


def refused_pattern(pattern):
    """Why it is not a valid RE2 expression; None if it is valid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([b""], pa.binary()), pattern)
    except (pa.ArrowInvalid, re.error) as error:
        return str(error)
    return None
