"""SyslogSource: framing, what comes of messages, real senders (logger, rsyslog, openssl), TLS, and what happens while the task is full."""

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

from connectors.logs.syslog import SyslogSourceConnector, SyslogSourceTask
from connectors.logs.syslog_framing import AUTO, LF, OCTET_COUNTING, Framing
from standalone import ConfigError, ConnectError
from standalone.testing import LocalWorker, wait_for
from tests.suite.certificates import make_certificates
from tests.suite.patience import PATIENCE_SECONDS

JSON = "org.apache.kafka.connect.json.JsonConverter"

FRAMES = [
    ("LF", LF, 100, b"a\nbc\n\nd", ["a", "bc"], ["d"], 0),
    ("CR LF and NUL", LF, 100, b"a\r\nb\0\n", ["a", "b"], [], 0),
    ("a number is not a count with LF", LF, 100, b"1 a\n", ["1 a"], [], 0),
    ("octets", OCTET_COUNTING, 100, b"3 a\nb1 c", ["a\nb", "c"], [], 0),
    ("octets, not whole at the end", OCTET_COUNTING, 100, b"1 a5 bc", ["a"], [], 1),
    ("both in one stream", AUTO, 100, b"3 <1><2>x\n4 <3>y<4>z\n", ["<1>", "<2>x", "<3>y", "<4>z"], [], 0),
    ("a line that is too long", LF, 3, b"abcdef\nab\n", ["abc", "ab"], [], 1),
    ("octets that are too many", OCTET_COUNTING, 3, b"6 abcdef2 gh", ["abc", "gh"], [], 1),
    ("digits without a message", AUTO, 100, b"12345678901 x\ny\n", ["12345678901 x", "y"], [], 0),
]


@pytest.mark.parametrize("step", [1, 2, 3, 1000])
@pytest.mark.parametrize("kind, most, data, whole, at_end, cut", [case[1:] for case in FRAMES], ids=[case[0] for case in FRAMES])
def test_frames(kind, most, data, whole, at_end, cut, step):
    framing, found = Framing(kind, most), []
    for at in range(0, len(data), step):
        found += framing.feed(data[at : at + step])
    assert [each.decode() for each in found] == whole
    assert [each.decode() for each in framing.end()] == at_end
    assert framing.cut == cut


# --- Driven by hand ------------------------------------------------------------------------------------------------


class Driven:
    def __init__(self, *listen, **props):
        self.task = SyslogSourceTask(idle_seconds=0.05)
        self.task.start({"topic": "t", "listen": ",".join(listen), **{name.replace("_", "."): value for name, value in props.items()}})
        self.ports = [address.port for address in self.task.listeners.addresses]
        self.records = []

    def poll(self):
        for batch in self.task.poll() or []:
            self.records += batch.records()

    def take(self, count):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.records) < count and time.monotonic() < deadline:
            self.poll()
        return self.records

    def messages(self, count):
        return [record.value["message"] for record in self.take(count)]


@pytest.fixture
def listening():
    made = []

    def make(*listen, **props):
        made.append(Driven(*listen, **props))
        return made[-1]

    yield make
    for each in made:
        each.task.stop()
        each.task.close()


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """A folder with ca.pem, server.pem for localhost, and client.pem."""
    return make_certificates(tmp_path_factory.mktemp("pem"), server="/CN=server", client="/CN=client")


def send(port, data, context=None):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as plain:
        connection = context.wrap_socket(plain, server_hostname="localhost") if context else plain
        connection.sendall(data)
        if context:
            connection.unwrap().close()


NEW = b'<34>1 2026-11-22T13:35:02.003Z host su 201 ID47 [x@1 a="b"] it is new'
OLD = b"<13>Nov 22 13:35:02 host cron[7]: it is old"


def test_both_rfcs_become_fields(listening):
    driven = listening("tcp://127.0.0.1:0", timestamp_from="record", headers="peer,protocol")
    send(driven.ports[0], b"%d %b%b\nwhat is this\n" % (len(NEW), NEW, OLD))
    new, old, other = driven.take(3)
    told = [new.value[name] for name in ("facility", "severity", "host", "app", "process", "message_id", "data", "message")]
    assert told == [4, 2, "host", "su", "201", "ID47", '[x@1 a="b"]', "it is new"]
    assert new.timestamp == 1795354502003
    assert [old.value[name] for name in ("facility", "severity", "app", "process", "message")] == [1, 5, "cron", "7", "it is old"]
    assert other.value["unparsed"] == "what is this"
    assert {header.name: header.value for header in new.headers} == {"syslog.peer": "127.0.0.1", "syslog.protocol": "tcp"}


def test_raw_messages_and_those_that_are_skipped(listening):
    raw = listening("udp://127.0.0.1:0", format="raw")
    skipping = listening("udp://127.0.0.1:0", format_unparsed="skip")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for driven in (raw, skipping):
            for message in (b"no syslog\n", OLD):
                sender.sendto(message, ("127.0.0.1", driven.ports[0]))
    assert [record.value for record in raw.take(2)] == ["no syslog", OLD.decode()]
    assert skipping.messages(1) == ["it is old"] and skipping.task.skipped == 1


def test_ipv6(listening):
    driven = listening("tcp://[::1]:0")
    with socket.create_connection(("::1", driven.ports[0]), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(OLD + b"\n")
    assert driven.messages(1) == ["it is old"]


def test_a_sender_over_tcp_waits_while_the_task_is_full_and_nothing_is_lost(listening):
    driven = listening("tcp://127.0.0.1:0", format="raw")
    sent = 0
    with socket.create_connection(("127.0.0.1", driven.ports[0])) as connection:
        driven.poll()
        connection.setblocking(False)
        data = b""
        with pytest.raises(BlockingIOError):
            while True:  # nobody polls
                data = data or b"".join(b"message %06d %s\n" % (number, b"x" * 1000) for number in range(sent, sent + 100))
                done = connection.send(data)
                data = data[done:]
                sent += 0 if data else 100
        assert sent < 100_000
        connection.setblocking(True)
        connection.settimeout(PATIENCE_SECONDS)
        waiting = [data] if data else []
        while waiting or len(driven.records) < sent:
            driven.poll()
            if waiting:
                connection.setblocking(False)
                try:
                    waiting[0] = waiting[0][connection.send(waiting[0]) :]
                except BlockingIOError:
                    continue
                if not waiting[0]:
                    waiting.clear()
                    sent += 100
    assert [record.value[:14] for record in driven.take(sent)] == [f"message {number:06d}" for number in range(sent)]


def test_datagrams_that_are_dropped_are_counted(listening, caplog):
    driven = listening("udp://127.0.0.1:0", format="raw", receive_buffer_bytes="4096")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(500):
            sender.sendto(b"message %d" % number + b"x" * 500, ("127.0.0.1", driven.ports[0]))
        driven.poll()
        sender.sendto(b"one more", ("127.0.0.1", driven.ports[0]))  # the kernel tells with the next one
        wait_for(lambda: driven.poll() or driven.records[-1].value == "one more", PATIENCE_SECONDS)
    assert 0 < len(driven.records) < 501
    assert len(driven.records) + driven.task.listeners.dropped == 501
    assert f"the kernel dropped {driven.task.listeners.dropped} datagrams" in caplog.text


def test_more_connections_than_may_be_open_wait(listening):
    driven = listening("tcp://127.0.0.1:0", max_connections="2", format="raw")
    connections = [socket.create_connection(("127.0.0.1", driven.ports[0]), timeout=PATIENCE_SECONDS) for _ in range(3)]
    for number, connection in enumerate(connections):
        connection.sendall(b"%d\n" % number)
    assert sorted(record.value for record in driven.take(2)) == ["0", "1"]
    driven.poll()
    assert len(driven.records) == 2
    connections[0].close()
    assert driven.take(3)[2].value == "2"
    for connection in connections:
        connection.close()


# --- TLS -----------------------------------------------------------------------------------------------------------


def trusting(pem, certificate=False):
    context = ssl.create_default_context(cafile=pem / "ca.pem")
    if certificate:
        context.load_cert_chain(pem / "client.pem")
    return context


def beside(driven, do):
    """Poll while another thread does it."""
    thread = threading.Thread(target=do)
    thread.start()
    wait_for(lambda: driven.poll() or not thread.is_alive(), PATIENCE_SECONDS)
    thread.join()


def test_tls_with_many_messages(pem, listening):
    driven = listening("tls://127.0.0.1:0", format="raw", ssl_keystore_location=str(pem / "server.pem"))
    data = b"".join(b"message %d %s\n" % (number, b"x" * 300) for number in range(3000))
    beside(driven, lambda: send(driven.ports[0], data, trusting(pem)))
    assert [record.value.split()[1] for record in driven.take(3000)] == [str(number) for number in range(3000)]


def test_senders_must_have_a_certificate_if_that_is_asked_for(pem, listening, caplog):
    driven = listening(
        "tls://localhost:0", format="raw", ssl_client_auth="required", ssl_truststore_location=str(pem / "ca.pem"),
        ssl_keystore_certificate_chain=(pem / "server.crt").read_text(), ssl_keystore_key=(pem / "server.key").read_text(),
    )  # fmt: skip

    def without():
        with pytest.raises((ssl.SSLError, OSError)):
            with socket.create_connection(("127.0.0.1", driven.ports[0]), timeout=PATIENCE_SECONDS) as plain:
                connection = trusting(pem).wrap_socket(plain, server_hostname="localhost")
                connection.sendall(b"no\n")
                connection.recv(1)  # TLS 1.3: refused after the handshake
                raise ConnectionError

    beside(driven, without)
    beside(driven, lambda: send(driven.ports[0], b"yes\n", trusting(pem, certificate=True)))
    assert [record.value for record in driven.take(1)] == ["yes"]
    assert "was refused" in caplog.text


REFUSED = [
    ({"listen": "http://x"}, "listen", "must begin with"),
    ({"listen": "tcp://x:99999"}, "listen", "Port out of range"),
    ({"headers": "color"}, "headers", "color"),
    ({"listen": "tls://:0"}, "ssl.keystore.location", "is missing"),
    ({"listen": "tls://:0", "ssl.keystore.location": "/nowhere.pem"}, "ssl.keystore.location", "cannot be read"),
    ({"listen": "tls://:0", "ssl.keystore.certificate.chain": "x", "ssl.keystore.key": "secret-key"}, "ssl.keystore.certificate.chain", "PEM"),
]


@pytest.mark.parametrize("props, key, said", REFUSED, ids=[f"{case[1]} {case[2]}" for case in REFUSED])
def test_refused(props, key, said):
    found = SyslogSourceConnector().validate({"listen": "udp://127.0.0.1:0", "topic": "t", **props})
    assert said in found[key] and "secret-key" not in str(found)


def test_a_port_that_is_taken_fails_the_task():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(ConnectError, match="cannot be opened"):
            Driven(f"tcp://127.0.0.1:{taken.getsockname()[1]}")


def test_a_certificate_that_is_missing_fails_the_task():
    with pytest.raises(ConfigError, match="is missing"):
        Driven("tls://127.0.0.1:0")


# --- Real senders --------------------------------------------------------------------------------------------------


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


LOGGER = [
    ("UDP, RFC 5424", ["--udp", "--rfc5424"]),
    ("UDP, RFC 3164", ["--udp", "--rfc3164"]),
    ("TCP, lines", ["--tcp", "--rfc5424"]),
    ("TCP, octets", ["--tcp", "--rfc5424", "--octet-count"]),
    ("TCP, RFC 3164, octets", ["--tcp", "--rfc3164", "--octet-count"]),
]


@pytest.mark.skipif(not shutil.which("logger"), reason="there is no logger (bsdutils)")
@pytest.mark.parametrize("options", [case[1] for case in LOGGER], ids=[case[0] for case in LOGGER])
def test_logger(options, listening):
    driven = listening("udp://127.0.0.1:0" if "--udp" in options else "tcp://127.0.0.1:0")
    command = ["logger", "--server", "127.0.0.1", "--port", str(driven.ports[0]), "--tag", "backup", "--priority", "local3.warning", *options]
    subprocess.run([*command, "it is done"], check=True, timeout=PATIENCE_SECONDS)
    (record,) = driven.take(1)
    assert [record.value[name] for name in ("facility", "severity", "app", "message")] == [19, 4, "backup", "it is done"]


RSYSLOG = """
module(load="imfile")
global(workDirectory="{folder}")
input(type="imfile" file="{log}" tag="web" facility="local0" severity="info")
action(type="omfwd" target="127.0.0.1" port="{port}" protocol="{protocol}" TCP_Framing="{framing}" template="RSYSLOG_SyslogProtocol23Format")
"""


@pytest.mark.skipif(not shutil.which("rsyslogd"), reason="there is no rsyslogd (rsyslog)")
@pytest.mark.parametrize("framing", ["traditional", "octet-counted"])
def test_rsyslog_in_a_worker(framing, tmp_path):
    port = free_port()
    log = tmp_path / "web.log"
    lines = [f"request {number} äö" for number in range(500)]
    log.write_text("".join(f"{line}\n" for line in lines))
    conf = tmp_path / "rsyslog.conf"
    conf.write_text(RSYSLOG.format(folder=tmp_path, log=log, port=port, protocol="tcp", framing=framing))
    props = {"connector.class": "SyslogSource", "listen": f"tcp://127.0.0.1:{port}", "topic": "sys", "value.converter": JSON, "value.converter.schemas.enable": "false"}
    with LocalWorker(tmp_path / "worker") as worker:
        worker.create("sys", {"name": "sys", **props})
        wait_for(lambda: _listens(port), PATIENCE_SECONDS, "the port to be open")
        sender = subprocess.Popen(["rsyslogd", "-n", "-f", str(conf), "-i", str(tmp_path / "pid")], stderr=subprocess.DEVNULL)
        try:
            found = worker.values("sys", 500, PATIENCE_SECONDS)
        finally:
            sender.terminate()
            sender.wait(PATIENCE_SECONDS)
    assert [json.loads(each)["message"] for each in found] == lines


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")
def test_openssl_as_a_sender(pem, listening):
    driven = listening("tls://127.0.0.1:0", ssl_keystore_location=str(pem / "server.pem"))
    command = ["openssl", "s_client", "-quiet", "-no_ign_eof", "-verify_return_error", "-CAfile", str(pem / "ca.pem")]
    beside(driven, lambda: subprocess.run(
        [*command, "-connect", f"localhost:{driven.ports[0]}", "-servername", "localhost"], input=OLD + b"\n", capture_output=True, timeout=PATIENCE_SECONDS
    ))  # fmt: skip
    assert driven.messages(1) == ["it is old"]
