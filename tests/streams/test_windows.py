"""Final windows, with records that come late, against a model: what is late is told by the newest record of the batches before."""

import collections
import json
import os
import random
import time

import pytest

from standalone.testing import wait_for
from tests.streams.on_worker import worked
from tests.suite.night import night

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MINUTE, GRACE = 60_000, 20_000
T0 = (time.time_ns() // 1_000_000 // MINUTE - 60) * MINUTE  # not so long ago that the log would delete it


def _model(batches):
    """{(key, start of the window): count}"""
    counts, newest = collections.Counter(), None
    for batch in batches:
        watermark = newest - GRACE if newest is not None else None
        for key, moment in batch:
            start = moment // MINUTE * MINUTE
            if watermark is None or start + MINUTE > watermark:
                counts[key, start] += 1
        newest = max([moment for _, moment in batch] + ([newest] if newest is not None else []))
    return {window: count for window, count in counts.items() if window[1] + MINUTE <= newest - GRACE}


@pytest.mark.parametrize("seed", [5, *night(*range(6, 15))])
def test_windows_with_late_records_are_those_of_the_model(sql, seed):
    made = sql(
        "CREATE STREAM x_s (k STRING KEY, at BIGINT) WITH (kafka_topic = 'x_s', value_format = 'JSON', timestamp = 'at', partitions = 1);"
        "CREATE TABLE x_w WITH (kafka_topic = 'x_w') AS SELECT k, count(*) AS n FROM x_s "
        "WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 20 SECONDS) GROUP BY k EMIT FINAL;"
    )
    checkpoint = os.path.join(sql.engine.folder, made["query"], "checkpoint")
    chance, batches, sent = random.Random(seed), [], 0
    for number in range(8):
        now = T0 + number * 45_000
        batch = [(chance.choice("ab"), now - chance.choice((0, 5_000, 40_000, 90_000, 200_000))) for _ in range(5)]
        batches.append([(key, max(T0, moment)) for key, moment in batch])
    batches.append([("z", T0 + 3_600_000)])  # closes all
    for batch in batches:
        sql.worker.send(sql.text("x_s"), [(key, json.dumps({"at": moment})) for key, moment in batch])
        sent += len(batch)
        newest = max(moment for batch in batches[: batches.index(batch) + 1] for _, moment in batch)
        wait_for(lambda: worked(checkpoint) == (sent, newest - GRACE), 60, f"offset {sent} to be worked; {sql.trouble()}")
    wanted = _model(batches)
    assert sum(wanted.values()) < sent - 1  # some were late
    expected = {key.encode() + start.to_bytes(8, "big"): b'{"n":%d}' % count for (key, start), count in wanted.items()}
    found = sql.topic("x_w", len(expected))  # the keys are as Kafka Streams writes those of windows
    assert dict(found) == expected and len(found) == len(expected)  # each once
    assert len(sql.rows("SELECT k, n, WINDOWSTART AS w FROM x_w;")) == len(expected)
