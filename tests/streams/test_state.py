"""What a query remembers in RocksDB: counts that continue after a restart, and files of RocksDB's in its checkpoint."""

import pathlib

import pytest

from standalone.errors import ConfigError

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_counts_in_rocksdb_go_on_behind_a_restart(sql):
    sql("CREATE STREAM x_s (k STRING KEY, n INT) WITH (kafka_topic = 'x_s', value_format = 'JSON', partitions = 1);")
    sql("INSERT INTO x_s VALUES ('a', 1), ('b', 2), ('a', 3);")
    made = sql(
        "SET 'state.store' = 'rocksdb';"
        "CREATE TABLE x_c WITH (kafka_topic = 'x_c', value_format = 'KAFKA') AS SELECT k, count(*) AS c FROM x_s GROUP BY k EMIT CHANGES;"
    )
    sql.final("x_c", {b"a": (2).to_bytes(8, "big"), b"b": (1).to_bytes(8, "big")})
    state = pathlib.Path(sql.engine.folder, made["query"], "checkpoint", "state")
    assert list(state.rglob("*.changelog")) or list(state.rglob("*.zip"))
    sql.engine.queries.restart(made["query"], include_tasks=True)
    sql("INSERT INTO x_s VALUES ('b', 4);")
    sql.final("x_c", {b"a": (2).to_bytes(8, "big"), b"b": (2).to_bytes(8, "big")})
    assert len(sql.records("x_c")) == 3  # nothing twice


def test_another_store_is_refused(sql):
    sql("CREATE STREAM x_s (k STRING KEY, n INT) WITH (kafka_topic = 'x_s', value_format = 'JSON', partitions = 1);")
    with pytest.raises(ConfigError, match="state.store"):
        sql("SET 'state.store' = 'disk'; CREATE STREAM x_c WITH (kafka_topic = 'x_c') AS SELECT k, n FROM x_s EMIT CHANGES;")
    assert sql.engine.catalog.get(sql.text("x_c")) is None
