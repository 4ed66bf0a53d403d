"""TableSink with real Iceberg and Delta: a process with the Spark that they have jars for does all of tests/connectors/tables/in_spark.py, once."""

import decimal
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

from tests.connectors.storage.records import seen
from tests.connectors.storage.test_read_by_spark import wanted
from tests.connectors.tables.in_spark import EMBEDDED, KINDS
from tests.servers import spark_of_tables
from tests.servers.hive_metastore import Metastore
from tests.suite.shared import skipped_where_unavailable

ROOT = pathlib.Path(__file__).parents[3]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.xdist_group("tables")]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    with skipped_where_unavailable():
        path = os.pathsep.join([str(spark_of_tables.folder()), str(ROOT)])
        metastore = Metastore().start()
    try:
        with open(folder / "log", "wb") as log:
            command = [sys.executable, "-m", "tests.connectors.tables.in_spark", str(folder)]
            environment = {**os.environ, "PYTHONPATH": path, "HIVE_METASTORE": metastore.url}
            subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, timeout=1100)
    finally:
        metastore.stop()
    if not (folder / "results").exists():
        pytest.fail((folder / "log").read_text(errors="replace")[-3000:])
    return pickle.loads((folder / "results").read_bytes())


@pytest.fixture
def told(results):
    def of(name):
        found = results[name]
        assert not isinstance(found, str), found
        return found

    return of


@pytest.mark.parametrize("kind", KINDS)
def test_all_types_are_read_back_as_they_were_written(told, kind):
    rows = told("all_types")[kind]
    expected = [seen(number) for number in range(12)]
    for row in expected:
        row["clock"] = milliseconds(row["clock"])
    assert rows == expected


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_each_record_is_there_once_whatever_is_put_again(told, kind):
    ids, first, second, third = told("once")[kind]
    assert ids == [*range(20), 100, 101]
    assert first == {("t", 0): 10, ("t", 1): 2} and second == {("t", 0): 15, ("t", 1): 2} and third == {("t", 0): 20}


def test_a_snapshot_of_iceberg_tells_the_offsets_of_all_partitions(told):
    assert [row["said"] for row in told("once")["property"]] == [
        '{"t":{"0":10,"1":2}}', '{"t":{"0":15,"1":2}}', '{"t":{"0":20,"1":2}}',
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_new_fields_become_columns(told, kind):
    nothing = {"in": None, "more": None, "new": None}
    assert told("evolution")[kind] == [
        {**nothing, "id": 1, "in": {"a": 1, "b": None}}, {**nothing, "id": 2, "new": "x", "in": {"a": 2, "b": True}}, {**nothing, "id": 3, "more": 1.5},
        {**nothing, "id": 4},
    ]  # fmt: skip


def test_numbers_become_wider_and_other_types_are_refused(told):
    assert told("evolution")["widened"] == [{"id": 1, "n": 7}, {"id": 2, "n": 1 << 40}]
    assert "Old and new values do not fit" in told("evolution")["refused"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_takes_the_place_of_the_one_with_its_key_and_a_tombstone_deletes_it(told, kind):
    before, after = told("upserts")[kind]
    assert before == [{"id": 1, "v": "c"}, {"id": 2, "v": "b"}]
    assert after == [{"id": 1, "v": "c"}, {"id": 2, "v": "f"}]


def test_what_is_missing_is_named_with_what_to_do(told):
    found = told("refusals")
    assert "There is no table db.none" in found["missing"] and "iceberg.tables.auto-create-enabled" in found["missing"]
    assert "spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime" in found["jar"]


@pytest.mark.parametrize("format", [*EMBEDDED, "remote_Parquet", "remote_Orc"])
def test_files_are_a_table_of_hive_with_a_partition_for_each_folder(told, format):
    before, columns, partitions, kind, later = told("hive")[format]
    assert not before, "a table is made of what was put"
    assert columns == [("id", "bigint"), ("price", "decimal(38,2)"), ("more", "array<int>"), ("country", "string")]
    place = f"{told('hive')['url']}/{format}/t"
    assert {value: url.replace("file:/", "file:///", 1) if ":///" not in url else url for value, url in partitions.items()} == {
        "de": f"{place}/country=de", "fr": f"{place}/country=fr", "a:b": f"{place}/country=a:b",
    }  # fmt: skip
    assert kind == "EXTERNAL_TABLE" and later == 3


@pytest.mark.parametrize("format", ["Parquet", "Orc"])
def test_spark_reads_a_table_of_hive_as_it_was_written(told, format):
    price = decimal.Decimal
    first = [{"id": number, "price": price("1.50"), "more": None, "country": land} for number, land in enumerate(("de", "fr", "de"))]
    second = [{"id": number, "price": price("2.50"), "more": [1], "country": "a:b"} for number in (3, 3, 4, 4, 5, 5)]
    assert told("hive")[f"read_{format}"] == first + second


def milliseconds(time):
    return (time.hour * 3600 + time.minute * 60 + time.second) * 1000


def test_a_worker_writes_each_topic_to_a_table_of_its_own(told):
    assert told("in_a_worker") == [
        [{"n": 100, "ids": 100, "of": "shop-orders"}], [{"n": 100, "ids": 100, "of": "shop-bills"}],
    ]  # fmt: skip


def test_spark_reads_the_logical_types_of_avro_files(told):
    kinds, rows = told("files_of_avro")
    assert kinds["at"] == kinds["maybe"] == "timestamp" and kinds["day"] == "date" and kinds["each"] == "array<timestamp>"
    assert rows == list(wanted("Avro"))
