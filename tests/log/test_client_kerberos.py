"""Logins by Kerberos: a KDC of MIT's, a real broker with a keytab, and ours with another."""

import importlib.util
import os
import shutil
import socket
import subprocess

import pytest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse
from pytest import param

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogError, LogFatalError
from standalone.log.admin import Admin
from standalone.log.broker.kerberos import Rules
from standalone.log.broker.server import EmbeddedLog
from standalone.log.client import Cluster
from tests.log.broker_clients import RawClient
from tests.log.client_runs import until
from tests.servers.kafka_broker import KafkaBroker
from tests.servers.server import free_port
from tests.suite.patience import PATIENCE_SECONDS
from tests.suite.shared import skipped_where_unavailable

REALM = "TEST.LOCAL"
TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local")
LOGIN = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true {};"
KDC_CONF = """[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  kdc_ports = {port}
  kdc_tcp_ports = {port}
}}
[logging]
  kdc = FILE:{folder}/kdc.log
"""
KRB5_CONF = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
  localhost = {realm}
"""


class Kdc:
    """Of one realm, in a folder; its tools are Debian's krb5-kdc and krb5-admin-server."""

    def __init__(self, folder, port):
        self.folder, self.port, self._process = folder, port, None
        values = {"folder": folder, "port": port, "realm": REALM}
        (folder / "kdc.conf").write_text(KDC_CONF.format(**values))
        (folder / "krb5.conf").write_text(KRB5_CONF.format(**values))
        self.environment = {"KRB5_KDC_PROFILE": str(folder / "kdc.conf"), "KRB5_CONFIG": str(folder / "krb5.conf")}
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def run(self, *command):
        path = f"{os.environ['PATH']}:/usr/sbin"
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **self.environment, "PATH": path})

    def keytab(self, principal):
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self.run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path

    def start(self):
        command = [shutil.which("krb5kdc", path=f"{os.environ['PATH']}:/usr/sbin"), "-n", "-r", REALM]
        self._process = subprocess.Popen(command, env={**os.environ, **self.environment})
        until(self._answers, "the KDC")

    def _answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_SECONDS)
            self._process = None


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if missing or importlib.util.find_spec("gssapi") is None:
        pytest.skip(f"no Kerberos here: {', '.join(missing) or 'the package gssapi'} is not installed")
    kdc = Kdc(tmp_path_factory.mktemp("kdc"), free_port())
    kdc.own, kdc.alice = kdc.keytab("kafka/localhost"), kdc.keytab("alice")
    kdc.start()
    patch = pytest.MonkeyPatch()
    patch.setenv("KRB5_CONFIG", str(kdc.folder / "krb5.conf"))
    yield kdc
    patch.undo()
    kdc.stop()


@pytest.fixture(scope="module")
def kerberized(kdc):
    """(broker, KDC, the keytab of alice): a broker whose listener LOGIN takes tickets."""
    settings = {
        "listener.name.login.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.login.sasl.kerberos.service.name": "kafka",
        "listener.name.login.gssapi.sasl.jaas.config": LOGIN.format(f'keyTab="{kdc.own}" principal="kafka/localhost@{REALM}"'),
    }
    patch = pytest.MonkeyPatch()
    patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.folder / 'krb5.conf'}")
    try:
        with skipped_where_unavailable():
            broker = KafkaBroker({"LOGIN": "SASL_PLAINTEXT"}, (), settings).start()
    finally:
        patch.undo()
    yield broker, kdc, kdc.alice
    broker.stop()


def reach(broker, options, seconds=PATIENCE_SECONDS, **settings):
    config = {"bootstrap.servers": broker.address("LOGIN"), "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI",
              "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": LOGIN.format(options), **settings}
    made = Cluster(config, SYSTEM)
    try:
        return made.cluster_id(timeout=seconds)
    finally:
        made.close()


@pytest.mark.kafka
def test_a_keytab_logs_in(kerberized):
    broker, _, alice = kerberized
    assert reach(broker, f'keyTab="{alice}" principal="alice@{REALM}"')


@pytest.mark.kafka
@pytest.mark.parametrize("options", ['keyTab="/no/such.keytab" principal="alice@TEST.LOCAL"', 'keyTab="{alice}" principal="bob@TEST.LOCAL"'],
                         ids=["no keytab", "a principal that is not in it"])
def test_a_keytab_that_does_not_serve_is_final(kerberized, options):
    broker, _, alice = kerberized
    with pytest.raises(LogFatalError, match="Kerberos issued no ticket for kafka@localhost"):
        reach(broker, options.format(alice=alice))


@pytest.mark.kafka
def test_a_kdc_that_is_away_passes(kerberized):
    broker, kdc, alice = kerberized
    kdc.stop()
    try:
        with pytest.raises(LogError) as failed:
            reach(broker, f'keyTab="{alice}" principal="alice@{REALM}"', 3)
        assert not isinstance(failed.value, LogFatalError)
    finally:
        kdc.start()
    assert reach(broker, f'keyTab="{alice}" principal="alice@{REALM}"')


def test_without_a_service_name_there_is_no_login():
    if importlib.util.find_spec("gssapi") is None:
        pytest.skip("the package gssapi is not installed")
    from standalone.log.kerberos import Kerberos

    with pytest.raises(ConfigError, match="sasl.kerberos.service.name"):
        Kerberos({"sasl.kerberos.service.name": None}, {}, "localhost")


# ---- the embedded log, which takes tickets itself


@pytest.fixture
def tickets(kdc, tmp_path):
    """A log that only knows who has a ticket; alice may do everything."""
    log = EmbeddedLog(tmp_path / "log", "SASL_PLAINTEXT://localhost:0", {
        "embedded.log.gssapi.sasl.jaas.config": LOGIN.format(f'keyTab="{kdc.own}" principal="kafka/localhost@{REALM}"'),
        "embedded.log.authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "embedded.log.super.users": "User:alice",
    })
    log.start()
    yield log
    log.stop()


def admin_of(log, keytab, principal, **settings):
    config = {"bootstrap.servers": log.bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI",
              "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": LOGIN.format(f'keyTab="{keytab}" principal="{principal}"'), **settings}
    return Admin(Cluster(config, SYSTEM), config, SYSTEM)


def test_a_ticket_logs_in_at_the_embedded_log_and_says_who_it_is(kdc, tickets):
    assert admin_of(tickets, kdc.alice, f"alice@{REALM}").create_topics("made", 1)
    bob = kdc.keytab("bob")
    with pytest.raises(LogError, match="(?i)authoriz"):
        admin_of(tickets, bob, f"bob@{REALM}").create_topics("not-made", 1)
    assert [topic.name for topic in tickets._node.topics] == ["made"]


def test_a_ticket_for_another_service_is_refused(kdc, tickets):
    kdc.keytab("other/localhost")
    with pytest.raises(LogError, match="Authentication failed|ticket"):
        admin_of(tickets, kdc.alice, f"alice@{REALM}", **{"sasl.kerberos.service.name": "other"}).create_topics("no", 1)


def test_garbage_for_a_ticket_is_refused(tickets):
    with RawClient(tickets.bootstrap) as client:
        shaken = client.call(SaslHandshakeRequest(version=1, mechanism="GSSAPI"), SaslHandshakeResponse)
        assert shaken.error_code == 0 and "GSSAPI" in shaken.mechanisms
        answer = client.call(SaslAuthenticateRequest(version=2, auth_bytes=b"\x60garbage"), SaslAuthenticateResponse)
        assert answer.error_code == 58 and "ticket" in answer.error_message


@pytest.mark.kafka
def test_javas_clients_log_in_by_tickets(kdc, tickets, java, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.folder / 'krb5.conf'}")
    path = tmp_path / "alice.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
                    f"sasl.jaas.config={LOGIN.format(f'keyTab={chr(34)}{kdc.alice}{chr(34)} principal={chr(34)}alice@{REALM}{chr(34)}')}\n")
    command = ("--bootstrap-server", tickets.bootstrap, "--command-config", str(path), "--create", "--topic", "by-java")
    assert "Created topic by-java" in java("org.apache.kafka.tools.TopicCommand", *command)


@pytest.mark.parametrize("given, said", [
    param('keyTab="/no/such.keytab" principal="kafka/localhost@TEST.LOCAL"', "keytab", id="no keytab"),
    param('principal="kafka/localhost@TEST.LOCAL"', "keyTab not set", id="none named"),
    param('keyTab="/k" principal="kafka"', "not a principal", id="no realm"),
])
def test_a_log_that_cannot_take_tickets_does_not_start(kdc, tmp_path, given, said):
    with pytest.raises(ConfigError, match=said) as refused:
        EmbeddedLog(tmp_path, "SASL_PLAINTEXT://localhost:0", {"embedded.log.gssapi.sasl.jaas.config": LOGIN.format(given)})
    assert list(refused.value.errors) == ["embedded.log.gssapi.sasl.jaas.config"]


def test_gssapi_without_a_keytab_is_not_to_be_had(tmp_path):
    with pytest.raises(ConfigError, match="keytab"):
        EmbeddedLog(tmp_path, "SASL_PLAINTEXT://localhost:0", {"embedded.log.sasl.enabled.mechanisms": "GSSAPI"})


@pytest.mark.parametrize("rules, principal, name", [
    param("DEFAULT", "alice@OURS", "alice", id="the first part"),
    param("DEFAULT", "kafka/host@OURS", "kafka", id="of two"),
    param("DEFAULT", "alice@THEIRS", None, id="another realm"),
    param("RULE:[1:$1@$0](.*@THEIRS)s/@.*//,DEFAULT", "alice@THEIRS", "alice", id="a rule for it"),
    param("RULE:[1:$1@$0](.*@THEIRS)s/@.*//,DEFAULT", "alice@OURS", "alice", id="the next rule"),
    param("RULE:[2:$1.$2]", "nn/host@THEIRS", "nn.host", id="two parts"),
    param("RULE:[2:$1.$2]", "nn@THEIRS", None, id="a rule for two parts"),
    param("RULE:[1:$1]s/a/o/g", "banana@X", "bonono", id="all places"),
    param("RULE:[1:$1]s/a/o/", "banana@X", "bonana", id="the first place"),
    param("RULE:[1:$1]/U", "alice@X", "ALICE", id="large letters"),
    param("RULE:[1:$1](A.*)/L,DEFAULT", "Alice@X", "alice", id="small letters"),
])
def test_how_a_principal_is_called(rules, principal, name):
    assert Rules(rules, "OURS").name_of(principal) == name


@pytest.mark.parametrize("rules", ["RULE:", "alice", "RULE:[1:$1](", "RULE:[1:$1]s/(/x/"])
def test_rules_that_cannot_be_read(rules):
    with pytest.raises(ConfigError):
        Rules(rules, "OURS")
