"""Launches Spark's Java process before the worker's modules are imported, where the properties alone show that a chain computes.

Importing takes the worker a second or two, on one core; Java starts on another one meanwhile.
"""

from standalone import properties
from standalone.errors import ConnectError
from standalone.pipeline.spark.session import SessionHolder, is_cluster

# Transforms that compute whatever their other keys say. A test holds this list to Transform.computes().
COMPUTING = frozenset({"Cast", "Sql", "TimestampConverter"})
_START, _ENGINE = "spark.start", "pipeline.engine"


def launch(worker, connector_files):
    """Return a SessionHolder whose Java process is starting, or None. `worker`: the worker's properties."""
    mode = worker.get(_START, "auto")
    if mode == "lazy" or not _is_plain(worker):
        return None
    if mode != "eager" and not any(_computes(worker, config) for config in _configs(connector_files)):
        return None
    holder = SessionHolder(settings(worker))
    try:
        holder.launch()
    except ConnectError:  # the first request reports it
        holder.stop(0)
        return None
    return holder


def settings(worker):
    """The Spark settings among the worker's properties."""
    return {key: value for key, value in worker.items() if key.startswith("spark.") and key != _START}


def _is_plain(worker):
    """Whether the settings are known already: a config provider's value is not, and a cluster's session also needs our modules."""
    known = {key: value for key, value in worker.items() if key.startswith("spark.") or key == "tasks.run.on"}
    on_cluster = known.get("tasks.run.on") == "cluster" or is_cluster(known.get("spark.master", "local"))
    return not on_cluster and not any("${" in value for value in known.values())


def _configs(files):
    """The configurations of connectors that will run. An unreadable file is reported when its connector is created."""
    for path in files:
        if not str(path).lower().endswith(".sql"):
            try:
                found = properties.load_connector(path, warn=False)
            except (ConnectError, OSError):
                return
            if found.initial_state in (None, "RUNNING"):
                yield found.config


def _computes(worker, config):
    if (config.get(_ENGINE) or worker.get(_ENGINE)) == "rows":
        return False
    aliases = [alias.strip() for alias in (config.get("transforms") or "").split(",")]
    return any(_simple_name(config.get(f"transforms.{alias}.type") or "") in COMPUTING for alias in aliases)


def _simple_name(class_name):
    """Cast of org.apache.kafka.connect.transforms.Cast$Value."""
    return class_name.strip().rpartition(".")[2].partition("$")[0]
