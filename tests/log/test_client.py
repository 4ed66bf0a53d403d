"""Settings, errors, connections and metadata; TLS and logins against a real broker."""

import json
import pathlib
import socket
import subprocess
import threading
import time
import uuid

import kafka.errors
import pytest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log import broker_errors, error_codes, jaas, tls
from standalone.log.client import Backoff, Cluster, Clusters
from standalone.log.client_config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig, parse_address
from standalone.log.connection import Connection
from tests.servers.kafka_broker import KafkaBroker
from tests.suite.patience import PATIENCE_SECONDS
from tests.suite.shared import skipped_where_unavailable

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden/config-keys.json").read_text())
param = pytest.param

# Where our default is not the Java client's, and why
OUR_DEFAULTS = {
    "send.buffer.bytes": -1,  # Linux sizes it by the traffic
    "receive.buffer.bytes": -1,
    "delivery.timeout.ms": 2**31 - 1,  # as Java's worker sets it
    "max.block.ms": 2**63 - 1,  # as Java's worker sets it
    "sasl.login.connect.timeout.ms": 10_000,  # Java: none at all
    "connections.max.idle.ms": 540_000,  # Java's admin: 300,000; connections are shared here
    "bootstrap.servers": "",  # Java's admin: "", the others: required, as it is where a cluster is made
}


# ---- settings


@pytest.mark.parametrize("kind, config", [("producer", ProducerConfig), ("consumer", ConsumerConfig), ("admin", AdminConfig)])
def test_every_key_is_java_s_and_so_are_the_defaults(kind, config):
    java = {key["name"]: key["default"] for key in GOLDEN[kind]}
    assert set(config.KEYS) <= set(java)
    ours = config.of({})
    theirs = {name: config.KEYS[name][0](default) for name in config.KEYS if (default := java[name]) is not None}
    theirs["partition.assignment.strategy"] = ours._values.get("partition.assignment.strategy")  # Java's shows "class " before each
    different = {name: ours[name] for name in config.KEYS if ours[name] != theirs.get(name)}
    assert {name: value or "" for name, value in different.items()} == {name: OUR_DEFAULTS[name] for name in different}


def test_values_are_typed_and_keys_without_meaning_are_listed():
    config = ProducerConfig.of({"batch.size": " 262144 ", "acks": "1", "interceptor.classes": "x.Y", "bootstrap.servers": "a:1, [::1]:2"})
    assert (config["batch.size"], config["acks"], config["enable.idempotence"]) == (262144, 1, False)
    assert config["bootstrap.servers"] == [("a", 1), ("::1", 2)]
    assert config.ignored == ["interceptor.classes"]
    assert ProducerConfig.of(config)["bootstrap.servers"] == config["bootstrap.servers"]


@pytest.mark.parametrize(
    "properties, wrong",
    [
        param({"acks": "2", "linger.ms": "soon"}, {"acks", "linger.ms"}, id="all wrong keys at once"),
        param({"bootstrap.servers": "localhost"}, {"bootstrap.servers"}, id="a server without a port"),
        param({"security.protocol": "TLS"}, {"security.protocol"}, id="an unknown protocol"),
        param({"enable.idempotence": "true", "acks": "1"}, {"acks"}, id="idempotence asked for without all acks"),
        param({"max.in.flight.requests.per.connection": "6"}, {"max.in.flight.requests.per.connection"}, id="too many under way"),
        param({"enable.idempotence": "yes"}, {"enable.idempotence"}, id="a boolean in other words"),
    ],
)
def test_wrong_settings_are_refused_by_key(properties, wrong):
    with pytest.raises(ConfigError) as caught:
        ProducerConfig.of(properties)
    assert set(caught.value.errors) == wrong


def test_no_secret_is_shown():
    config = ClientConfig.of({"sasl.jaas.config": "swordfish", "ssl.key.password": "swordfish", "client.id": "me"})
    assert "swordfish" not in repr(config) and "me" in repr(config)


@pytest.mark.parametrize(
    "text, address",
    [
        param("localhost:9092", ("localhost", 9092), id="plain"),
        param("[2001:db8::1]:9092", ("2001:db8::1", 9092), id="IPv6"),
        param("SASL_SSL://host:1", ("host", 1), id="with a protocol"),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text, options",
    [
        param('a.Plain required username="u" password="p";', {"username": "u", "password": "p"}, id="double quotes"),
        param("a.Plain required username='u' password='p' ;", {"username": "u", "password": "p"}, id="single quotes"),
        param('a.Plain required\n  username="a b"\n  password="q\\"x\\\\y;=";', {"username": "a b", "password": 'q"x\\y;='}, id="escapes, lines"),
        param("a.Plain required debug=true;", {"debug": "true"}, id="no quotes"),
        param("a.OAuth required;", {}, id="no options"),
        param(None, {}, id="nothing"),
    ],
)
def test_jaas_configurations(text, options):
    assert jaas.jaas_options(text) == options


@pytest.mark.parametrize("text", ['a.Plain required username="u', "a.Plain username=u;", 'a.Plain required username "u";', "a.Plain required user=u"])
def test_broken_jaas_configurations_are_refused_without_showing_them(text):
    with pytest.raises(ConfigError) as caught:
        jaas.jaas_options(text)
    assert list(caught.value.errors) == ["sasl.jaas.config"] and text not in str(caught.value)


def test_a_store_that_is_not_there_is_named():
    config = ClientConfig.of({"security.protocol": "SSL", "ssl.truststore.location": "/x/trust.jks"})
    with pytest.raises(ConfigError, match="ssl.truststore.location=/x/trust.jks cannot be used: No such file") as refused:
        tls.context(config)
    assert list(refused.value.errors) == ["ssl.truststore.location"]


@pytest.mark.parametrize(
    "code, name, retriable",
    [
        param(2, "CorruptRecordException", True, id="corrupt"),
        param(3, "UnknownTopicOrPartitionException", True, id="unknown topic"),
        param(6, "NotLeaderOrFollowerException", True, id="not leader"),
        param(7, "TimeoutException", True, id="timeout"),
        param(10, "RecordTooLargeException", False, id="too large"),
        param(19, "NotEnoughReplicasException", True, id="too few replicas"),
        param(29, "TopicAuthorizationException", False, id="forbidden"),
        param(45, "OutOfOrderSequenceException", False, id="out of order"),
        param(-1, "UnknownServerException", False, id="unknown"),
        param(9999, "UnknownServerException", False, id="a code of the future"),
    ],
)
def test_error_codes_have_java_s_names(code, name, retriable):
    error = broker_errors.broker_error(code, "Doing this")
    assert error.java_class == f"org.apache.kafka.common.errors.{name}"
    assert isinstance(error, LogRetriableError) is retriable


def test_error_codes_are_named_as_kafka_names_them():
    ours = {name: code for name, code in vars(error_codes).items() if name.isupper()}
    theirs = {known.message: code for code, known in kafka.errors.kafka_errors.items()}
    theirs |= {"NONE": theirs["NO_ERROR"], "MESSAGE_TOO_LARGE": theirs["MESSAGE_SIZE_TOO_LARGE"]}  # as kafka-python still calls them
    assert len(ours) > 20 and ours == {name: theirs.get(name) for name in ours}


def test_pauses_grow_to_their_limit_and_never_are_the_same():
    backoff = Backoff(ClientConfig.of({"retry.backoff.ms": "100", "retry.backoff.max.ms": "1000"}), "retry.backoff")
    pauses = [backoff.next() for _ in range(8)]
    assert 0.08 <= pauses[0] <= 0.12 and all(0.8 <= pause <= 1.2 for pause in pauses[5:])
    backoff.reset()
    assert backoff.next() <= 0.12


def test_clients_configured_alike_share_a_cluster_under_their_own_names():
    clusters = Clusters(SYSTEM)
    one = clusters.get(ProducerConfig.of({"bootstrap.servers": "a:1", "client.id": "x"}))
    other = clusters.get(ConsumerConfig.of({"bootstrap.servers": "a:1", "group.id": "g"}))
    assert other.shared is one.shared and (one.client_id, other.client_id) == ("x", "")
    assert clusters.get(AdminConfig.of({"bootstrap.servers": "b:1"})).shared is not one.shared
    clusters.close()


# ---- trouble, without a broker


class Listener:
    """Accepts connections and does with each what `behave(socket)` says."""

    def __init__(self, behave):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, args=(behave,), daemon=True)
        self._thread.start()

    def _accept(self, behave):
        while True:
            try:
                accepted, _ = self._server.accept()
            except OSError:
                return
            with accepted:
                behave(accepted)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(PATIENCE_SECONDS)


def ask(address, seconds=0.4, **config):
    cluster = Cluster({"bootstrap.servers": address, **{name.replace("_", "."): value for name, value in config.items()}}, SYSTEM)
    started = time.monotonic()
    try:
        with pytest.raises((LogRetriableError, LogFatalError)) as caught:
            cluster.topics(timeout=seconds)
    finally:
        cluster.close()
    assert time.monotonic() - started < seconds + 5
    return caught.value


def test_servers_that_cannot_be_reached_are_named_with_the_reason():
    error = ask("127.0.0.1:1,no-such-host.invalid:9092")
    assert error.java_class == "org.apache.kafka.common.errors.TimeoutException"
    assert "127.0.0.1:1 cannot be reached: connection refused" in str(error)
    assert "no-such-host.invalid:9092 cannot be resolved" in str(error)


def test_a_server_that_says_nothing_is_not_waited_for():
    over = threading.Event()
    with Listener(lambda accepted: over.wait(PATIENCE_SECONDS)) as listener:
        assert "did not answer" in str(ask(listener.address))
        over.set()


def test_a_server_that_speaks_another_protocol_is_told_apart():
    with Listener(lambda accepted: accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as listener:
        assert "not a Kafka response" in (error := str(ask(listener.address))) and "security.protocol" in error


def test_a_server_that_hangs_up_is_told_apart():
    with Listener(lambda accepted: accepted.recv(10_000)) as listener:
        assert "closed by the other side. Does its listener speak PLAINTEXT (security.protocol)?" in str(ask(listener.address))


def test_a_request_is_made_again_when_its_answer_is_lost():
    """The first connection answers ApiVersions and hangs up after the next request; every other one answers both."""
    connections = []

    def behave(accepted):
        connections.append(accepted)
        _answer_api_versions(accepted)
        request = accepted.recv(10_000)
        if len(connections) > 1:
            _answer_metadata(accepted, request)

    with Listener(behave) as listener:
        cluster = Cluster({"bootstrap.servers": listener.address}, SYSTEM)
        assert cluster.cluster_id(timeout=5) == "fake"
        assert len(connections) == 2
        cluster.close()


def _answer_api_versions(accepted):
    from kafka.protocol.metadata import ApiVersionsResponse

    request = accepted.recv(10_000)
    kind = ApiVersionsResponse.ApiVersion
    keys = [kind(api_key=ApiVersionsRequest.API_KEY, min_version=0, max_version=3), kind(api_key=MetadataRequest.API_KEY, min_version=9, max_version=9)]
    _respond(accepted, request, ApiVersionsResponse(version=request[7], error_code=0, api_keys=keys, throttle_time_ms=0))


def _answer_metadata(accepted, request):
    from kafka.protocol.metadata import MetadataResponse

    _respond(accepted, request, MetadataResponse(version=9, brokers=[], cluster_id="fake", controller_id=-1, topics=[]))


def _respond(accepted, request, response):
    response.with_header(int.from_bytes(request[8:12], "big"))
    accepted.sendall(response.encode(header=True, framed=True))


# ---- both brokers


@pytest.fixture
def cluster(broker):
    cluster = Cluster({"bootstrap.servers": broker}, SYSTEM)
    yield cluster
    cluster.close()


def test_a_topic_comes_into_being_and_has_leaders(cluster):
    name = f"client-{uuid.uuid4()}"
    with pytest.raises(LogRetriableError, match=f"topic '{name}'"):
        cluster.topic(name, timeout=2)
    assert cluster.leader(name, 0) is None
    assert cluster.partitions(name, create=True, timeout=20) == [0]
    assert cluster.leader(name, 0).node == cluster.controller() == cluster.nodes()[0]
    assert name in cluster.topics()
    assert cluster.coordinator("group", timeout=20) == cluster.nodes()[0]


def test_a_topic_that_is_known_is_not_asked_for_again(cluster):
    name = f"client-{uuid.uuid4()}"
    first = cluster.topic(name, create=True, timeout=20)
    assert cluster.topic(name) is first
    cluster.forget(name)
    assert cluster.topic(name) is not first


def test_threads_share_connections_without_waiting_for_each_other(cluster):
    found = []
    threads = [threading.Thread(target=lambda: found.append(cluster.topics(timeout=20))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert len(found) == 20
    assert sum(map(len, cluster.shared.idle.values())) <= 4


def test_a_large_answer_comes_in_one_piece_and_a_timeout_gives_none(broker, cluster):
    host, port = parse_address(broker)
    connection = Connection.open(host, port, cluster.config, SYSTEM)
    try:
        assert connection.receive(0.01) is None
        correlation = connection.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"))
        assert connection.outstanding == 1
        received, body = connection.receive()
        assert received == correlation and connection.decode(received, body).error_code == 0
        assert connection.outstanding == 0
    finally:
        connection.close()


def test_an_aborted_connection_frees_the_thread_that_reads_it(broker, cluster):
    host, port = parse_address(broker)
    connection = Connection.open(host, port, cluster.config, SYSTEM)
    caught = []

    def read():
        try:
            connection.receive()
        except LogRetriableError as error:
            caught.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    connection.abort()
    reader.join(PATIENCE_SECONDS)
    connection.close()
    assert len(caught) == 1 and "closed by the other side" in str(caught[0])


# ---- TLS and logins

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="{}";'


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker with a listener for TLS (of both sides), for logins, and for logins through TLS; and a folder of PEM files."""
    folder = tmp_path_factory.mktemp("tls")
    _make_certificates(folder)
    plain = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    oauth = 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": folder / "broker.pem", "ssl.truststore.type": "PEM"}
    settings.update({"ssl.truststore.location": folder / "ca.pem", "listener.name.tls.ssl.client.auth": "required"})
    for listener in ("login", "both"):
        settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
        settings[f"listener.name.{listener}.oauthbearer.sasl.jaas.config"] = oauth
        settings[f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class"] = (
            "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
        )
        for size in ("256", "512"):
            settings[f"listener.name.{listener}.scram-sha-{size}.sasl.jaas.config"] = scram
    broker = KafkaBroker(
        {"TLS": "SSL", "LOGIN": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"},
        [f"SCRAM-SHA-{size}=[name=alice,password=secret]" for size in ("256", "512")],
        settings,
    )
    with skipped_where_unavailable():
        broker.start()
    yield broker, folder
    broker.stop()


def _make_certificates(folder):
    """ca.pem, broker.pem and client.pem (key and chain), for localhost; and stranger.pem, which nobody signed."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=folder)

    new_key = ("-newkey", "rsa:2048", "-nodes")
    for name in ("ca", "stranger"):
        openssl("req", "-x509", *new_key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    for name in ("broker", "client"):
        openssl("req", *new_key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names",
                "-out", f"{name}.crt")
        (folder / f"{name}.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())


def reach(address, **config):
    cluster = Cluster({"bootstrap.servers": address, **{name.replace("_", "."): value for name, value in config.items()}}, SYSTEM)
    try:
        return cluster.cluster_id(timeout=8)
    finally:
        cluster.close()


def _trust(folder):
    return {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(folder / "ca.pem")}


@pytest.mark.kafka
def test_tls_with_a_certificate_on_both_sides(secured):
    broker, folder = secured
    keys = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(folder / "client.pem")}
    assert reach(broker.address("TLS"), security_protocol="SSL", **_trust(folder), **keys)


@pytest.mark.kafka
def test_tls_with_everything_in_the_settings_on_one_line(secured):
    broker, folder = secured

    def line(name):
        return " ".join((folder / name).read_text().split("\n"))

    config = {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": line("ca.pem"), "ssl_keystore_type": "PEM"}
    config.update(ssl_keystore_key=line("client.key"), ssl_keystore_certificate_chain=line("client.crt"))
    assert reach(broker.address("TLS"), security_protocol="SSL", **config)


@pytest.mark.kafka
def test_a_certificate_that_nobody_trusts_is_refused(secured):
    broker, folder = secured
    stranger = {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(folder / "stranger.pem")}
    with pytest.raises(LogFatalError, match="certificate") as caught:
        reach(broker.address("TLS"), security_protocol="SSL", **stranger)
    assert caught.value.java_class == "org.apache.kafka.common.errors.SslAuthenticationException"


@pytest.mark.kafka
def test_a_host_name_counts_unless_the_check_is_off(secured):
    broker, folder = secured
    address = broker.address("BOTH").replace("localhost", "127.0.0.1")
    config = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": JAAS.format("secret"), **_trust(folder)}
    with pytest.raises(LogFatalError, match="127.0.0.1"):
        reach(address, **config)
    assert reach(address, ssl_endpoint_identification_algorithm="", **config)


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("listener, protocol", [("LOGIN", "SASL_PLAINTEXT"), ("BOTH", "SASL_SSL")])
def test_a_login_by_password(secured, mechanism, listener, protocol):
    broker, folder = secured
    config = {"security_protocol": protocol, "sasl_mechanism": mechanism, **_trust(folder)}
    assert reach(broker.address(listener), sasl_jaas_config=JAAS.format("secret"), **config)
    with pytest.raises(LogFatalError, match=f"by {mechanism} failed") as caught:
        reach(broker.address(listener), sasl_jaas_config=JAAS.format("wrong"), **config)
    assert caught.value.java_class == "org.apache.kafka.common.errors.SaslAuthenticationException"
    assert "wrong" not in str(caught.value)


@pytest.mark.kafka
def test_a_listener_that_speaks_tls_is_told_apart(secured):
    broker, _ = secured
    assert "Does its listener speak PLAINTEXT (security.protocol)?" in str(ask(broker.address("TLS"), 1))


@pytest.mark.kafka
def test_a_login_by_token(secured):
    broker, _ = secured
    jaas = 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
    assert reach(broker.address("LOGIN"), security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=jaas)


@pytest.mark.kafka
def test_records_go_through_tls(secured):
    from standalone import wire
    from standalone.log.producer import Producer

    broker, folder = secured
    properties = {"bootstrap.servers": broker.address("BOTH"), "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    properties.update({name.replace("_", "."): value for name, value in _trust(folder).items()}, **{"sasl.jaas.config": JAAS.format("secret")})
    cluster = Cluster(properties, SYSTEM)
    producer = Producer(cluster, properties, SYSTEM)
    thread = threading.Thread(target=producer.run)
    thread.start()
    results = []
    for _ in range(20):
        producer.send("tls", None, wire.Records(3000, values=wire.ByteColumn.of([b"x" * 100] * 3000)), results.append)
    assert producer.flush(30)
    producer.close(0)
    thread.join(PATIENCE_SECONDS)
    cluster.close()
    assert [result.error for result in results] == [None] * 20
    assert sorted(offset for result in results for _, _, offset, _ in result.acks)[0] == 0
