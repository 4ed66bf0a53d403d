#!/usr/bin/env python3
"""How fast TableSink writes a topic of JSON (12 fields) into a table of Iceberg, beside Java Connect with Apache's Iceberg sink.

One Kafka, one task each.

    scripts/bench/tables.py [--records 500000] [--only ours|java]

The time runs from the connector's creation, in a worker that is up (ours with Spark up as well), until all records are in the table's current
snapshot. Both commit every five seconds; both tables are read and compared at the end.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "bench"), str(ROOT / "scripts" / "soak")]

from lake import order  # noqa: E402
from table_kill import Table  # noqa: E402

from tests.servers import java_connect  # noqa: E402
from tests.servers.java_connect import CACHE, JavaConnect  # noqa: E402
from tests.servers.kafka_broker import KafkaBroker, free_port  # noqa: E402

TOPIC = "orders"
PATIENCE_SECONDS = 600
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--only", choices=["ours", "java"])
    given = parser.parse_args()
    broker = KafkaBroker().start()
    try:
        with tempfile.TemporaryDirectory(prefix="bench-tables-") as folder:
            folder = pathlib.Path(folder)
            send(broker.bootstrap, given.records)
            sides = {"ours": ours, "java": java}
            rates = {name: measure(name, side, broker.bootstrap, folder, given.records) for name, side in sides.items() if given.only in (None, name)}
            if len(rates) == 2:
                print(f"TableSink does {rates['ours'] / rates['java']:.1f} times as many records a second")
    finally:
        broker.stop()


def send(bootstrap, records):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 1_000_000, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        producer.produce(TOPIC, order(number, 10))
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def measure(name, side, bootstrap, folder, records):
    table = Table(folder / name)
    table._metadata = folder / name / "db" / "orders" / "metadata"
    sink = {
        "topics": TOPIC, "tasks.max": "1", "iceberg.tables": "db.orders",
        "iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": str(folder / name),
        "iceberg.tables.auto-create-enabled": "true", "iceberg.control.commit.interval-ms": "5000", **JSON,
    }  # fmt: skip
    with side(bootstrap, folder) as (port, kind):
        began = time.monotonic()
        _put(port, {"connector.class": kind, **sink})
        while table.count() < records:
            assert time.monotonic() - began < PATIENCE_SECONDS, f"{name}: {table.count()} of {records}: {_read(port, '/connectors/bench/status')}"
            time.sleep(0.05)
        seconds = time.monotonic() - began
    import pyarrow.parquet as pq

    found = sorted(number for path in table.paths() for number in pq.read_table(path, columns=["id"], partitioning=None)["id"].to_pylist())
    assert found == list(range(records)), f"{name}: not each record once"
    print(f"{name}: {records} records in {seconds:.1f} s, {records / seconds / 1000:.0f} k records/s, {len(table.paths())} files", flush=True)
    return records / seconds


@contextlib.contextmanager
def ours(bootstrap, folder):
    from tests.servers.spark_of_tables import SETTINGS
    from tests.servers.spark_of_tables import folder as spark

    port = free_port()
    worker = {
        "bootstrap.servers": bootstrap, "listeners": f"http://127.0.0.1:{port}", "offset.storage.file.filename": folder / "connect.offsets",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "spark.start": "eager", **{key: value for key, value in SETTINGS.items() if "extensions" not in key and "catalog" not in key},
    }  # fmt: skip
    (folder / "worker.properties").write_text("".join(f"{key}={value}\n" for key, value in worker.items()))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(spark()), str(ROOT)])}
    command = [sys.executable, "-m", "standalone.cli.worker", str(folder / "worker.properties")]
    with open(folder / "worker.log", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
    try:
        _wait(lambda: "Spark" in (folder / "worker.log").read_text() and " is up after" in (folder / "worker.log").read_text())
        yield port, "TableSink"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def java(bootstrap, folder):
    worker = {
        "bootstrap.servers": bootstrap, "offset.storage.file.filename": folder / "java.offsets", "plugin.path": jars().parent,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "consumer.max.poll.records": "5000",
    }  # fmt: skip
    java_connect.JAVA_OPTIONS[:] = ["-Xms512m", "-Xmx2g"]  # as a server has it, not as tests do
    with JavaConnect(worker, [], folder) as connect:
        try:
            _wait(lambda: _read(connect.port, "/connectors") is not None)
        except AssertionError as error:
            raise AssertionError((folder / "java-connect.log").read_text()[-2000:]) from error
        yield connect.port, "org.apache.iceberg.connect.IcebergSinkConnector"


def jars():
    """The folder with the sink's jars; fetched from Maven if they are not there."""
    libs = CACHE / "bench-iceberg" / "libs"
    if not libs.is_dir():
        part = libs.with_suffix(".part")
        command = ["mvn", "-q", "-B", "-f", ROOT / "scripts" / "bench" / "iceberg-pom.xml", "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={part}"], check=True)
        part.rename(libs)
    return libs


def _wait(condition):
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline, "it did not start"
        time.sleep(0.1)


def _read(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return None


def _put(port, config):
    body = json.dumps({"name": "bench", **config}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/bench/config", body, {"Content-Type": "application/json"}, method="PUT"
    )
    urllib.request.urlopen(request, timeout=60).read()


if __name__ == "__main__":
    main()
