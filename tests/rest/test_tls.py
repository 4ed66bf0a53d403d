"""https listeners with certificates made on the fly: who is let in, with which versions and ciphers, and which keys will not do."""

import pathlib
import socket
import ssl
import subprocess

import httpx
import pytest
from pytest import param

from standalone.errors import ConfigError
from standalone.rest.tls import server_context
from standalone.runtime.configuration.worker_config import WorkerConfig
from tests.rest.conftest import Api
from tests.runtime.local import LocalWorker

STRING = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder: an authority, a server's and a client's certificate of its making, and a stranger's."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for authority in ("ca", "stranger-ca"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{authority}.key", "-out", f"{authority}.pem", "-days", "2", "-subj", f"/CN={authority}")
    for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "stranger-ca")):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl(*f"x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {name}.pem -days 2 -extfile san".split())
        (folder / f"{name}-both.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.pem").read_text())
    openssl("pkcs8", "-topk8", "-in", "server.key", "-out", "server-locked.key", "-passout", "pass:open sesame")
    (folder / "locked-both.pem").write_text((folder / "server-locked.key").read_text() + (folder / "server.pem").read_text())
    (folder / "store.jks").write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    return folder


def keys(folder, spec):
    """Keys of the worker out of `location`-like words; FOLDER stands for the certificates' folder, @name for a file's text."""
    found = {}
    for key, value in spec.items():
        value = (folder / value[1:]).read_text() if value.startswith("@") else value
        found[f"ssl.{key}" if not key.startswith(("listeners.", "admin.", "rest.")) else key] = value.replace("FOLDER", str(folder))
    return found


BOTH = {"keystore.type": "PEM", "keystore.location": "FOLDER/server-both.pem"}
INLINE = {"keystore.type": "PEM", "keystore.certificate.chain": "@server.pem", "keystore.key": "@server.key"}
LOCKED = {"keystore.location": "FOLDER/locked-both.pem", "key.password": "open sesame"}
ASKED = {**BOTH, "client.auth": "required", "truststore.location": "FOLDER/ca.pem"}


def https(worker, folder, client=None, **more):
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if client:
        context.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    for name, value in more.items():
        setattr(context, name, value)
    port = worker.process.rest.address[1]
    return httpx.Client(base_url=f"https://localhost:{port}", verify=context, timeout=20)


@pytest.mark.parametrize(
    "spec, client, let_in",
    [
        param(BOTH, None, True, id="certificate and key in one file"),
        param(INLINE, None, True, id="as texts"),
        param({**INLINE, "keystore.certificate.chain": "one line"}, None, True, id="as texts in one line"),
        param(LOCKED, None, True, id="an encrypted key"),
        param({f"listeners.https.ssl.{key}": value for key, value in BOTH.items()}, None, True, id="keys of the listeners alone"),
        param(ASKED, "client", True, id="a client that shows what is required"),
        param(ASKED, None, False, id="a client that does not"),
        param(ASKED, "stranger", False, id="a client of another authority"),
        param({**ASKED, "client.auth": "requested"}, None, True, id="requested, not shown"),
        param({**ASKED, "client.auth": "requested"}, "client", True, id="requested and shown"),
        param({**ASKED, "client.auth": "requested"}, "stranger", False, id="requested, and a wrong one shown"),
        param({**BOTH, "client.auth": "required", "truststore.certificates": "@ca.pem"}, "client", True, id="trusted as a text"),
    ],
)
def test_who_is_let_in(tmp_path, certificates, spec, client, let_in):
    props = keys(certificates, spec)
    if spec.get("keystore.certificate.chain") == "one line":
        props["ssl.keystore.certificate.chain"] = (certificates / "server.pem").read_text().replace("\n", " ")
    with LocalWorker(tmp_path, **{"listeners": "https://localhost:0", **props}) as worker:
        with https(worker, certificates, client) as http:
            if let_in:
                assert http.get("/connectors").json() == []
            else:
                with pytest.raises((httpx.TransportError, ssl.SSLError)):
                    http.get("/connectors")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://localhost:{worker.process.rest.address[1]}/", timeout=5)


def test_http_https_and_an_admin_listener_of_its_own_side_by_side(tmp_path, certificates):
    props = {
        "listeners": "https://localhost:0,http://127.0.0.1:0,https://127.0.0.1:0",
        "admin.listeners": "https://localhost:0",
        **keys(certificates, {f"listeners.https.ssl.{key}": value for key, value in BOTH.items()}),
        **keys(certificates, {f"admin.listeners.https.ssl.{key}": value for key, value in ASKED.items()}),
    }
    with LocalWorker(tmp_path, **props) as worker:
        listeners = worker.process.rest._listeners
        for listener in listeners:
            context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
            assert httpx.get(f"{listener.url}/connectors", verify=context).json() == []
        assert worker.process.worker.id == f"127.0.0.1:{listeners[1].address[1]}", "http is what others are told, where there is any"
        with https(worker, certificates, "client") as http:
            admin = f"https://localhost:{worker.process.rest.admin_address[1]}"
            assert http.get(f"{admin}/admin/loggers").status_code == 200
            assert http.get("/admin/loggers").status_code == 404
        with https(worker, certificates) as http, pytest.raises((httpx.TransportError, ssl.SSLError)):
            http.get(f"{admin}/admin/loggers")


@pytest.mark.parametrize(
    "props, told",
    [
        ({}, "localhost:{0}"),
        ({"rest.advertised.host.name": "connect.example"}, "connect.example:{0}"),
        ({"rest.advertised.port": "7000"}, "localhost:7000"),
        ({"rest.advertised.listener": "https"}, "127.0.0.1:{1}"),
        ({"rest.advertised.listener": "https", "rest.advertised.host.name": "a.example", "rest.advertised.port": "1"}, "a.example:1"),
    ],
)
def test_what_others_are_told(tmp_path, certificates, props, told):
    listeners = "http://localhost:0,https://127.0.0.1:0"
    with LocalWorker(tmp_path, **{"listeners": listeners, **keys(certificates, BOTH), **props}) as worker:
        ports = [listener.address[1] for listener in worker.process.rest._listeners]
        (tmp_path / "in").write_text("x\n")
        worker.source("a", tmp_path / "in", "t")
        assert Api(worker).json("GET", "/connectors/a/status")["connector"]["worker_id"] == told.format(*ports)


@pytest.mark.parametrize(
    "spec, version, cipher",
    [
        ({"enabled.protocols": "TLSv1.2"}, "TLSv1.2", None),
        ({"enabled.protocols": "TLSv1.3"}, "TLSv1.3", None),
        ({}, "TLSv1.3", None),
        ({"cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, "TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
        ({"cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"}, "TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
        ({"cipher.suites": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"}, "TLSv1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
        ({"cipher.suites": "TLS_AES_256_GCM_SHA384"}, "TLSv1.3", None),
    ],
)
def test_versions_and_ciphers(certificates, spec, version, cipher):
    """A handshake in memory."""
    server = server_context(worker_config(keys(certificates, {**BOTH, **spec})), "listeners.https.")
    client = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    pipes = [ssl.MemoryBIO(), ssl.MemoryBIO()]
    ends = [client.wrap_bio(pipes[0], pipes[1], server_hostname="localhost"), server.wrap_bio(pipes[1], pipes[0], server_side=True)]
    for end in ends * 4:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert ends[1].version() == version
    assert cipher is None or ends[1].cipher()[0] == cipher


def worker_config(props):
    return WorkerConfig.of({"key.converter": STRING, "value.converter": STRING, "offset.storage.file.filename": "/nowhere", **props})


@pytest.mark.parametrize(
    "spec, key",
    [
        param({}, "ssl.keystore.location", id="no certificate"),
        param({"keystore.location": "FOLDER/none.pem"}, "ssl.keystore.location", id="a file that is not there"),
        param({"keystore.location": "FOLDER/store.jks"}, "ssl.keystore.location", id="Java's key store"),
        param({"keystore.location": "FOLDER/server.pem"}, "ssl.keystore.location", id="a certificate without its key"),
        param({"keystore.certificate.chain": "@server.pem"}, "ssl.keystore.key", id="a text without the key's"),
        param({**INLINE, "keystore.key": "@client.key"}, "ssl.keystore.certificate.chain", id="another's key"),
        param({**LOCKED, "key.password": "open barley"}, "ssl.keystore.location", id="a wrong password"),
        param({"keystore.location": "FOLDER/locked-both.pem"}, "ssl.keystore.location", id="a password that is missing"),
        param({**BOTH, "client.auth": "required"}, "ssl.truststore.location", id="nobody trusted"),
        param({**BOTH, "client.auth": "required", "truststore.certificates": "text"}, "ssl.truststore.certificates", id="no certificate to trust"),
        param({**BOTH, "enabled.protocols": "SSLv3"}, "ssl.enabled.protocols", id="a version that is unknown"),
        param({**BOTH, "cipher.suites": "TLS_NO_SUCH"}, "ssl.cipher.suites", id="an unknown suite"),
        param({"listeners.https.ssl.client.auth": "none", **BOTH}, "listeners.https.ssl.keystore.location", id="one prefixed key is all there is"),
    ],
)
def test_keys_that_will_not_do(certificates, spec, key):
    with pytest.raises(ConfigError) as told:
        server_context(worker_config(keys(certificates, spec)), "listeners.https.")
    assert list(told.value.errors) == [key]
    assert "open barley" not in str(told.value) and "PRIVATE" not in str(told.value)


def test_a_worker_without_a_certificate_does_not_start(tmp_path):
    with pytest.raises(ConfigError, match="certificate"), LocalWorker(tmp_path, listeners="https://localhost:0"):
        pass
    assert not list(pathlib.Path(tmp_path).glob("*.state"))


def shown_to(worker, folder, name, client=None):
    """The common name of the certificate that a new connection is shown, and the connection; with or without a server's name (SNI)."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.check_hostname = False
    if client:
        context.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    connection = context.wrap_socket(socket.create_connection(worker.process.rest.address, 20), server_hostname=name)
    return dict(part[0] for part in connection.getpeercert()["subject"])["commonName"], connection


def asked(connection):
    """The status of a request on that connection, which stays open."""
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    said = b""
    while b'"message"' not in said:
        piece = connection.recv(65536)
        assert piece, "the connection was dropped"
        said += piece
    return int(said.split()[1])


@pytest.mark.parametrize("name", ["localhost", None])
def test_a_certificate_that_changes_is_taken_and_no_connection_is_dropped(tmp_path, certificates, caplog, name):
    own = tmp_path / "own.pem"
    own.write_text((certificates / "server-both.pem").read_text())
    with LocalWorker(tmp_path, **{"listeners": "https://localhost:0", "ssl.keystore.location": str(own)}) as worker:
        shown, before = shown_to(worker, certificates, name)
        assert (shown, asked(before)) == ("server", 200)

        own.write_text("-----BEGIN CERTIFICATE-----\nhalf written")
        shown, meanwhile = shown_to(worker, certificates, name)
        assert (shown, asked(meanwhile)) == ("server", 200), "the earlier one is kept"
        asked_again = shown_to(worker, certificates, name)
        assert asked_again[0] == "server"
        assert len([record for record in caplog.records if "are invalid" in record.message]) == 1, "and that is said once"

        (tmp_path / "new.pem").write_text((certificates / "client-both.pem").read_text())
        (tmp_path / "new.pem").replace(own)
        shown, after = shown_to(worker, certificates, name)
        assert shown == "client"
        assert [asked(connection) for connection in (before, meanwhile, after)] == [200, 200, 200]

        own.unlink()
        assert shown_to(worker, certificates, name)[0] == "client", "nor is it needed any more"
        for connection in (before, meanwhile, after, asked_again[1]):
            connection.close()


def test_trusted_authorities_that_change_are_taken(tmp_path, certificates):
    trusted = tmp_path / "trusted.pem"
    trusted.write_text((certificates / "ca.pem").read_text())
    props = keys(certificates, {**BOTH, "client.auth": "required"})
    with LocalWorker(tmp_path, **{"listeners": "https://localhost:0", **props, "ssl.truststore.location": str(trusted)}) as worker:

        def let_in(client):
            try:
                return asked(shown_to(worker, certificates, "localhost", client)[1]) == 200
            except (ssl.SSLError, ConnectionError, AssertionError):
                return False

        assert (let_in("client"), let_in("stranger")) == (True, False)
        trusted.write_text((certificates / "stranger-ca.pem").read_text())
        assert (let_in("client"), let_in("stranger")) == (False, True)
