"""The worker's keys for tasks on a cluster, and the Spark settings required before secrets are sent there."""

import re

from standalone.config import INT, LOW, MEDIUM, STRING, Option, between, one_of
from standalone.errors import ConfigError
from standalone.pipeline.spark.executors import ARCHIVE
from standalone.pipeline.spark.session import is_cluster

HERE, CLUSTER = "worker", "cluster"
RUN_ON, CONTROL_PORT = "tasks.run.on", "tasks.control.port"
# Modules common to all tasks, imported by an executor's Python daemon; a connector's own modules are imported by its tasks.
PRELOADED = (
    "pyspark.worker", "standalone.public", "standalone.runtime.cluster.executor_task", "standalone.converters.json",
    "standalone.converters.string", "standalone.converters.simple_header",
)  # fmt: skip

OPTIONS = (
    Option(
        RUN_ON, STRING, MEDIUM,
        "Where connectors' tasks run: in the `worker`, or on the executors of the `cluster` of spark.master (spark://…, yarn, k8s://… or "
        "local-cluster[…]), each as one Spark task that occupies a core while it runs. A connector's own tasks.run.on overrides it.",
        default=HERE, check=one_of(HERE, CLUSTER),
    ),
    Option(
        CONTROL_PORT, INT, LOW,
        "Port at spark.driver.host for the control channels of tasks on a cluster; 0: any free port.",
        default=0, check=between(0, 65535),
    ),
)  # fmt: skip

_SECRET_NAME = re.compile(r"password|secret|jaas\.config|user\.info|token|keystore\.key$", re.IGNORECASE)
# What each of Spark's settings protects: who may join, what goes over the network, what an executor writes to its disk.
PROTECTIONS = ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled")


def runs_on_cluster(plan, config):
    """Whether the tasks of that ConnectorConfig run on a cluster. Raises ConfigError if spark.master is no cluster."""
    where = plan.originals.get(RUN_ON) or config[RUN_ON]
    if where not in (HERE, CLUSTER):
        raise ConfigError.of({RUN_ON: f"must be {HERE} or {CLUSTER}, not '{where}'"})
    if where == HERE:
        return False
    master = config.spark().get("spark.master", "local[*]")
    if not is_cluster(master):
        said = f"needs executors, and spark.master={master} has none: name a cluster in worker.properties"
        raise ConfigError.of({RUN_ON: f"{said} (spark://…, yarn, k8s://…, local-cluster[…])"})
    return True


def tasks_default_to_cluster(config):
    """Whether tasks run on a cluster unless their connector's configuration says otherwise."""
    return config[RUN_ON] == CLUSTER and is_cluster(config.spark().get("spark.master", "local[*]"))


def for_executors(conf):
    """The Spark settings for executors that run tasks: their Python daemon imports this project's modules once for all tasks."""
    path = conf.get("spark.executorEnv.PYTHONPATH")
    path = f"{ARCHIVE}:{path}" if path else ARCHIVE  # where an executor unpacks the modules, in its working folder
    return {
        "spark.python.daemon.module": "standalone.pipeline.spark.daemon", "spark.executorEnv.CONNECT_DAEMON_MODULES": ",".join(PRELOADED),
        **conf, "spark.executorEnv.PYTHONPATH": path,
    }  # fmt: skip


def check_protection(secrets, conf):
    """Raise ConfigError if a configuration with these secret keys would be sent unprotected."""
    missing = [key for key in PROTECTIONS if str(conf.get(key, "false")).lower() != "true"]
    if secrets and missing:
        said = f"would send the values of {', '.join(sorted(secrets))} to executors unencrypted: "
        said += f"set {' and '.join(f'{key}=true' for key in missing)} in worker.properties and on the cluster, or run the connector "
        said += "in the worker (tasks.run.on=worker in its own configuration)"
        raise ConfigError.of({RUN_ON: said})


def secret_texts(texts):
    """The keys of a worker's configuration that look like secrets."""
    return {key for key, value in texts.items() if value and _SECRET_NAME.search(key)}
