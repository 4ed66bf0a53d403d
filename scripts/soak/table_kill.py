#!/usr/bin/env python3
"""Kills a worker with SIGKILL while TableSink writes a topic to a table of Iceberg, and looks at the table then: each record must be there once.

    scripts/soak/table_kill.py [--records 200000] [--kills 6] [--upsert] [--seed 0]

The table is read by fastavro and pyarrow, without Spark: at each kill, from the snapshot that is the current one then. With --upsert each record
comes a second time with another value, and the table must have the second one of each.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]

import lake_kill  # noqa: E402

TABLE = ("db", "numbers")
COMMITS = 40  # about so many


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--upsert", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.url, given.format = None, "Parquet"
    with tempfile.TemporaryDirectory(prefix="soak-table-") as folder:
        Soak(pathlib.Path(folder), given).run()


class Soak(lake_kill.Soak):
    def __init__(self, folder, given):
        super().__init__(folder, given)
        self.files = Table(folder / "tables")

    def send(self):
        super().send()
        if self.given.upsert:
            from standalone.local_worker import LocalWorker

            with LocalWorker(self.folder) as worker:
                worker.send(lake_kill.TOPIC, [b'{"n":%d,"kind":"again"}' % number for number in range(self.given.records)])

    def configure(self):
        from tests.servers.spark_of_tables import SETTINGS

        super().configure()
        with open(self.folder / "worker.properties", "a") as worker:
            worker.write("pipeline.engine=rows\n")  # in small puts: there are more commits to be killed in
            worker.writelines(f"{key}={value}\n" for key, value in SETTINGS.items() if "catalog" not in key and "extensions" not in key)
        sink = {
            "name": "tables", "connector.class": "TableSink", "topics": lake_kill.TOPIC, "iceberg.tables": ".".join(TABLE),
            "iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": self.files.warehouse, "iceberg.tables.auto-create-enabled": "true",
            "iceberg.control.commit.interval-ms": "1000", "commit.max.bytes": str(self.given.records * 40 // COMMITS),
        }  # fmt: skip
        if self.given.upsert:
            sink |= {"iceberg.tables.upsert-mode-enabled": "true", "iceberg.tables.default-id-columns": "n"}
        (self.folder / "sink.properties").write_text("".join(f"{key}={value}\n" for key, value in sink.items()))

    def environment(self):
        from tests.servers.spark_of_tables import folder

        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder()), str(ROOT)])}

    def is_over(self):
        rows = self.files.rows()
        return len(rows) >= self.given.records and (not self.given.upsert or all(kind == "again" for kind in rows.values()))

    def check(self, is_over):
        numbers = self.files.numbers()
        assert len(numbers) == len(set(numbers)), "a record is there twice"
        missing = set(range(self.given.records)) - set(numbers)
        assert not is_over or not missing, f"{len(missing)} records are missing"
        if not self.given.upsert:
            assert sorted(numbers) == list(range(len(numbers))), "a record is there, and one before it is not"
        assert not is_over or self.is_over(), "an older value is there"
        return len(numbers)


class Table:
    """A reader's view of the table."""

    def __init__(self, warehouse):
        self.warehouse = self.url = warehouse
        self._metadata = pathlib.Path(warehouse, *TABLE, "metadata")

    def paths(self):
        """The data files of the current snapshot."""
        import fastavro

        try:
            version = (self._metadata / "version-hint.text").read_text().strip()
            while (self._metadata / f"v{int(version) + 1}.metadata.json").exists():  # the hint is written after it
                version = int(version) + 1
        except FileNotFoundError:
            return []
        told = json.loads((self._metadata / f"v{version}.metadata.json").read_text())
        current = next((each for each in told["snapshots"] if each["snapshot-id"] == told.get("current-snapshot-id")), None)
        if current is None:
            return []

        def read(path):
            with open(path.removeprefix("file:"), "rb") as file:
                return list(fastavro.reader(file))

        entries = [entry for manifest in read(current["manifest-list"]) for entry in read(manifest["manifest_path"])]
        return [entry["data_file"]["file_path"].removeprefix("file:") for entry in entries if entry["status"] != 2]

    def rows(self):
        """{n: kind}"""
        import pyarrow.parquet as pq

        tables = [pq.read_table(path, columns=["n", "kind"], partitioning=None) for path in self.paths()]
        return {number: kind for each in tables for number, kind in zip(each["n"].to_pylist(), each["kind"].to_pylist())}

    def numbers(self):
        import pyarrow.parquet as pq

        return [number for path in self.paths() for number in pq.read_table(path, columns=["n"], partitioning=None)["n"].to_pylist()]

    def count(self):
        import pyarrow.parquet as pq

        return sum(pq.read_metadata(path).num_rows for path in self.paths())


if __name__ == "__main__":
    main()
