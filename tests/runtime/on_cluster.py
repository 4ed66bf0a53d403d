"""A worker whose tasks run on a real Spark cluster, as scripts/soak/cluster_kill.py has it."""

import contextlib
import importlib.util
import pathlib

from tests.suite.shared import shared_server


def soak():
    path = pathlib.Path(__file__).parents[2] / "scripts" / "soak" / "cluster_kill.py"
    spec = importlib.util.spec_from_file_location("cluster_kill", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def running(tmp_path_factory, cluster, *sizes, **more):
    """The soak's Run of these sizes, on that SparkCluster: a worker with a source and a sink."""
    with shared_server(tmp_path_factory, cluster) as told:
        with soak().Run(tmp_path_factory.mktemp("cluster"), told["master"], *sizes, **more) as run:
            yield run
