"""Windows of every kind over generated records, many of them late, compared with a model.

All records are in the topic before the queries start, so each batch has `max.offsets.per.batch` records. A record of a batch is late if its
window has ended at the watermark of the previous batch, which is the newest time of the batches before that one minus the grace period. A
window closes when its end is not after the batch's own watermark.
"""

import collections
import json
import os
import time

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from standalone.streams.columns import SESSION, TIME, windowed
from standalone.testing import wait_for
from tests.streams.on_worker import Sql, worked

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SIZE, ADVANCE, GAP = 60_000, 20_000, 15_000
T0 = (time.time_ns() // 1_000_000 // SIZE - 60) * SIZE  # not so long ago that the log would delete it
CLOSING = ("z", T0 + 3_600_000)
QUERIES = {  # name: (WINDOW, EMIT)
    "tumbling": (f"TUMBLING (SIZE {SIZE} MILLISECONDS, ", "CHANGES"),
    "tumbling_final": (f"TUMBLING (SIZE {SIZE} MILLISECONDS, ", "FINAL"),
    "hopping": (f"HOPPING (SIZE {SIZE} MILLISECONDS, ADVANCE BY {ADVANCE} MILLISECONDS, ", "CHANGES"),
    "hopping_final": (f"HOPPING (SIZE {SIZE} MILLISECONDS, ADVANCE BY {ADVANCE} MILLISECONDS, ", "FINAL"),
    "session_final": (f"SESSION ({GAP} MILLISECONDS, ", "FINAL"),
}

# (key, how many seconds time moves on, how many seconds the record is late)
STEPS, LATE = st.sampled_from([25, 0, 5, 12, 30]), st.sampled_from([0, 0, 0, 20, 90, 300, 900])
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), STEPS, LATE), min_size=20, max_size=40)


@pytest.mark.night
@settings(max_examples=2, phases=[Phase.generate])  # an example takes half a minute: no shrinking
@given(RECORDS, st.integers(3, 8), st.sampled_from([0, 20, 60]))
@pytest.mark.timeout(7200)
def test_windows_of_generated_records_equal_the_model(worker, records, size, grace):
    rows, now = [], T0 + 1_000_000
    for number, (key, step, late) in enumerate(records):
        now += step * 1000
        rows.append((key, now - late * 1000 + number))  # no two are exactly a gap apart
    rows.append(CLOSING)
    batches = [rows[at : at + size] for at in range(0, len(rows), size)]
    sql = Sql(worker)
    try:
        sql("CREATE STREAM x_s (k STRING KEY, at BIGINT) WITH (kafka_topic = 'x_s', value_format = 'JSON', timestamp = 'at', partitions = 1);")
        worker.send(sql.text("x_s"), [(key, json.dumps({"at": moment})) for key, moment in rows])
        queries = {}
        for name, (window, emit) in QUERIES.items():
            made = sql(
                f"CREATE TABLE x_{name} WITH (kafka_topic = 'x_{name}') AS SELECT k, count(*) AS n FROM x_s "
                f"WINDOW {window}GRACE PERIOD {grace} SECONDS) GROUP BY k EMIT {emit};",
                max__offsets__per__batch=size,
            )
            queries[name] = made["query"]
        end = len(rows), CLOSING[1] - grace * 1000
        for name, (_, emit) in QUERIES.items():
            checkpoint = os.path.join(sql.engine.folder, queries[name], "checkpoint")
            wait_for(lambda: worked(checkpoint) == end, 150, f"{name} to be at {end}; {sql.trouble()}")
            check(name, emit, sql.records(f"x_{name}"), batches, grace * 1000)
    finally:
        sql.clear()


def check(name, emit, found, batches, grace):
    wanted = sessions(batches, grace) if name.startswith("session") else counts(batches, grace, ADVANCE if "hopping" in name else SIZE, emit)
    kind = SESSION if name.startswith("session") else TIME
    expected = {windowed(key.encode(), kind, start, end): b'{"n":%d}' % count for (key, start, end), count in wanted.items()}
    assert dict(found) == expected, name
    if emit == "FINAL":
        assert len(found) == len(expected), f"{name} emits each window once"


# ---------------------------------------------------------------- the model
def watermarks(batches, grace):
    """Return [(watermark for late records, watermark that closes windows)] of each batch and of a last one without records."""
    found, newest = [0], 0
    for batch in batches:
        newest = max([newest, *(moment for _, moment in batch)])
        found.append(newest - grace)
    return list(zip([0, *found], found))


def counts(batches, grace, advance, emit):
    """Return {(key, start, end): count} of windows of SIZE that start every `advance`; with FINAL, only of closed ones."""
    found, marks = collections.Counter(), watermarks(batches, grace)
    for batch, (late, _) in zip(batches, marks):
        for key, moment in batch:
            last = moment // advance * advance
            for start in range(last, last - SIZE, -advance):
                if start + SIZE > late:
                    found[key, start, start + SIZE] += 1
    return {window: count for window, count in found.items() if emit != "FINAL" or window[2] <= marks[-1][1]}


def sessions(batches, grace):
    """Return {(key, start, end): count} of closed sessions; a closed session takes no later records."""
    closed, open_ = {}, []  # open: (key, start, end, count)
    for batch, (late, close) in zip([*batches, []], watermarks(batches, grace)):
        new = [(key, moment, moment + GAP, 1) for key, moment in batch if moment + GAP > late]
        merged = []
        for key, start, end, count in sorted(open_ + new):
            if merged and merged[-1][0] == key and start <= merged[-1][2]:
                _, begun, until, before = merged.pop()
                start, end, count = begun, max(end, until), count + before
            merged.append((key, start, end, count))
        open_ = [session for session in merged if session[2] > close]
        for key, start, end, count in merged:
            if end <= close:
                assert (key, start, end) not in closed
                closed[key, start, end] = count
    return closed
