"""SyslogSource: syslog messages of hosts and devices, over UDP, TCP and TLS, parsed or raw."""

import logging
import time

import numpy as np

from connectors import security_keys
from connectors.file.watch import Waker
from connectors.logs import formats
from connectors.logs.options import errors_of
from connectors.logs.syslog_framing import AUTO, LF, OCTET_COUNTING
from connectors.logs.syslog_listeners import TLS, Address, Listeners
from connectors.logs.syslog_tls import CLIENTS, server_context
from standalone import (
    HIGH,
    INT,
    LIST,
    LOW,
    MEDIUM,
    STRING,
    ByteColumn,
    ConfigDef,
    ConfigError,
    ExactlyOnceSupport,
    Header,
    Option,
    Schema,
    SourceBatch,
    SourceConnector,
    SourceTask,
    at_least,
    non_empty,
    non_empty_list,
    one_of,
)

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
GATHER_SECONDS = 0.002  # between polls that find little, so that a busy sender's messages are batched
FEW = 64
KEEP, SKIP = "keep", "skip"
READ, RECORD = "read", "record"
HEADERS = ("peer", "protocol")

CONFIG = ConfigDef(
    Option(
        "listen", LIST, HIGH, "Addresses to listen on: udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT. Default ports: 514, 601, 6514; "
        "no host: all addresses of this machine.", check=non_empty_list,
    ),
    Option("topic", STRING, HIGH, "The topic to publish to.", check=non_empty),
    Option("format", STRING, HIGH, "syslog: parse RFC 5424 and RFC 3164 into fields. raw: the unparsed message.", default="syslog",
           check=one_of("syslog", "raw")),
    Option("format.unparsed", STRING, MEDIUM,
        "What to do with a message that matches neither RFC: keep (publish it in the field 'unparsed') or skip.",
           default=KEEP, check=one_of(KEEP, SKIP)),
    Option("framing", STRING, MEDIUM,
        "Framing of messages over TCP and TLS (RFC 6587): octet-counting, lf, or auto (detected by the first byte of each message).",
           default=AUTO, check=one_of(AUTO, OCTET_COUNTING, LF)),
    Option("max.message.bytes", INT, MEDIUM, "Maximum size of a message; longer ones are truncated and counted.", default=1 << 16, check=at_least(1)),
    Option("timestamp.from", STRING, MEDIUM, "Timestamp of a record: when the message was received, or the timestamp in the message.",
           default=READ, check=one_of(READ, RECORD)),
    Option("headers", LIST, LOW, "Headers that describe the origin of a record: peer, protocol.", default=""),
    Option("max.connections", INT, LOW, "Maximum number of open TCP and TLS connections; further ones wait.",
           default=1000, check=at_least(1)),
    Option("receive.buffer.bytes", INT, LOW, "Size of the kernel's receive buffer for UDP, limited by net.core.rmem_max.",
           default=4 << 20, check=at_least(1 << 10)),
    Option("ssl.client.auth", STRING, MEDIUM, "Whether senders must present a trusted certificate: none, requested, required.",
           default="none", check=one_of(*CLIENTS)),
    *security_keys.options(security_keys.TLS, "TLS setting, as in Kafka's clients; certificates are PEM."),
)  # fmt: skip


class SyslogSourceConnector(SourceConnector):
    """Publish the syslog messages sent to this host.

    Senders get no acknowledgement, so nothing is sent again: messages that TCP has delivered to this host and that are not published yet are
    lost if the worker is killed. TCP is not read while the task's buffer is full, so its senders wait; datagrams are then dropped, and counted.
    """

    java_name = "SyslogSource"
    config_def = CONFIG

    def validate(self, config):
        return errors_of(CONFIG, config, _addresses)

    def exactly_once_support(self, config):
        return ExactlyOnceSupport.UNSUPPORTED

    def task_configs(self, max_tasks):
        return [dict(self.config)]  # a port can be opened by one task only


class SyslogSourceTask(SourceTask):
    """Serves all sockets within its polls."""

    java_name = "SyslogSourceTask"

    def __init__(self, idle_seconds=IDLE_SECONDS):
        self._idle_seconds = idle_seconds
        self._waker = Waker()
        self.listeners = None
        self._found_few_at = 0.0
        self.skipped = 0

    def start(self, config):
        parsed = CONFIG.parse(config)
        addresses = _addresses(parsed)
        context = server_context(parsed) if any(each.protocol == TLS for each in addresses) else None
        self._topic, self._headers, self._unparsed = parsed["topic"], parsed["headers"], parsed["format.unparsed"]
        self._from_record = parsed["timestamp.from"] == RECORD
        self._format = formats.load(parsed["format"])(parsed).reader(None)
        self.listeners = Listeners(
            addresses, parsed["framing"], parsed["max.message.bytes"], parsed["max.connections"], parsed["receive.buffer.bytes"], context, self._waker
        )

    def poll(self):
        deadline = time.monotonic() + self._idle_seconds
        left = self._found_few_at + GATHER_SECONDS - time.monotonic()
        if left > 0:
            self._waker.wait(left)
        while not self._waker.woken:
            found = self.listeners.receive(deadline - time.monotonic())
            if found:
                self._found_few_at = time.monotonic() if len(found) < FEW else 0.0
                batch = self._batch(found)
                if batch is not None:
                    return [batch]
            if time.monotonic() >= deadline:
                return None
        return None

    def stop(self):
        self._waker.wake()

    def close(self):
        if self.listeners is not None:
            self.listeners.close()
        self._waker.close()

    def _batch(self, messages):
        parsed = self._format.parse(ByteColumn.of([each.data for each in messages]), False)
        if parsed.unparsed is not None and self._unparsed == SKIP and parsed.unparsed.any():
            self.skipped += int(parsed.unparsed.sum())
            messages = [each for each, is_unparsed in zip(messages, parsed.unparsed.tolist()) if not is_unparsed]
            return self._batch(messages) if messages else None
        count = len(messages)
        stamps = np.full(count, time.time_ns() // 1_000_000, np.int64)
        if self._from_record and parsed.times is not None:
            stamps = np.where(parsed.times >= 0, parsed.times, stamps).astype(np.int64)
        headers = None
        if self._headers:
            headers = [tuple(Header(f"syslog.{name}", getattr(each, name), Schema.STRING) for name in self._headers) for each in messages]
        return SourceBatch(count, self._topic, parsed.value, parsed.schema, timestamps=stamps, headers=headers)


def _addresses(config):
    errors, addresses = {}, []
    for text in config["listen"]:
        try:
            addresses.append(Address.of(text))
        except ValueError as error:
            errors["listen"] = str(error)
    unknown = [each for each in config["headers"] if each not in HEADERS]
    if unknown:
        errors["headers"] = f"'{unknown[0]}' is not one of {', '.join(HEADERS)}"
    if errors:
        raise ConfigError.of(errors)
    if any(each.protocol == TLS for each in addresses):
        server_context(config)
    return addresses


SyslogSourceConnector.task_class = SyslogSourceTask
