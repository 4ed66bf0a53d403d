"""A table that is made of tables: recomputed when one of them has changed, and written as far as it differs from its topic.

What the topic holds is what was written; so nothing else is remembered, and a batch that was cut off by a crash is done by the next.
"""


from standalone.streams.ranges import Ranges

_NOTHING = object()


class Changes:
    """Used by the query's thread. `made` is an engine.Made, `output` an OutputTopic that is open."""

    def __init__(self, made, output):
        self._made, self._output = made, output
        self._ranges = Ranges(made.clients)
        self._held = None  # key -> value, as bytes, of what the output's topic holds

    def ends(self):
        """Where the topics of the tables end now."""
        pairs = self._ranges.pairs(topics=[view.source.topic for view in self._made.plan.views])
        return self._ranges.ends(pairs)

    def work(self, session, ends):
        """How many rows were written."""
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


