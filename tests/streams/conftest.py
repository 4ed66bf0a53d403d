"""One worker with its log, and one Spark session, for all tests of streams."""

import pytest

from standalone.testing import LocalWorker

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="session")
def worker(tmp_path_factory, spark_holder):
    with LocalWorker(tmp_path_factory.mktemp("streams"), state__dir=str(tmp_path_factory.mktemp("streams-state"))) as worker:
        yield worker


@pytest.fixture(scope="session")
def spark(spark_holder):
    from standalone.streams.source import ConnectDataSource

    session = spark_holder.wait(120).newSession()
    session.dataSource.register(ConnectDataSource)
    return session


@pytest.fixture
def options(worker):
    """Options of the data source for the worker's log: keys are texts, values plain JSON."""
    return {
        "bootstrap.servers": worker.bootstrap,
        "key.converter": "StringConverter",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }
