"""TLS and logins of a client: stores of every kind, what is final and what passes, tokens; against a fake broker, without Java's broker."""

import base64
import contextlib
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest
from kafka.protocol.sasl import SaslAuthenticateRequest
from pytest import param

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log import jaas, java_stores, tls
from standalone.log.client import Cluster
from standalone.log.client_config import ClientConfig
from tests.log.client_runs import until
from tests.servers import fake_broker as fake
from tests.suite.patience import PATIENCE_SECONDS

PASSWORD, KEY_PASSWORD = "swordfish", "herringbone"
needs_keytool = pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is not installed")


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """A folder with ca.pem, broker and client (.key, .crt, .pem) for localhost, and stranger.pem, which nobody signed."""
    folder = tmp_path_factory.mktemp("pem")

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=folder)

    new_key = ("-newkey", "rsa:2048", "-nodes")
    for name in ("ca", "stranger"):
        openssl("req", "-x509", *new_key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for name in ("broker", "client"):
        openssl("req", *new_key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names",
                "-out", f"{name}.crt")
        (folder / f"{name}.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    openssl("pkcs12", "-export", "-in", "client.pem", "-name", "client", "-out", "client.p12", "-passout", f"pass:{PASSWORD}")
    openssl("rsa", "-in", "client.key", "-aes128", "-passout", f"pass:{KEY_PASSWORD}", "-out", "sealed.key")
    return folder


@pytest.fixture(scope="module")
def stores(pem):
    """The folder with what keytool makes of it: trust.jks, trust.p12, client.jks (its key with its own password)."""
    def keytool(*arguments):
        light = ["-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1"]  # what a JVM does beside it costs more than the work itself
        command = ["keytool", *map(str, arguments), *light]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, cwd=pem, timeout=120)

    for kind, name in (("JKS", "trust.jks"), ("PKCS12", "trust.p12")):
        keytool("-importcert", "-noprompt", "-alias", "ca", "-file", "ca.pem", "-keystore", name, "-storetype", kind, "-storepass", PASSWORD)
    keytool("-importkeystore", "-srckeystore", "client.p12", "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD, "-destkeystore", "client.jks",
            "-deststoretype", "JKS", "-deststorepass", PASSWORD, "-srcalias", "client", "-destkeypass", KEY_PASSWORD, "-noprompt")
    return pem


@contextlib.contextmanager
def secured(pem, both_sides=True, before=lambda accepted: None, **limits):
    """A fake broker that speaks TLS, with our certificate asked for; `before(socket)` may spoil the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem / "broker.pem")
    if both_sides:
        context.load_verify_locations(pem / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    for name, value in limits.items():
        setattr(context, name, value)

    def wrap(accepted):
        before(accepted)
        return context.wrap_socket(accepted, server_side=True)

    with fake.FakeCluster(wrap=wrap) as cluster:
        yield cluster


def reach(cluster, seconds=PATIENCE_SECONDS, **config):
    """The cluster's id, by a client with these settings."""
    settings = {"security.protocol": "SSL", **{name.replace("_", "."): str(value) for name, value in config.items()}}
    made = Cluster({"bootstrap.servers": cluster.bootstrap.replace("127.0.0.1", "localhost"), **settings}, SYSTEM)
    try:
        return made.cluster_id(timeout=seconds)
    finally:
        made.close()


def trust(pem):
    return {"ssl_truststore_type": "PEM", "ssl_truststore_location": pem / "ca.pem"}


# ---- stores


def _stores(folder):
    def line(name):
        return " ".join((folder / name).read_text().split("\n"))

    return {
        "PEM": (
            trust(folder),
            {"ssl_keystore_type": "PEM", "ssl_keystore_location": folder / "client.pem"},
        ),
        "PEM in the settings": (
            {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": line("ca.pem")},
            {"ssl_keystore_type": "PEM", "ssl_keystore_key": line("client.key"), "ssl_keystore_certificate_chain": line("client.crt")},
        ),
        "PEM with a sealed key": (
            trust(folder),
            {"ssl_keystore_type": "PEM", "ssl_keystore_key": (folder / "sealed.key").read_text(), "ssl_key_password": KEY_PASSWORD,
             "ssl_keystore_certificate_chain": (folder / "client.crt").read_text()},
        ),
        "JKS": (
            {"ssl_truststore_location": folder / "trust.jks", "ssl_truststore_password": PASSWORD},
            {"ssl_keystore_location": folder / "client.jks", "ssl_keystore_password": PASSWORD, "ssl_key_password": KEY_PASSWORD},
        ),
        "PKCS12": (
            {"ssl_truststore_type": "PKCS12", "ssl_truststore_location": folder / "trust.p12", "ssl_truststore_password": PASSWORD},
            {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": folder / "client.p12", "ssl_keystore_password": PASSWORD},
        ),
        "PKCS12 called JKS": (
            {"ssl_truststore_location": folder / "trust.p12", "ssl_truststore_password": PASSWORD},
            {"ssl_keystore_location": folder / "client.p12", "ssl_keystore_password": PASSWORD},
        ),
    }


@needs_keytool
@pytest.mark.parametrize("kind", ["PEM", "PEM in the settings", "PEM with a sealed key", "JKS", "PKCS12", "PKCS12 called JKS"])
def test_both_sides_show_a_certificate_out_of_stores_of_each_kind(stores, kind):
    authorities, identity = _stores(stores)[kind]
    with secured(stores) as cluster:
        assert reach(cluster, **authorities, **identity) == "fake"


@needs_keytool
@pytest.mark.parametrize(
    "settings, key, said",
    [
        param({"ssl.truststore.location": "trust.jks", "ssl.truststore.password": "wrong"}, "ssl.truststore.location", "password", id="JKS, wrong password"),
        param({"ssl.truststore.location": "trust.p12", "ssl.truststore.password": "wrong"}, "ssl.truststore.location", "password", id="PKCS12, wrong password"),
        param({"ssl.keystore.location": "client.jks", "ssl.keystore.password": PASSWORD, "ssl.key.password": "wrong"}, "ssl.keystore.location",
              "ssl.key.password", id="JKS, another password of the key"),
        param({"ssl.keystore.location": "client.jks"}, "ssl.keystore.location", "no password is set", id="JKS, no password"),
        param({"ssl.keystore.location": "trust.jks", "ssl.keystore.password": PASSWORD}, "ssl.keystore.location", "no private key", id="no key in it"),
        param({"ssl.truststore.location": "ca.pem"}, "ssl.truststore.location", "set ssl.truststore.type=PEM", id="PEM called JKS"),
        param({"ssl.truststore.location": "names"}, "ssl.truststore.location", "neither a JKS nor a PKCS12", id="no store"),
        param({"ssl.truststore.location": "trust.jks", "ssl.truststore.type": "BKS"}, "ssl.truststore.location", "BKS", id="an unknown kind"),
        param({"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"}, "ssl.keystore.key", "must both be set", id="a key without its chain"),
        param({"ssl.enabled.protocols": "TLSv1.4"}, "ssl.enabled.protocols", "TLSv1.4", id="an unknown protocol"),
        param({"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"}, "ssl.protocol", "below", id="protocols that contradict"),
        param({"ssl.cipher.suites": "TLS_NOTHING_WITH_NOTHING_SHA"}, "ssl.cipher.suites", "NOTHING", id="an unknown suite"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_key_and_without_its_secret(stores, settings, key, said, monkeypatch):
    monkeypatch.chdir(stores)
    with pytest.raises(ConfigError) as refused:
        tls.context(ClientConfig.of({"security.protocol": "SSL", **settings}))
    assert list(refused.value.errors) == [key] and said in str(refused.value)
    assert PASSWORD not in str(refused.value) and "wrong" not in str(refused.value)


@needs_keytool
@pytest.mark.parametrize("size", range(4, 1400, 97))
def test_a_store_that_is_cut_off_is_an_error_of_its_own(stores, size):
    data = (stores / "client.jks").read_bytes()[:size]
    with pytest.raises(java_stores.StoreError):
        java_stores.read(data, None, KEY_PASSWORD)


@pytest.mark.parametrize(
    "java, openssl",
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_java_s_names_of_suites(java, openssl):
    assert tls.openssl_name(java) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(openssl)


@pytest.mark.parametrize(
    "settings, version, suite",
    [
        param({}, "TLSv1.3", None, id="as they come"),
        param({"ssl_enabled_protocols": "TLSv1.2"}, "TLSv1.2", None, id="by enabled protocols"),
        param({"ssl_protocol": "TLSv1.2"}, "TLSv1.2", None, id="by the protocol"),
        param({"ssl_cipher_suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, "TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384", id="by a suite of TLS 1.2"),
    ],
)
def test_version_and_suite_are_what_was_set(pem, settings, version, suite):
    agreed = []
    with secured(pem, both_sides=False) as cluster:
        cluster.control(fake.MetadataRequest, lambda call: agreed.append((call.connection.version(), call.connection.cipher()[0])))
        assert reach(cluster, **trust(pem), **settings) == "fake"
    assert agreed[0][0] == version and suite in (None, agreed[0][1])


# ---- what is final, and what passes


def test_a_hang_up_in_the_handshake_passes(pem):
    """As a balancer does whose brokers are starting."""
    attempts = []

    def hang_up(accepted):
        attempts.append(accepted)
        if len(attempts) < 4:
            accepted.recv(1)
            accepted.shutdown(socket.SHUT_RDWR)
            raise OSError("hung up")

    with secured(pem, both_sides=False, before=hang_up) as cluster:
        assert reach(cluster, reconnect_backoff_ms=10, **trust(pem)) == "fake"
    assert len(attempts) >= 4


def test_bytes_that_are_no_tls_pass(pem):
    attempts = []

    def answer_in_clear(accepted):
        attempts.append(accepted)
        if len(attempts) < 3:
            accepted.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
            raise OSError("hung up")

    with secured(pem, both_sides=False, before=answer_in_clear) as cluster:
        assert reach(cluster, reconnect_backoff_ms=10, **trust(pem)) == "fake"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS 1.2", "TLS 1.3"])
def test_a_broker_that_will_not_do_without_our_certificate_is_final(pem, version):
    with secured(pem, maximum_version=version) as cluster:
        begun = time.monotonic()
        with pytest.raises(LogFatalError) as refused:
            reach(cluster, **trust(pem))
        assert time.monotonic() - begun < 15
    assert refused.value.java_class == "org.apache.kafka.common.errors.SslAuthenticationException"


def test_a_certificate_that_nobody_vouches_for_is_final(pem):
    with secured(pem, both_sides=False) as cluster, pytest.raises(LogFatalError, match="certificate"):
        reach(cluster, ssl_truststore_type="PEM", ssl_truststore_location=pem / "stranger.pem")


def test_versions_that_do_not_meet_are_final(pem):
    with secured(pem, both_sides=False, minimum_version=ssl.TLSVersion.TLSv1_3) as cluster, pytest.raises(LogFatalError):
        reach(cluster, ssl_enabled_protocols="TLSv1.2", **trust(pem))


def test_an_aborted_connection_keeps_its_encryption_to_the_last_byte(pem):
    with secured(pem, both_sides=False) as cluster:
        settings = {name.replace("_", "."): str(value) for name, value in trust(pem).items()}
        made = Cluster({"bootstrap.servers": cluster.bootstrap, "security.protocol": "SSL", **settings}, SYSTEM)
        made.cluster_id()
        connection = made.connect(made.nodes()[0])
        connection.abort()
        assert connection._socket.version() is not None, "what another thread writes now goes out in the clear"
        with pytest.raises(LogRetriableError):
            connection.send(fake.MetadataRequest(topics=[], allow_auto_topic_creation=False))
        connection.close()
        made.close()


# ---- logins


JAAS = "org.apache.kafka.common.security.{} required {};"


@pytest.mark.parametrize("java_options", ["-Xmx1g -Djava.security.auth.login.config={} -Dx=y", '-Djava.security.auth.login.config="{}"'])
def test_a_login_stands_in_the_file_that_kafka_opts_names(tmp_path, monkeypatch, java_options):
    file = tmp_path / "jaas.conf"
    file.write_text(
        '// of the broker\nKafkaServer { a.B required username="no"; };\n'
        'KafkaClient {\n  org.apache.kafka.common.security.plain.PlainLoginModule required\n  username="alice" /* hers */\n  password="a;b}c";\n};\n'
    )
    monkeypatch.setenv("KAFKA_OPTS", java_options.format(file))
    assert jaas.jaas_options(None) == {"username": "alice", "password": "a;b}c"}
    assert jaas.jaas_options("a.B required username=bob;") == {"username": "bob"}, "the setting wins over the file"


@pytest.mark.parametrize("text, said", [(None, "cannot be read"), ("Server { a.B required; };", "no section KafkaClient")], ids=["no file", "no section"])
def test_a_login_file_that_does_not_serve_is_named(tmp_path, monkeypatch, text, said):
    file = tmp_path / "jaas.conf"
    if text:
        file.write_text(text)
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={file}")
    with pytest.raises(ConfigError, match=said) as refused:
        jaas.jaas_options(None)
    assert str(file) in str(refused.value)


class Endpoint:
    """Gives tokens by HTTP: `answer(number of the request)` is (status, body)."""

    def __init__(self, answer):
        self.asked, endpoint = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append((self.headers["Authorization"], body))
                status, answered = answer(len(endpoint.asked))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answered.encode())

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def token(seconds=3600, subject="alice"):
    parts = ({"alg": "none"}, {"sub": subject, "exp": time.time() + seconds})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


def good(number):
    return 200, json.dumps({"access_token": token(), "expires_in": 3600})


OAUTH = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": JAAS.format("oauthbearer.OAuthBearerLoginModule", 'clientId="me" clientSecret="s?crets" scope="all"'),
    "sasl.login.retry.backoff.ms": "20",
    "reconnect.backoff.ms": "20",
}


def logged_in(cluster, endpoint, connections=1, **settings):
    """Open so many connections; the tokens that the broker was shown."""
    made = Cluster({**OAUTH, "bootstrap.servers": cluster.bootstrap, "sasl.oauthbearer.token.endpoint.url": endpoint, **settings}, SYSTEM)
    try:
        made.cluster_id(timeout=10)
        opened = [made.connect(made.nodes()[0]) for _ in range(connections - 1)]
        for connection in opened:
            connection.close()
    finally:
        made.close()
    return [bytes(call.message.auth_bytes).partition(b"Bearer ")[2].partition(b"\x01")[0].decode() for call in cluster.seen(SaslAuthenticateRequest)]


def test_one_token_serves_all_connections():
    with fake.FakeCluster() as cluster, Endpoint(good) as endpoint:
        shown = logged_in(cluster, endpoint.url, connections=5)
    assert len(shown) == 5 and len(set(shown)) == 1 and len(endpoint.asked) == 1
    authorization, body = endpoint.asked[0]
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me:s?crets" and authorization.endswith("=")
    assert body == "grant_type=client_credentials&scope=all"


def test_a_token_is_asked_for_again_before_it_ends():
    with fake.FakeCluster() as cluster, Endpoint(lambda number: (200, json.dumps({"access_token": token(0.4, str(number))}))) as endpoint:
        settings = {"sasl.login.refresh.min.period.seconds": "0", "sasl.login.refresh.buffer.seconds": "0"}
        made = Cluster({**OAUTH, "bootstrap.servers": cluster.bootstrap, "sasl.oauthbearer.token.endpoint.url": endpoint.url, **settings}, SYSTEM)
        made.cluster_id()
        until(lambda: made.connect(made.nodes()[0]).close() or len(endpoint.asked) > 2, "a new token")
        made.close()


@pytest.mark.parametrize("status", [500, 503, 429], ids=str)
def test_an_endpoint_that_is_away_for_a_moment_passes(status):
    with fake.FakeCluster() as cluster, Endpoint(lambda number: (status, "later") if number < 3 else good(number)) as endpoint:
        assert len(logged_in(cluster, endpoint.url)) == 1
        assert len(endpoint.asked) == 3


def test_an_endpoint_that_cannot_be_reached_passes():
    with fake.FakeCluster() as cluster, socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/token"
        taken.close()
        with pytest.raises(LogRetriableError, match="No OAuth token from"):
            made = Cluster({**OAUTH, "bootstrap.servers": cluster.bootstrap, "sasl.oauthbearer.token.endpoint.url": url}, SYSTEM)
            made.cluster_id(timeout=0.5)


@pytest.mark.parametrize("status, body", [(401, "no"), (200, '{"error": "x"}')], ids=["refused", "no token in the answer"])
def test_an_endpoint_that_refuses_is_final(status, body):
    with fake.FakeCluster() as cluster, Endpoint(lambda number: (status, body)) as endpoint:
        with pytest.raises(LogFatalError, match="No OAuth token") as refused:
            logged_in(cluster, endpoint.url)
        assert len(endpoint.asked) == 1 and "s?crets" not in str(refused.value)


def test_a_token_that_a_broker_refuses_is_not_shown_again():
    with fake.FakeCluster() as cluster, Endpoint(lambda number: (200, json.dumps({"access_token": token(3600, str(number))}))) as endpoint:
        refusals = []

        def refuse(call):
            refusals.append(call)
            return call.answer(error_code=58, error_message="withdrawn", auth_bytes=b"", session_lifetime_ms=0) if len(refusals) == 1 else None

        cluster.control(SaslAuthenticateRequest, refuse)
        made = Cluster({**OAUTH, "bootstrap.servers": cluster.bootstrap, "sasl.oauthbearer.token.endpoint.url": endpoint.url}, SYSTEM)
        with pytest.raises(LogFatalError, match="withdrawn"):
            made.cluster_id()
        assert made.cluster_id() == "fake" and len(endpoint.asked) == 2
        made.close()


def test_a_token_from_a_file_is_read(tmp_path):
    file = tmp_path / "token"
    file.write_text(token() + "\n")
    with fake.FakeCluster() as cluster:
        assert logged_in(cluster, file.as_uri()) == [file.read_text().strip()]
