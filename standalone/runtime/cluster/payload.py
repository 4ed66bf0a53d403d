"""What an executor is told of a task: this, and the archive of modules, is all that is sent there.

    payload = TaskPayload.of(plan, number, task_config, ...)   in the worker
    payload.for_job(1, paused=False, channel={...})            the dict that Spark pickles
    TaskPayload(**that)                                        on the executor
"""

import dataclasses
import secrets
import socket

from standalone.runtime.cluster.options import secret_texts
from standalone.runtime.configuration.plugin_options import secret_keys
from standalone.runtime.configuration.registry_keys import with_address
from standalone.runtime.configuration.worker_config import converter_props

OWN_REGISTRY = "embedded"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_STAYS_HERE = ("config.providers", "spark.", "listeners", "admin.listeners", "rest.", "embedded.log.", "embedded.registry.file", "plugin.path")


@dataclasses.dataclass(frozen=True)
class TaskPayload:
    connector: dict  # the connector's configuration, with the values of config providers
    task: dict  # the task's, as task_configs() made it
    number: int  # of the task
    hidden: list  # values that no log may show
    worker: dict  # the worker's configuration, but for what only a worker uses
    uuid: str  # of the worker: by it its clients are known to the log after a restart
    host: str  # machine of the worker
    plugins: list  # plugin.path, as folders within the archive of modules
    bootstrap: dict  # {security protocol: client settings of the log}; "" for clients that name none
    registry: str | None  # address of the worker's own schema registry, where a converter asks there
    first_schemas: dict  # of a sink: {topic: schema} that schema.drift compares with
    graceful_seconds: float  # to stop within
    run: str  # which runner of the worker this task belongs to
    # ---- of each job that runs it
    job: int = 0  # counted by the runner
    paused: bool = False  # whether it begins paused
    address: tuple | None = None  # (host, port) of the control channel
    key: bytes | None = None  # of the control channel

    @classmethod
    def of(cls, plan, number, task_config, *, worker, state, plugins):
        """`worker` is the Worker, `state` its State."""
        settings = worker.log_settings
        return cls(
            connector=dict(plan.originals), task=dict(task_config), number=number, hidden=[plan.originals[key] for key in plan.references],
            worker=_worker_texts(worker.config), uuid=state.worker_uuid(), host=socket.gethostname(), plugins=list(plugins),
            bootstrap={"": settings({}), **{name: settings({"security.protocol": name}) for name in PROTOCOLS}},
            registry=_registry_url(plan, worker), first_schemas=state.first_schemas(plan["name"]) if plan.kind == "sink" else {},
            graceful_seconds=worker.graceful_seconds, run=secrets.token_hex(8),
        )  # fmt: skip

    def for_job(self, job, paused, channel):
        """`channel`: {"address", "key"} of the control channel."""
        return {**vars(self), "job": job, "paused": paused, **channel}


def secrets_within(plan, worker):
    """The keys of all that a payload of that ConnectorConfig would hold and nobody may read on the way."""
    own = {key for key in secret_keys(plan) if plan.originals.get(key)} | set(plan.references)
    return own | secret_texts(_worker_texts(worker.config)) | secret_texts(worker.log_settings({}))


def _worker_texts(config):
    texts = {key: value for key, value in config.originals.items() if not key.startswith(_STAYS_HERE)}
    return {**texts, "embedded.log.listener": config["embedded.log.listener"]}


def _registry_url(plan, worker):
    """It is started where a converter may ask there."""
    for part in ("key", "value", "header"):
        key = f"{part}.converter"
        own = plan.originals.get(key) is not None
        props = converter_props(key, plan.originals if own else worker.config.originals)
        if with_address(props, plan[key] if own else worker.config[key], lambda: OWN_REGISTRY) != props:
            return worker.schemas.embedded_url()
    return None
