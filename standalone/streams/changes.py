"""A table computed from tables: recomputed when one of them changes; only differences to its topic are written.

The topic is the only state: a batch interrupted by a crash is completed by the next one.
"""


from standalone.streams.ranges import Ranges

_NOTHING = object()


class Changes:
    """Used by the query's thread. `made` is an engine.Made, `output` an open OutputTopic."""

    def __init__(self, made, output):
        self._made, self._output = made, output
        self._ranges = Ranges(made.clients)
        self._held = None  # key -> value as bytes, the content of the output topic

    def ends(self):
        """Return the end offsets of the tables' topics."""
        pairs = self._ranges.pairs(topics=[view.source.topic for view in self._made.plan.views])
        return self._ranges.ends(pairs)

    def work(self, session, ends):
        """Recompute and write the differences; return the number of rows written."""
        frame = self._made.frame(session)
        records, _ = self._output.encoded(frame.toArrow(), frame.schema)
        wanted = dict(zip(records.keys or (), records.values or ()))
        wanted.pop(None, None)
        held = self._read_held() if self._held is None else self._held
        changed = {key: value for key, value in wanted.items() if held.get(key, _NOTHING) != value}
        gone = [key for key in held if key not in wanted]
        rows = [*changed.items(), *((key, None) for key in gone)]
        if rows:
            self._output.write_rows(rows)
        self._held = wanted
        return len(rows)

    def _read_held(self):
        held = {}
        pairs = self._ranges.pairs(topics=[self._output.topic])
        begins, ends = self._ranges.begins(pairs), self._ranges.ends(pairs, also_open=True)
        for pair in pairs:
            for records in self._ranges.read(*pair, begins[pair], ends[pair]):
                for key, value in zip(records.keys or (), records.values or [None] * len(records)):
                    if value is None:
                        held.pop(key, None)
                    else:
                        held[key] = value
        return held


