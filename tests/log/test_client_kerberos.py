"""Logins by Kerberos: a KDC of MIT's, a real broker with a keytab, and ours with another."""

import importlib.util
import os
import shutil
import socket
import subprocess

import pytest

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogError, LogFatalError
from standalone.log.client import Cluster
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
def kerberized(tmp_path_factory):
    """(broker, KDC, the keytab of alice): a broker whose listener LOGIN takes tickets."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if missing or importlib.util.find_spec("gssapi") is None:
        pytest.skip(f"no Kerberos here: {', '.join(missing) or 'the package gssapi'} is not installed")
    kdc = Kdc(tmp_path_factory.mktemp("kdc"), free_port())
    own, alice = kdc.keytab("kafka/localhost"), kdc.keytab("alice")
    kdc.start()
    settings = {
        "listener.name.login.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.login.sasl.kerberos.service.name": "kafka",
        "listener.name.login.gssapi.sasl.jaas.config": LOGIN.format(f'keyTab="{own}" principal="kafka/localhost@{REALM}"'),
    }
    patch = pytest.MonkeyPatch()
    patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.folder / 'krb5.conf'}")
    try:
        with skipped_where_unavailable():
            broker = KafkaBroker({"LOGIN": "SASL_PLAINTEXT"}, (), settings).start()
    finally:
        patch.undo()
    patch.setenv("KRB5_CONFIG", str(kdc.folder / "krb5.conf"))
    yield broker, kdc, alice
    patch.undo()
    broker.stop()
    kdc.stop()


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
    with pytest.raises(LogFatalError, match="Kerberos gives no ticket for kafka@localhost"):
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
