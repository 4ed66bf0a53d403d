"""One worker with its log, and one Spark session, for all tests of streams."""

import uuid

import pytest

from standalone.testing import LocalWorker
from tests.streams.on_worker import Sql

JSON = "org.apache.kafka.connect.json.JsonConverter"


class Shared:
    """The run's session: it outlives the worker."""

    def __init__(self, holder):
        self._holder = holder

    def __getattr__(self, name):
        return getattr(self._holder, name)

    def stop(self, patience=None):
        """Others use it."""


@pytest.fixture(autouse=True)
def current_session(request):
    """A stream is started in the session that is current: that of `spark` here, and after each test the one that others find."""
    if "spark" in request.fixturenames:
        _make_current(request.getfixturevalue("spark"))
    yield
    if "spark_holder" in request.fixturenames and (session := request.getfixturevalue("spark_holder").ready()) is not None:
        _make_current(session)


def _make_current(session):
    from standalone.streams.frames import make_current

    make_current(session)


@pytest.fixture(scope="session")
def start_worker(spark_holder):
    def start(folder, **props):
        return _Worker(spark_holder, folder, **props)

    return start


class _Worker(LocalWorker):
    def __init__(self, holder, folder, **props):
        super().__init__(folder, **props)
        self._holder = holder

    def _opened(self):
        self.process.worker._session = Shared(self._holder)


@pytest.fixture(scope="session")
def worker(tmp_path_factory, start_worker):
    with start_worker(tmp_path_factory.mktemp("streams")) as worker:
        yield worker


@pytest.fixture(scope="session")
def spark(spark_holder):
    from standalone.streams.source import ConnectDataSource

    session = spark_holder.wait(120).newSession()
    session.dataSource.register(ConnectDataSource)
    return session


@pytest.fixture
def options(worker):
    """Options of the data source for the worker's log: keys are strings, values plain JSON."""
    return {
        "bootstrap.servers": worker.bootstrap,
        "key.converter": "StringConverter",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }


@pytest.fixture
def topic():
    return f"t_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def sql(worker):
    sql = Sql(worker)
    yield sql
    sql.clear()
