"""Fixtures that more than one folder uses: real servers, started when the first test asks for one."""

import importlib.util
import pathlib
import sys

import pytest

from tests.suite.shared import run_folder, shared

pytest_plugins = ["tests.suite.examples", "tests.suite.groups", "tests.suite.honest", "tests.suite.quick"]

SERVERS = pathlib.Path(__file__).parent / "servers"


def pytest_collection_finish(session):
    """Tests of kernels are of their machine code: what was edited since it was compiled would run as Python."""
    if "standalone.kernels" in sys.modules and not session.config.option.collectonly:
        from standalone.warm_up import compile_all

        failed = compile_all()
        assert not failed, failed


@pytest.fixture(scope="session")
def load_server():
    """load_server(name): a module of tests/servers, which is on no path."""
    return _load_server


def _load_server(name):
    spec = importlib.util.spec_from_file_location(f"servers_{name}", SERVERS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def give_up():
    """give_up(reason): skip; where servers are required, tests/suite/honest.py makes a failure of that as of every other skip."""
    return _give_up


def _give_up(reason):
    pytest.skip(reason)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """The address of a real Kafka broker that every test shares: make topics of your own, and leave it running."""
    servers = _load_server("kafka_broker")
    try:
        with shared(run_folder(tmp_path_factory), "kafka", lambda: servers.KafkaBroker().start().handed_over()) as broker:
            yield broker["bootstrap"]
    except servers.Unavailable as reason:
        _give_up(f"no Kafka broker: {reason}")


@pytest.fixture
def outage_broker(_outage_broker):
    """A KafkaBroker to kill, freeze and restart; where a test left it dead or frozen, the next one finds it running and ready."""
    if _outage_broker.runs:
        _outage_broker.thaw()
    else:
        _outage_broker.restart()
    _outage_broker.wait_until_it_answers()
    return _outage_broker


@pytest.fixture(scope="session")
def _outage_broker():
    servers = _load_server("kafka_broker")
    broker = servers.KafkaBroker()
    try:
        broker.start()
    except servers.Unavailable as reason:
        _give_up(f"no Kafka broker: {reason}")
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def spark_holder():
    """One Spark session for the whole run: a process holds no second one."""
    from standalone.pipeline.spark.session import SessionHolder

    # The compiler that optimises hardest costs more than it gives back where each plan runs once.
    options = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    holder = SessionHolder(options, archive_after_seconds=None)
    holder.request()
    if holder.wait(120) is None:
        _give_up(f"no Spark session: {holder.failure}")
    yield holder
    holder.stop()


@pytest.fixture(scope="session")
def forks():
    """Starts workers as processes without the second that their imports take: tests/forked.py."""
    from tests.forked import Forks

    with Forks() as forks:
        yield forks


@pytest.fixture(autouse=True)
def own_secrets():
    """What a test has hidden is hidden for that test alone: the table is one for the process, and another's answers would be masked."""
    from standalone import secrets

    before, pattern = set(secrets._hidden), secrets._pattern
    yield
    with secrets._lock:
        secrets._hidden.clear()
        secrets._hidden.update(before)
        secrets._pattern = pattern
