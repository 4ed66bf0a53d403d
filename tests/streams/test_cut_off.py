"""A worker that ends in the middle of a statement: what it left is fixed when the next one starts."""

import concurrent.futures
import os

import pytest

from standalone.streams.sql.catalog import Catalog, Source
from standalone.testing import LocalWorker

COLUMNS = (("k", "STRING", True), ("n", "INT", False))
QUERY = "CSAS_COPY_1"


def _catalog(tmp_path):
    folder = tmp_path / "connect.offsets.state" / "queries"
    os.makedirs(folder, exist_ok=True)
    return Catalog(str(folder))


def _source(**more):
    return Source("STREAM", "copy", "copy", COLUMNS, "KAFKA", "JSON", statement="CREATE STREAM copy AS …", **more)


def test_a_stream_whose_query_was_not_stored_is_made_anew(tmp_path):
    _catalog(tmp_path).put(_source(query=QUERY))
    with LocalWorker(tmp_path) as worker:
        engine = worker.process.worker.streaming.get()
        assert engine.catalog.get("copy") is None  # the statement may be given again
        assert engine.queries.names() == []


def test_a_stream_outlives_a_terminate_that_was_cut_off(tmp_path, monkeypatch):
    _catalog(tmp_path).put(_source(query=QUERY))
    config = {"connector.class": "standalone.streams.query.QueryConnector", "statement": "CREATE STREAM copy AS SELECT k FROM none", "into": "copy"}
    with LocalWorker(tmp_path) as worker:
        engine = worker.process.worker.streaming.get()
        engine.catalog.put(_source(query=QUERY))
        engine.queries.create(QUERY, {**config, "name": QUERY}, wait=False)
        monkeypatch.setattr("standalone.streams.engine.forget_state", _killed)
        with pytest.raises(KeyboardInterrupt):
            engine.execute(f"TERMINATE {QUERY};")
    with LocalWorker(tmp_path) as worker:
        engine = worker.process.worker.streaming.get()
        assert engine.catalog.get("copy").query is None
        assert engine.queries.names() == []


def _killed(folder):
    raise KeyboardInterrupt  # as far as a statement can tell, the worker is gone


def test_queries_of_one_stream_start_at_the_same_moment(tmp_path):
    with LocalWorker(tmp_path) as worker:
        place = worker.process.worker.streaming.get().place
        for _ in range(100):
            place.clear()
            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                made = list(threads.map(lambda _: place.options(_source())["config"], range(8)))
            assert len(set(made)) == 1 and os.listdir(os.path.dirname(made[0])) == [os.path.basename(made[0])]
