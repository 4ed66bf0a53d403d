"""A Spark cluster that authenticates and encrypts: only there do tasks run whose configuration holds a secret."""

import pytest

from standalone.runtime.cluster.options import PROTECTIONS
from tests.runtime.on_cluster import running
from tests.servers.spark_cluster import SparkCluster
from tests.suite.patience import PATIENCE_SECONDS

TASKS, COUNT, RATE = 2, 1000, 500
SECRET = "what-the-cluster-and-its-worker-know"
PROTECTED = {**dict.fromkeys(PROTECTIONS, "true"), "spark.authenticate.secret": SECRET}
PROVIDERS = {"config.providers": "file", "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider"}

pytestmark = [pytest.mark.spark, pytest.mark.last, pytest.mark.night]


@pytest.fixture
def held(tmp_path):
    """Keys whose values a config provider knows, which makes them secrets."""
    (tmp_path / "held.properties").write_text(f"rate={RATE}\nclass=numbered:KeptSink\n")
    value = f"${{file:{tmp_path / 'held.properties'}:%s}}"
    return {"source": {"rate": value % "rate"}, "sink": {"noted": value % "class"}}


def _with_secrets(tmp_path_factory, held, settings):
    return running(tmp_path_factory, SparkCluster(secret=SECRET), TASKS, COUNT, RATE, **held, **PROVIDERS, **settings)


def test_tasks_with_secrets_run_on_a_cluster_that_is_secured(tmp_path_factory, held):
    with _with_secrets(tmp_path_factory, held, PROTECTED) as run:
        run.wait_for(lambda: run.all_are("RUNNING"), "all tasks run", 5 * PATIENCE_SECONDS)
        run.wait_for(run.is_through, "all is committed")
        found = run.judge([])
        assert (found.pop("records"), set(found.values())) == (TASKS * COUNT, {0}), found


@pytest.mark.parametrize("missing", PROTECTIONS)
def test_tasks_with_secrets_are_refused_where_a_protection_is_missing(tmp_path_factory, held, missing):
    with _with_secrets(tmp_path_factory, held, {**PROTECTED, missing: "false"}) as run:
        run.wait_for(lambda: run.all_are("FAILED"), "all tasks are refused")
        for name, task in run.tasks_of():
            key = "rate" if name == run.source else "noted"
            assert f"would send the values of {key} to executors unencrypted: set {missing}=true in worker.properties" in task["trace"]
        assert not list(run.out.iterdir())
