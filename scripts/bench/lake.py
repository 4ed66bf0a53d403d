#!/usr/bin/env python3
"""How fast LakeSink writes a topic of JSON (12 fields) as files, beside pyarrow writing the same columns from memory, pyarrow
reading the same JSON from memory and writing it, and what memory it takes.

    scripts/bench/lake.py [--records 2000000] [--format Parquet] [--folders 1] [--url hdfs://… | --hdfs] [--most-mb N]

One worker on its embedded log, all in this process; the time runs from the connector's creation to its last commit. With --folders the records
are spread over so many at once. --hdfs brings an HDFS of its own. With --most-mb it fails where it takes more memory than that.
"""

import argparse
import contextlib
import io
import pathlib
import resource
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
CHUNK = 100_000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--format", default="Parquet")
    parser.add_argument("--folders", type=int, default=1)
    parser.add_argument("--url")
    parser.add_argument("--hdfs", action="store_true")
    parser.add_argument("--most-mb", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as folder, contextlib.ExitStack() as at_end:
        if given.hdfs:
            from tests.servers.hdfs import Hdfs

            given.url = f"{at_end.enter_context(Hdfs()).url}/bench"
        measure(pathlib.Path(folder), given)


def measure(folder, given):
    from standalone.local_worker import LocalWorker

    props = {
        "connector.class": "LakeSink", "topics": "orders", "store.url": given.url or str(folder / "lake"), "format.class": given.format,
        # No rotation by a schedule: one that cuts a file leaves the last one to wait for the next time.
        "flush.size": "500000" if given.folders == 1 else str(given.records),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false",
    }  # fmt: skip
    if given.folders > 1:
        props |= {"partitioner.class": "Field", "partition.field.name": "shop"}
    tail = given.records % 500_000 if given.folders == 1 else 0
    assert not tail, "as many records as fill whole files: else the last one is waited for"
    with LocalWorker(folder, pipeline__engine="auto") as worker:
        for first in range(0, given.records, CHUNK):
            worker.send("orders", [order(number, given.folders) for number in range(first, min(first + CHUNK, given.records))])
        memory, cpu, began = peak_mb(), time.process_time(), time.monotonic()
        worker.create("lake", props)
        worker.wait_committed("lake", "orders", 600)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    print(f"{given.records} records to {given.format} in {given.folders} folders: {given.records / seconds / 1000:.0f} k records/s, ", end="")
    taken = peak_mb() - memory
    print(f"{cpu / given.records * 1e6:.1f} CPU seconds a million, {taken:.0f} MB more than before at the most")
    if given.most_mb and taken > given.most_mb:
        sys.exit(f"that is more than {given.most_mb} MB")
    if given.format == "Parquet" and not given.url and given.folders == 1:
        by_pyarrow(folder, given.records, seconds)


def order(number, folders):
    return (
        b'{"id":%d,"shop":"s%d","customer":"customer-%d","country":"%s","amount":%d.%02d,"quantity":%d,"paid":%s,"created":%d,'
        b'"sku":"sku-%05d","note":"some words of a note %d","weight":%d.5,"channel":"%s"}'
        % (
            *(number, number % folders, number % 99_991, (b"de", b"fr", b"it", b"es")[number % 4], number % 1000, number % 100, number % 7),
            *((b"true", b"false")[number % 2], 1_700_000_000_000 + number, number % 50_000, number % 1000, number % 90),
            (b"web", b"shop")[number % 2],
        )
    )


def by_pyarrow(folder, records, seconds):
    import pyarrow.json as pa_json
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "lake" / "topics" / "orders", partitioning=None)
    assert table["id"].to_pylist() == list(range(records))
    began = time.monotonic()
    for low in range(0, records, 500_000):
        pq.write_table(table.slice(low, 500_000), folder / f"{low}.parquet", compression="snappy", version="2.6")
    alone = time.monotonic() - began
    print(f"pyarrow from memory: {records / alone / 1000:.0f} k records/s; the sink has {alone / seconds:.2f} of that, the log and JSON included")
    parts = [b"\n".join(order(number, 1) for number in range(low, low + 500_000)) for low in range(0, records, 500_000)]
    began = time.monotonic()
    for at, lines in enumerate(parts):
        rows = pa_json.read_json(io.BytesIO(lines), pa_json.ReadOptions(block_size=16 << 20))
        pq.write_table(rows, folder / f"json-{at}.parquet", compression="snappy", version="2.6")
    like = time.monotonic() - began
    print(f"pyarrow from JSON in memory: {records / like / 1000:.0f} k records/s; the sink has {like / seconds:.2f} of that, the log included")


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
