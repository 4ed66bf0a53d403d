"""The partition of a key, as Java's default partitioner chooses it."""

import base64
import json
import pathlib

import numpy as np

from standalone.log.partitioner import NO_PARTITION, murmur2, partition_for_keys
from standalone.wire import ByteColumn

GOLDEN = [json.loads(line) for line in (pathlib.Path(__file__).parents[1] / "golden" / "partitions.jsonl").open()]


def test_keys_go_where_java_sends_them():
    keys = ByteColumn.of([base64.b64decode(case["key"]) for case in GOLDEN])
    assert murmur2(keys).tolist() == [case["murmur2"] for case in GOLDEN]
    for count in {count for case in GOLDEN for count in case["partition"]}:
        assert partition_for_keys(keys, int(count)).tolist() == [case["partition"][count] for case in GOLDEN]


def test_a_null_key_has_no_partition_and_an_empty_one_has():
    chosen = partition_for_keys(ByteColumn.of([None, b"", None]), 12)
    assert chosen.dtype == np.int32
    assert chosen[0] == chosen[2] == NO_PARTITION and chosen[1] >= 0


def test_keys_are_hashed_where_they_lie():
    data = np.frombuffer(b"..key-0..key-0", np.uint8)
    keys = ByteColumn(data, np.array([2, 9]), np.array([5, 5], np.int32))
    assert murmur2(keys).tolist() == [29210041] * 2


def test_no_keys_have_no_partitions():
    assert len(partition_for_keys(ByteColumn.of([]), 3)) == 0
