"""Two brokers for one body of tests: what our client does on a real Kafka it does on the embedded log, with the same expectations.

A test that asks for `broker` (itself, or by way of a fixture) runs on both. Where one of them cannot serve yet, it is marked, and the day
that it can the mark fails:

    @pytest.mark.differs("embedded", reason="…", raises=AssertionError)

Share groups are checked on Kafka at night: our sinks do not use them, so only the embedded log can change.
"""

import subprocess

import pytest

from tests.servers import kafka_broker
from tests.servers.server import java as java_command
from tests.suite.shared import skipped_where_unavailable

KAFKA_BY_NIGHT = ("test_share_groups.py", "test_share_tools.py")
BROKERS = [pytest.param("embedded", id="embedded"), pytest.param("kafka", id="kafka", marks=pytest.mark.kafka)]


@pytest.hookimpl(tryfirst=True)  # before tests of the night are left out
def pytest_collection_modifyitems(items):
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if params.get("broker") == "kafka" and item.path.name in KAFKA_BY_NIGHT:
            item.add_marker(pytest.mark.night)
        for mark in item.iter_markers("differs"):
            if params.get("broker") in mark.args:
                item.add_marker(pytest.mark.xfail(strict=True, **mark.kwargs))


@pytest.fixture(scope="session", params=BROKERS)
def broker(request):
    """The address of a broker: the embedded log's, then a real Kafka's. Tests share it: make topics and groups of your own."""
    return request.getfixturevalue("kafka" if request.param == "kafka" else "embedded_log")


@pytest.fixture
def log(tmp_path):
    """An embedded log of the test's own."""
    from standalone.log.broker.server import EmbeddedLog

    log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0")
    log.start()
    yield log
    log.stop()


@pytest.fixture(scope="session")
def embedded_log(tmp_path_factory):
    """The address of an embedded log for all tests of this process. It keeps records of any time, as the real Kafka of the tests does."""
    from standalone.log.broker.server import EmbeddedLog

    log = EmbeddedLog(tmp_path_factory.mktemp("embedded-log"), "127.0.0.1:0", {"embedded.log.retention.ms": "-1"})
    log.start()
    yield log.bootstrap
    log.stop()


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    """Runs a main class with Kafka's jars, and returns what it wrote."""
    with skipped_where_unavailable():
        program, jars = java_command(), kafka_broker.kafka_jars()
        options = [*kafka_broker.JAVA_OPTIONS, *kafka_broker.archive(jars)]
    quiet = tmp_path_factory.mktemp("java") / "log4j2.xml"
    quiet.write_text("<Configuration status='off'><Loggers><Root level='off'/></Loggers></Configuration>")

    def run(main, *arguments, stdin=""):
        command = [program, *options, f"-Dlog4j2.configurationFile={quiet}", "-cp", f"{jars}/*", main]
        done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
