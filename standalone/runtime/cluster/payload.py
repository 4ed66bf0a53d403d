"""The description of a task for an executor: only this and the archive of modules are sent.

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
    connector: dict  # the connector's configuration, with resolved config values
    task: dict  # the task's configuration, from task_configs()
    number: int  # of the task
    hidden: list  # secret values that must not be logged
    worker: dict  # the worker's configuration, without keys that only a worker uses
    uuid: str  # the worker's, which makes member ids stable across restarts
    host: str  # host name of the worker
    plugins: list  # plugin.path, as folders within the archive of modules
    bootstrap: dict  # {security protocol: client settings of the log}; "" for clients that name none
    registry: str | None  # URL of the worker's own schema registry, if a converter uses it
    first_schemas: dict  # of a sink: {topic: schema} the reference for schema.drift
    graceful_seconds: float  # timeout for a graceful stop
    run: str  # id of the task's runner in the worker
    # ---- set per job
    job: int = 0  # number of the job, counted by the runner
    paused: bool = False  # whether it starts paused
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
    """The secret keys in a payload of that ConnectorConfig, which must not be readable on the way."""
    own = {key for key in secret_keys(plan) if plan.originals.get(key)} | set(plan.references)
    return own | secret_texts(_worker_texts(worker.config)) | secret_texts(worker.log_settings({}))


def _worker_texts(config):
    texts = {key: value for key, value in config.originals.items() if not key.startswith(_STAYS_HERE)}
    return {**texts, "embedded.log.listener": config["embedded.log.listener"]}


def _registry_url(plan, worker):
    """The URL of the worker's own registry, which is started if a converter may use it."""
    for part in ("key", "value", "header"):
        key = f"{part}.converter"
        own = plan.originals.get(key) is not None
        props = converter_props(key, plan.originals if own else worker.config.originals)
        if with_address(props, plan[key] if own else worker.config[key], lambda: OWN_REGISTRY) != props:
            return worker.schemas.embedded_url()
    return None
