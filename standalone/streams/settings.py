"""What the options of a stream mean: a worker's keys, given one by one or as a file (`config`), and the clients that come of them.

    config=FILE             a worker's properties file: its keys serve, and stay out of Spark's plans and logs
    bootstrap.servers, key.converter, value.converter, consumer.*, producer.*, admin.*, config.providers.*
                            as in a worker's file; they go before those of `config`

Options travel in Spark's plans, so a key that holds a secret is refused there: it belongs into the file, or into a provider's reference.
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
    """Of one stream, in one process. `config` is a WorkerConfig."""

    def __init__(self, props):
        self.config = WorkerConfig.of({**_DEFAULTS, **props})
        if self.config.embedded:
            raise ConfigError.of(
                {"bootstrap.servers": "is missing: give the address of a Kafka, or that of a running worker's embedded log (embedded.log.listener)"}
            )
        bootstrap = self.config.bootstrap()
        self.clients = LogClients(self.config, _clusters(), SYSTEM, lambda properties: {"bootstrap.servers": bootstrap})

    def converter(self, part):
        """The converter of "key" or "value", configured."""
        key = f"{part}.converter"
        return self.config[key].of(converter_props(key, self.config.originals), is_key=part == "key")


def settings_of(options):
    """The Settings of a stream's options; those of equal options are made once a process."""
    return _made(tuple(sorted(options.items())))


@functools.lru_cache(maxsize=32)
def _made(options):
    given = dict(options)
    path = given.pop(FILE, None)
    check_options(given)
    return Settings({**(properties.load(path) if path else {}), **{key: value for key, value in given.items() if _is_worker_s(key)}})


def check_options(options):
    """Refuse a secret that Spark's plans would show. Raises ConfigError."""
    for key, value in options.items():
        if any(word in key.lower() for word in _SECRET) and value and not str(value).startswith("${"):
            raise ConfigError.of(
                {key: f"is a secret, and options are shown in Spark's plans: put it into a worker's file and give that file's path as '{FILE}'"}
            )


@functools.cache
def _clusters():
    return Clusters(SYSTEM)


_WORKER_PREFIXES = ("consumer.", "producer.", "admin.", "config.providers", "key.converter", "value.converter", "security.", "sasl.", "ssl.")


def _is_worker_s(key):
    return key in ("bootstrap.servers", "plugin.path") or key.startswith(_WORKER_PREFIXES)
