"""Options of a stream: a worker's keys, given singly or as a file (`config`), and the clients built from them.

    config=FILE             a worker's properties file: its keys apply, but do not appear in Spark's plans and logs
    bootstrap.servers, key.converter, value.converter, consumer.*, producer.*, admin.*, config.providers.*
                            as in a worker's file; they override those of `config`

Options are visible in Spark's plans, so keys that hold a secret are rejected: put them into the file, or use a config provider.
"""

import functools

from standalone import properties
from standalone.clock import SYSTEM
from standalone.errors import ConfigError
from standalone.log.client import Clusters
from standalone.runtime.configuration.worker_config import WorkerConfig, converter_props
from standalone.runtime.log_clients import LogClients

FILE = "config"
_DEFAULTS = {
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "offset.storage.file.filename": "unused",
}
_SECRET = ("password", "secret", "jaas", "credentials", "user.info", "ssl.keystore.key", "token", "bearer")
_EMBEDDED = "embedded"


class Settings:
    """Settings of one stream in one process. `config` is a WorkerConfig."""

    def __init__(self, props):
        self.config = WorkerConfig.of({**_DEFAULTS, **props})
        if self.config.embedded:
            raise ConfigError.of(
                {"bootstrap.servers": "is missing: set the address of Kafka, or of a running worker's embedded log (embedded.log.listener)"}
            )
        bootstrap = self.config.bootstrap()
        self.clients = LogClients(self.config, _clusters(), SYSTEM, lambda properties: {"bootstrap.servers": bootstrap})

    def converter(self, part):
        """Return the configured converter of "key" or "value"."""
        key = f"{part}.converter"
        return self.config[key].of(converter_props(key, self.config.originals), is_key=part == "key")


def settings_of(options):
    """Return the Settings of a stream's options, cached per process."""
    return _made(tuple(sorted(options.items())))


@functools.lru_cache(maxsize=32)
def _made(options):
    given = dict(options)
    path = given.pop(FILE, None)
    check_options(given)
    return Settings({**(properties.load(path) if path else {}), **{key: value for key, value in given.items() if _is_worker_key(key)}})


def check_options(options):
    """Reject secrets that Spark's plans would show. Raise ConfigError."""
    for key, value in options.items():
        if any(word in key.lower() for word in _SECRET) and value and not str(value).startswith("${"):
            raise ConfigError.of(
                {key: f"is a secret, and options are shown in Spark's plans: put it into a worker's file and set '{FILE}' to the path of that file"}
            )


@functools.cache
def _clusters():
    return Clusters(SYSTEM)


_WORKER_PREFIXES = ("consumer.", "producer.", "admin.", "config.providers", "key.converter", "value.converter", "security.", "sasl.", "ssl.")


def _is_worker_key(key):
    return key in ("bootstrap.servers", "plugin.path") or key.startswith(_WORKER_PREFIXES)
