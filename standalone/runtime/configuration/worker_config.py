"""The worker's configuration: its keys (worker_keys.py), parsed and validated, and the clients and converters that they configure."""

import os

from standalone.config import LIST, Config, message_of, parse_type, with_prefix
from standalone.errors import ConfigError
from standalone.log.client_config import AdminConfig
from standalone.plugins import Plugins
from standalone.runtime.configuration import exactly_once, unread_keys
from standalone.runtime.configuration.config_values import Providers
from standalone.runtime.configuration.registry_keys import missing_url
from standalone.runtime.configuration.worker_keys import CONVERTERS, EMBEDDED, WORKER, policy_of
from standalone.secrets import mask

CLIENT_KINDS = ("producer", "consumer", "admin")
_MAX_INT, _MAX_LONG = (1 << 31) - 1, (1 << 63) - 1
_PRINCIPAL = ("security.protocol", "sasl.jaas.config", "sasl.mechanism")

# Prefixes of keys for other components, and Java's keys that are not keys of the worker itself.
_KNOWN_PREFIXES = (
    *(f"{kind}." for kind in CLIENT_KINDS),
    *(f"{key}." for key in CONVERTERS),
    *("config.providers.", "spark.", "listeners.https.", "admin.listeners.https.", "metrics.context.", "sasl.", "ssl.", "security."),
)
_KNOWN_KEYS = ("connector.client.config.override.allowlist", *AdminConfig.KEYS)
_DISTRIBUTED = ("scheduled.rebalance.max.delay.ms", "worker.sync.timeout.ms")
_DISTRIBUTED_PREFIXES = ("config.storage.", "status.storage.", "offset.storage.", "inter.worker.", "connect.protocol")
_RETIRED = tuple(f"internal.{part}.converter" for part in ("key", "value"))


class WorkerConfig(Config):
    """The parsed keys; `warnings` are sentences about deprecated, unknown or incomplete settings; `plugins` comes from plugin.path,
    `providers` from config.providers.*."""

    def __init__(self, values, originals, plugins, providers, warnings):
        super().__init__(values, originals)
        self.plugins = plugins
        self.providers = providers
        self.warnings = warnings
        self.asks_who_calls = False  # set by the REST server once its extensions are loaded
        self.embedded_registry = lambda: EMBEDDED  # the URL of the worker's own schema registry; set by the worker

    @classmethod
    def of(cls, props, plugins=None):
        """Parse a properties file's strings. Raises one ConfigError with every wrong key."""
        props, warnings = _modernized(props)
        plugins = plugins or Plugins(parse_type("plugin.path", props.get("plugin.path"), LIST) or ())
        providers = Providers.of(props, plugins)
        try:
            return cls._of_resolved(providers.resolve(props).texts, plugins, providers, warnings)
        except BaseException:
            providers.close()
            raise

    @classmethod
    def _of_resolved(cls, props, plugins, providers, warnings):
        finder = plugins.class_finder(CONVERTERS.get)
        values, errors = {}, {}
        try:
            values = WORKER.parse(props, finder)
        except ConfigError as error:
            errors.update(error.errors)
        for key in CONVERTERS:
            errors.update(converter_errors(key, props, values.get(key)))
            errors.update(missing_url(key, props, values.get(key), values.get("bootstrap.servers") == [EMBEDDED]))
        if errors:
            raise ConfigError.of({key: mask(message) for key, message in errors.items()})
        warnings += providers.warnings + _doubts(props)
        warnings += [said for key in CONVERTERS for said in unread_keys.of_converter(key, props, values[key])]
        return cls(dict(values), props, plugins, providers, warnings)

    @property
    def state_dir(self):
        return self["state.dir"] or self["offset.storage.file.filename"] + ".state"

    @property
    def hides_secrets(self):
        """Whether responses hide passwords. They are shown, as in Java, if callers are authenticated."""
        said = self["rest.hide.secrets"]
        return not self.asks_who_calls if said is None else said

    @property
    def exactly_once(self):
        """Whether sources write in transactions."""
        return self["exactly.once.source.support"].lower() == "enabled"

    @property
    def embedded(self):
        """Whether the worker runs the embedded log."""
        return self["bootstrap.servers"] == [EMBEDDED]

    def bootstrap(self):
        """The bootstrap.servers of clients."""
        return self["embedded.log.listener"] if self.embedded else ",".join(self["bootstrap.servers"])

    def log_dir(self):
        """The folder of the embedded log's files."""
        return self["embedded.log.dir"] or os.path.join(self.state_dir, "log")

    def spark(self):
        """The settings of the Spark session: every `spark.*` key, except this project's own."""
        return {key: value for key, value in self.originals.items() if key.startswith("spark.") and key not in WORKER}

    def client(self, kind, connector=None):
        """Java-named properties of a producer, consumer or admin client: Connect's own defaults, then the worker's `producer.` (…),
        then `producer.override.` (…) of a connector's configuration. An admin client also gets the worker's keys without a prefix, as in Connect;
        producers and consumers never do."""
        connector = connector or {}
        props = {"bootstrap.servers": self.bootstrap()}
        if kind == "producer":
            props.update({"acks": "all", "max.block.ms": str(_MAX_LONG), "delivery.timeout.ms": str(_MAX_INT)})
        elif kind == "consumer":
            props.update({"auto.offset.reset": "earliest", "enable.auto.commit": "false"})
            if connector.get("name"):
                props["group.id"] = f"connect-{connector['name']}"
        else:
            props.update({key: value for key, value in self.originals.items() if _is_admins(key)})
        return {**props, **self.with_prefix(f"{kind}."), **with_prefix(connector, f"{kind}.override.")}

    def refused_overrides(self, connector):
        """{key: message} of a connector's overrides that connector.client.config.override.policy does not allow."""
        rule = policy_of(self["connector.client.config.override.policy"])
        if rule == "All":
            return {}
        allowed = {"None": (), "Principal": _PRINCIPAL}.get(rule)
        if allowed is None:
            key = "connector.client.config.override.allowlist"
            allowed = parse_type(key, self.originals.get(key, ""), LIST)
        said = f"may not be overridden: the worker's connector.client.config.override.policy is {rule}"
        said += f", which allows {', '.join(allowed)}" if allowed else ""
        found = [(key, f"{kind}.override.") for kind in CLIENT_KINDS for key in connector if key.startswith(f"{kind}.override.")]
        return {key: said for key, prefix in found if key[len(prefix) :] not in allowed}


def converter_errors(key, props, converter):
    """Errors in a converter's own keys, `key.converter.*`; none if the converter is unknown."""
    if converter is None or converter.config_def is None:
        return {}
    try:
        converter.config_def.parse(converter_props(key, props))
    except ConfigError as error:
        return {f"{key}.{name}": message_of(error, name) for name in error.errors}
    return {}


def converter_props(key, props):
    """The configuration of a converter."""
    return {**with_prefix(props, f"{key}."), "converter.type": key.partition(".")[0]}


def _is_admins(key):
    return (key in AdminConfig.KEYS or key.startswith(("ssl.", "sasl.", "security."))) and key != "bootstrap.servers"


def _modernized(props):
    """Translate deprecated keys: (strings, warnings)."""
    props, warnings = dict(props), []
    host, port = props.pop("rest.host.name", None), props.pop("rest.port", None)
    if (host or port) and "listeners" not in props:
        props["listeners"] = f"http://{host or ''}:{port or 8083}"
        warnings.append(f"rest.host.name and rest.port are deprecated: set listeners={props['listeners']} instead.")
    elif host or port:
        warnings.append("rest.host.name and rest.port are deprecated and have no effect if listeners is set.")
    for key in list(props):
        if key.startswith(_RETIRED):
            del props[key]
            warnings.append(f"{key} is deprecated and has no effect: internal data is always JSON.")
    return props, warnings


def _doubts(props):
    """Warnings about keys without effect, and about security settings that do not apply to all clients."""
    warnings = []
    for key, close in WORKER.unknown(props, known=(*_KNOWN_PREFIXES, *_KNOWN_KEYS)).items():
        if key in _DISTRIBUTED or key.startswith(_DISTRIBUTED_PREFIXES):
            warnings.append(f"{key} is a key of Connect's distributed mode and has no effect in a standalone worker.")
        else:
            warnings.append(f"{key} is not a key of the worker and has no effect." + (f" Did you mean {close}?" if close else ""))
    if props.get(exactly_once.SUPPORT, "").strip().lower() != "enabled":
        for key in exactly_once.OPTIONS.names():
            if key in props and key != exactly_once.SUPPORT:
                warnings.append(f"{key} is a key of Connect's distributed mode; here it has an effect only with {exactly_once.SUPPORT}=enabled.")
    if props.get("security.protocol", "PLAINTEXT").strip().upper() != "PLAINTEXT":
        bare = [kind for kind in ("producer", "consumer") if f"{kind}.security.protocol" not in props]
        if bare:
            keys = " and ".join(f"{kind}.security.protocol" for kind in bare)
            warnings.append(
                f"security.protocol is set, but {keys} not. As in Kafka Connect, keys without a prefix do not apply to the clients of "
                "connectors: repeat them with the prefixes producer. and consumer."
            )
    return warnings
