"""Client settings by Java's property names, typed and with Java's defaults; keys without effect are listed.

`ProducerConfig.of({"linger.ms": "20"})["linger.ms"] == 20`. The table explains each default that differs from Java's.
"""

import re

from standalone.errors import ConfigError
from standalone.log import client_keys

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


def _string(text):
    return str(text).strip()


def _text(text):
    return str(text)


def _list(text):
    return [item.strip() for item in text.split(",") if item.strip()] if isinstance(text, str) else list(text)


def _boolean(text):
    known = {"true": True, "false": False}.get(str(text).strip().lower())
    if known is None:
        raise ValueError(f"'{text}' is not a boolean: write true or false")
    return known


def _number(low, high=MAX_LONG):
    def parse(text):
        try:
            value = int(str(text).strip())
        except ValueError:
            raise ValueError(f"'{text}' is not a whole number") from None
        if not low <= value <= high:
            raise ValueError(f"{value} is out of range: {low} to {high}")
        return value

    return parse


def _fraction(low, high):
    def parse(text):
        try:
            value = float(str(text).strip())
        except ValueError:
            raise ValueError(f"'{text}' is no number") from None
        if not low <= value <= high:
            raise ValueError(f"{value} is out of range: {low} to {high}")
        return value

    return parse


def _one_of(*choices, fold=str):
    def parse(text):
        value = fold(str(text).strip())
        if value not in choices:
            raise ValueError(f"'{text}' is none of {', '.join(choices)}")
        return value

    return parse


def _servers(text):
    return [parse_address(item) for item in _list(text)]


def parse_address(text):
    """Return (host, port) from `host:port`, `[::1]:port` or `PROTOCOL://host:port`."""
    host, colon, port = text.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit() or not host or not 0 < int(port) < 65536:
        raise ValueError(f"'{text}' is not an address: write host:port")
    return host.strip("[]"), int(port)


_DURATION = re.compile(r"(?i)P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d{0,9})?)S)?)?")


def offset_reset(text):
    """earliest, latest, none, or the milliseconds of by_duration:<ISO 8601 duration>: back from now."""
    text = str(text).strip()
    if not text.lower().startswith("by_duration:"):
        return _one_of("earliest", "latest", "none", fold=str.lower)(text)
    found = _DURATION.fullmatch(text.partition(":")[2])
    if found is None or not any(found.groups()):
        raise ValueError(f"'{text}' holds no valid duration: write by_duration: with days, hours, minutes and seconds, e.g. by_duration:P1DT2H30M")
    days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


ROUND_ROBIN = "round robin"
_PARTITIONERS = {
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": ROUND_ROBIN,
    # Removed in Kafka 4; the default partitioner does the same.
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": None,
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": None,
}


def _partitioner(text):
    name = str(text).strip()
    name = next((full for full in _PARTITIONERS if name in (full, full.rpartition(".")[2])), name)
    if name and name not in _PARTITIONERS:
        there = next(iter(_PARTITIONERS))
        raise ValueError(f"'{text}' is a Java class, which cannot run here. Use {there}, or remove it for the default partitioner")
    return _PARTITIONERS.get(name)


MILLISECONDS = _number(0)

CONNECTION_KEYS = {
    "bootstrap.servers": (_servers, ""),
    "client.dns.lookup": (_one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only", fold=str.lower), "use_all_dns_ips"),
    "metadata.recovery.strategy": (_one_of("rebootstrap", "none", fold=str.lower), "rebootstrap"),
    "client.id": (_text, ""),
    "request.timeout.ms": (_number(1, MAX_INT), 30_000),
    "reconnect.backoff.ms": (MILLISECONDS, 50),
    "reconnect.backoff.max.ms": (MILLISECONDS, 1_000),
    "retry.backoff.ms": (MILLISECONDS, 100),
    "retry.backoff.max.ms": (MILLISECONDS, 1_000),
    "metadata.max.age.ms": (MILLISECONDS, 300_000),
    "connections.max.idle.ms": (_number(-1), 540_000),
    "socket.connection.setup.timeout.ms": (_number(1), 10_000),
    # Java fixes 128 KiB and 32 or 64 KiB; by default Linux adapts buffers to the traffic, up to megabytes.
    "send.buffer.bytes": (_number(-1, MAX_INT), -1),
    "receive.buffer.bytes": (_number(-1, MAX_INT), -1),
    "security.protocol": (_one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", fold=str.upper), "PLAINTEXT"),
    "ssl.enabled.protocols": (_list, "TLSv1.2,TLSv1.3"),
    "ssl.protocol": (_string, "TLSv1.3"),
    "ssl.cipher.suites": (_list, ""),
    "ssl.endpoint.identification.algorithm": (_string, "https"),
    "ssl.truststore.type": (_string, "JKS"),
    "ssl.truststore.location": (_string, None),
    "ssl.truststore.password": (_text, None),
    "ssl.truststore.certificates": (_text, None),
    "ssl.keystore.type": (_string, "JKS"),
    "ssl.keystore.location": (_string, None),
    "ssl.keystore.password": (_text, None),
    "ssl.keystore.certificate.chain": (_text, None),
    "ssl.keystore.key": (_text, None),
    "ssl.key.password": (_text, None),
    "sasl.mechanism": (_string, "GSSAPI"),
    "sasl.jaas.config": (_text, None),
    "sasl.kerberos.service.name": (_string, None),
    "sasl.oauthbearer.token.endpoint.url": (_string, None),
    "sasl.oauthbearer.scope": (_string, None),
    "sasl.oauthbearer.client.credentials.client.id": (_string, None),
    "sasl.oauthbearer.client.credentials.client.secret": (_text, None),
    "sasl.oauthbearer.header.urlencode": (_boolean, "false"),
    "sasl.login.connect.timeout.ms": (_number(1), 10_000),
    "sasl.login.retry.backoff.ms": (MILLISECONDS, 100),
    "sasl.login.retry.backoff.max.ms": (MILLISECONDS, 10_000),
    "sasl.login.refresh.window.factor": (_fraction(0.5, 1.0), 0.8),
    "sasl.login.refresh.window.jitter": (_fraction(0.0, 0.25), 0.05),
    "sasl.login.refresh.min.period.seconds": (_number(0, 900), 60),
    "sasl.login.refresh.buffer.seconds": (_number(0, 3600), 300),
}
API_TIMEOUT = {"default.api.timeout.ms": (MILLISECONDS, 60_000)}

# Keys whose values never appear in errors, logs or reprs.
SECRETS = {
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "sasl.oauthbearer.client.credentials.client.secret",
}


class ClientConfig:
    """A client's values by Java's names, parsed by `KEYS`: {name: (parser, default)}."""

    KIND = "client"
    KEYS = {**CONNECTION_KEYS, **API_TIMEOUT}
    NO_EFFECT = client_keys.COMMON

    def __init__(self, values, properties):
        self._values, self._properties = values, properties
        self.given = {name for name in properties if name in self.KEYS}  # keys set explicitly
        self.ignored = sorted(name for name in properties if name not in self.KEYS)  # keys set without effect

    @classmethod
    def of(cls, properties):
        """Parse a mapping of text or typed values, or another client's config; a ConfigError lists all problems."""
        if type(properties) is cls:
            return properties
        if isinstance(properties, ClientConfig):
            properties = {name: value for name, value in properties._properties.items() if name in cls.KEYS}
        values, errors = {}, {}
        for name, (parse, default) in cls.KEYS.items():
            text = properties.get(name, default)
            try:
                values[name] = None if text is None else parse(text)
            except ValueError as problem:
                errors[name] = "this value cannot be read" if name in SECRETS else str(problem)
        if not errors:
            errors = cls.contradictions(values, {name for name in properties if name in cls.KEYS})
        if errors:
            raise ConfigError.of(errors)
        return cls(values, dict(properties))

    @classmethod
    def contradictions(cls, values, given):
        """Return {name: message} for values that conflict; may adjust values that were not set explicitly."""
        return {}

    def __getitem__(self, name):
        return self._values[name]

    def seconds(self, name):
        """Return a `.ms` value in seconds."""
        return self._values[name] / 1000

    def connection_identity(self):
        """A hashable identity, equal for two configurations that may share a `Cluster`."""
        return tuple(repr(self._values[name]) for name in CONNECTION_KEYS if name != "client.id")

    def __repr__(self):
        shown = {n: "[hidden]" if n in SECRETS else self._values[n] for n in sorted(self.given)}
        return f"{type(self).__name__}({shown})"


class AdminConfig(ClientConfig):
    KIND = "admin client"
    NO_EFFECT = {**client_keys.COMMON, **client_keys.ADMIN}


class ConsumerConfig(ClientConfig):
    KIND = "consumer"
    NO_EFFECT = {**client_keys.COMMON, **client_keys.CONSUMER}
    KEYS = {
        **CONNECTION_KEYS,
        **API_TIMEOUT,
        "group.id": (_text, None),
        "group.instance.id": (_text, None),
        "session.timeout.ms": (_number(1, MAX_INT), 45_000),
        "heartbeat.interval.ms": (_number(1, MAX_INT), 3_000),
        "max.poll.interval.ms": (_number(1, MAX_INT), 300_000),
        "max.poll.records": (_number(1, MAX_INT), 500),
        "group.protocol": (_one_of("classic", "consumer", fold=str.lower), "classic"),
        "group.remote.assignor": (lambda text: str(text).strip() or None, None),
        "partition.assignment.strategy": (_list, "org.apache.kafka.clients.consumer.RangeAssignor,"
                                                 "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"),
        "auto.offset.reset": (offset_reset, "latest"),
        "enable.auto.commit": (_boolean, "true"),
        "auto.commit.interval.ms": (MILLISECONDS, 5_000),
        "isolation.level": (_one_of("read_uncommitted", "read_committed", fold=str.lower), "read_uncommitted"),
        "check.crcs": (_boolean, "true"),
        "client.rack": (_text, ""),
        "allow.auto.create.topics": (_boolean, "true"),
        "exclude.internal.topics": (_boolean, "true"),
        "fetch.min.bytes": (_number(0, MAX_INT), 1),
        "fetch.max.bytes": (_number(0, MAX_INT), 52_428_800),
        "fetch.max.wait.ms": (_number(0, MAX_INT), 500),
        "max.partition.fetch.bytes": (_number(0, MAX_INT), 1_048_576),
    }


    @classmethod
    def contradictions(cls, values, given):
        if values["group.protocol"] == "consumer":
            said = "cannot be set with group.protocol=consumer, where the broker has its own setting for it"
            return {name: said for name in ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy") if name in given}
        if values["group.remote.assignor"]:
            return {"group.remote.assignor": "cannot be set without group.protocol=consumer"}
        return {}


class ProducerConfig(ClientConfig):
    KIND = "producer"
    NO_EFFECT = {**client_keys.COMMON, **client_keys.PRODUCER}
    KEYS = {
        **CONNECTION_KEYS,
        "acks": (lambda text: {"all": -1, "-1": -1, "1": 1, "0": 0}[_one_of("all", "-1", "0", "1")(text)], "all"),
        "enable.idempotence": (_boolean, "true"),
        "max.in.flight.requests.per.connection": (_number(1, MAX_INT), 5),
        "max.request.size": (_number(0, MAX_INT), 1_048_576),
        "batch.size": (_number(0, MAX_INT), 16_384),
        "linger.ms": (MILLISECONDS, 5),
        "buffer.memory": (_number(0), 33_554_432),
        "retries": (_number(0, MAX_INT), MAX_INT),
        # Java's worker overrides these two: a source connector waits for its broker without a limit.
        "delivery.timeout.ms": (_number(0, MAX_INT), MAX_INT),
        "max.block.ms": (_number(0), MAX_LONG),
        "compression.type": (_one_of("none", "gzip", "snappy", "lz4", "zstd"), "none"),
        "compression.gzip.level": (_number(-1, 9), -1),
        "compression.lz4.level": (_number(1, 17), 9),
        "compression.zstd.level": (_number(-131_072, 22), 3),
        "partitioner.class": (_partitioner, None),
        "transactional.id": (_text, None),
        "partitioner.ignore.keys": (_boolean, "false"),
    }

    @classmethod
    def contradictions(cls, values, given):
        if values["transactional.id"]:
            # Java's worker never begins such a transaction: its task fails at the first record.
            return {"transactional.id": "a worker's producer begins no transaction, so the broker would reject each record: remove it"}
        return cls._idempotence(values, given)

    @classmethod
    def _idempotence(cls, values, given):
        if not values["enable.idempotence"]:
            return {}
        needs = {
            "acks": (values["acks"] == -1, "all"),
            "retries": (values["retries"] > 0, "greater than 0"),
            "max.in.flight.requests.per.connection": (values["max.in.flight.requests.per.connection"] <= 5, "at most 5"),
        }
        broken = {name: wanted for name, (holds, wanted) in needs.items() if not holds}
        if broken and "enable.idempotence" not in given and "max.in.flight.requests.per.connection" not in broken:
            values["enable.idempotence"] = False  # as in Java: an error only if it was set explicitly
            return {}
        return {name: f"must be {wanted} while enable.idempotence=true" for name, wanted in broken.items()}

    @property
    def compression_level(self):
        return self._values.get(f"compression.{self['compression.type']}.level")


class TransactionalConfig(ProducerConfig):
    """The config of a transactional producer."""

    KEYS = {**ProducerConfig.KEYS, "transaction.timeout.ms": (_number(1, MAX_INT), 60_000)}
    NO_EFFECT = {name: why for name, why in ProducerConfig.NO_EFFECT.items() if name != "transaction.timeout.ms"}

    @classmethod
    def contradictions(cls, values, given):
        if not values["transactional.id"]:
            return {"transactional.id": "missing: it identifies the producer's transactions"}
        if not values["enable.idempotence"]:
            return {"enable.idempotence": "must be true for transactions"}
        return cls._idempotence(values, {*given, "enable.idempotence"})
