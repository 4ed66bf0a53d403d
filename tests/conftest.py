"""Fixtures that more than one folder uses: real servers, started when the first test asks for one."""

import signal
import sys

import pytest

import tests.suite.patience  # noqa: F401, before the test kit is imported
from tests.servers.kafka_broker import KafkaBroker
from tests.suite.shared import shared_server, skipped_where_unavailable

# pytest rewrites the assertions of all packages whose distribution has a plugin. The worker's threads import modules, and in Python 3.11.0 to 3.11.7
# parsing in two threads may raise SystemError (python/cpython#106905). Only the test kit needs the rewriting.
_TEST_KIT = {f"standalone.{name}" for name in ("local_worker", "pytest_plugin", "suites", "testing")}
for _finder in sys.meta_path:
    if "standalone" in getattr(_finder, "_must_rewrite", ()):
        _finder._must_rewrite ^= {"standalone", *_TEST_KIT}
        _finder._marked_for_rewrite_cache.clear()

pytest_plugins = ["tests.suite.cpu", "tests.suite.examples", "tests.suite.groups", "tests.suite.honest", "tests.suite.night", "tests.suite.quick"]


def pytest_collection_finish(session):
    """Tests of kernels are of their machine code: what was edited since it was compiled would run as Python."""
    if "standalone.kernels" in sys.modules and not session.config.option.collectonly:
        from standalone.warm_up import compile_all

        failed = compile_all()
        assert not failed, failed


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """The address of a real Kafka broker that every test shares: make your own topics, and leave it running."""
    with shared_server(tmp_path_factory, KafkaBroker()) as broker:
        yield broker["bootstrap"]


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
    with skipped_where_unavailable():
        broker = KafkaBroker().start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def spark_holder():
    """One Spark session for the whole run: a process holds no second one."""
    from standalone.pipeline.spark.session import SessionHolder

    # The compiler that optimises hardest costs more than it returns where each plan runs once.
    options = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    holder = SessionHolder(options, archive_after_seconds=None)
    holder.request()
    if holder.wait(120) is None:
        pytest.skip(f"no Spark session: {holder.failure}")
    yield holder
    holder.stop()


@pytest.fixture(scope="session")
def forks():
    """Starts workers as processes without the second that their imports take: tests/forked.py."""
    from tests.forked import Forks

    with Forks() as forks:
        yield forks


@pytest.fixture
def command(tmp_path, forks):
    """A worker's command as a process that is forked from one with all imports done: a fifth of a start's time."""
    from tests.command import Command

    command = Command(tmp_path, forks)
    yield command
    if command.process is not None:
        command.stop(signal.SIGKILL)


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
