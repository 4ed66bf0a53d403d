#!/usr/bin/env python3
"""The record-batch codec beside kafka-python's: records a second, and how many times as many.

    scripts/bench/codec.py [--records 200000] [--bytes 100] [--batch 1048576]

One thread, no network; lines of text as values, no keys. Both do the same records the same number of times, after one turn to warm up, and
the best turn counts; kafka-python's figures take some minutes.
"""

import argparse
import time

import numpy as np
from kafka.errors import UnsupportedCodecError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

from standalone import warm_up
from standalone.log import compression, record_batch
from standalone.wire import ByteColumn, Records

REPEATS = 5
WORDS = [b"%x" % (number * 2654435761 % 65521) for number in range(512)]


def main():
    arguments = _arguments()
    records = _lines(arguments.records, arguments.bytes)
    warm_up.compile_all()
    print(f"{arguments.records} records of {arguments.bytes} bytes in batches of {arguments.batch}; M records/s, best of {REPEATS}\n")
    print(f"{'':8}{'pack':>8}{'kafka-python':>14}{'times':>8}{'unpack':>10}{'kafka-python':>14}{'times':>8}{'size':>8}")
    for codec in compression.NAMES:
        packing = _rate(arguments.records, lambda: list(record_batch.pack_all(records, arguments.batch, compression=codec)))
        buffer = b"".join(batch.data for batch in record_batch.pack_all(records, arguments.batch, compression=codec))
        unpacking = _rate(arguments.records, lambda: record_batch.unpack(buffer))
        their_packing = _rate(arguments.records, lambda: _kafka_python_packs(records, codec, arguments.batch))
        their_unpacking = _rate(arguments.records, lambda: _kafka_python_unpacks(buffer))
        print(
            f"{codec:8}{packing:8.2f}{_shown(their_packing):>14}{_times(packing, their_packing):>8}"
            f"{unpacking:10.2f}{_shown(their_unpacking):>14}{_times(unpacking, their_unpacking):>8}{len(buffer) / records.values.nbytes:8.2f}"
        )


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--bytes", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1 << 20)
    return parser.parse_args()


def _lines(count, size):
    """Values as slices of one buffer, as a file's lines are."""
    words = np.random.default_rng(1).integers(0, len(WORDS), count * size // 4)
    text = b" ".join(WORDS[word] for word in words.tolist())
    data = np.frombuffer(text, np.uint8)[: count * size]
    return Records(count, values=ByteColumn(data, np.arange(count) * size, np.full(count, size, np.int32)))


def _kafka_python_packs(records, codec, limit):
    def new_builder():
        return DefaultRecordBatchBuilder(2, compression.NAMES.index(codec), False, -1, -1, -1, limit)

    builder, offset = new_builder(), 0
    for value in records.values:
        if not builder.append(offset, 0, None, value, []):
            builder.build()
            builder, offset = new_builder(), 0
            builder.append(offset, 0, None, value, [])
        offset += 1
    builder.build()


def _kafka_python_unpacks(buffer):
    batches = MemoryRecords(buffer)
    while batches.has_next():
        batch = batches.next_batch()
        batch.validate_crc()
        for record in batch:
            assert record.value is not None


def _rate(count, work):
    """Million records a second; None where kafka-python lacks the codec's library."""
    try:
        work()
        return count / min(_seconds(work) for _ in range(REPEATS)) / 1e6
    except UnsupportedCodecError:
        return None


def _seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _shown(rate):
    return "-" if rate is None else f"{rate:.3f}"


def _times(ours, theirs):
    return "-" if theirs is None else f"{ours / theirs:.0f}"


if __name__ == "__main__":
    main()
