"""The embedded log's listeners: TLS, certificates, logins; and what clients may do, by ACLs that Kafka's own tools manage."""

import base64
import json
import socket
import time

import pytest
from kafka.protocol import metadata
from pytest import param

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogFatalError, StartError
from standalone.log.broker import acls, operations
from standalone.log.broker.client import principal_rules, subject_of
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.server import HANDLERS, EmbeddedLog
from standalone.log.client import Cluster
from tests.log.broker_clients import RawClient, wait_for
from tests.log.test_broker_versions import EVERY, MESSAGES
from tests.suite.certificates import make_certificates
from tests.suite.patience import PATIENCE_SECONDS

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import admin as stock  # noqa: E402

AUTHORIZER = {"embedded.log.authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = {"embedded.log.sasl.jaas.config": f'{PLAIN_MODULE} required user_ann="ann\'s secret" user_root="root\'s secret";'}
FORBIDDEN = {code.errno for code in acls.FORBIDDEN.values()}


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """A folder with ca.pem, broker.pem for localhost, and client.pem of CN=client,O=us."""
    return make_certificates(tmp_path_factory.mktemp("pem"), broker="/CN=broker", client="/O=us/CN=client")


@pytest.fixture
def start(tmp_path):
    """start(listener, settings): an embedded log."""
    logs = []

    def starting(listener="127.0.0.1:0", folder="log", **settings):
        log = EmbeddedLog(tmp_path / folder, listener, settings.pop("settings", {}))
        log.start()
        logs.append(log)
        return log

    yield starting
    for log in logs:
        log.stop()


def keystore(pem):
    return {"embedded.log.ssl.keystore.type": "PEM", "embedded.log.ssl.keystore.location": str(pem / "broker.pem")}


def truststore(pem):
    return {"embedded.log.ssl.truststore.type": "PEM", "embedded.log.ssl.truststore.location": str(pem / "ca.pem")}


def reach(bootstrap, **settings):
    """The cluster's id, by our own client."""
    config = {"bootstrap.servers": bootstrap, **{name.replace("_", "."): str(value) for name, value in settings.items()}}
    made = Cluster(config, SYSTEM)
    try:
        return made.cluster_id(timeout=5)
    finally:
        made.close()


def trust(pem):
    return {"security_protocol": "SSL", "ssl_truststore_type": "PEM", "ssl_truststore_location": pem / "ca.pem"}


def login(user, password, mechanism, protocol="SASL_PLAINTEXT"):
    module = PLAIN_MODULE if mechanism == "PLAIN" else "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="{user}" password="{password}";'
    return {"security_protocol": protocol, "sasl_mechanism": mechanism, "sasl_jaas_config": jaas}


def librdkafka(log, user="root", mechanism="SCRAM-SHA-256", password=None, **more):
    return {
        "bootstrap.servers": log.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password or f"{user}'s secret",
        **more,
    }


# ---- TLS


def test_records_go_over_tls_both_ways_whatever_their_size(start, pem):
    log = start("SSL://127.0.0.1:0", settings=keystore(pem) | {"embedded.log.max.message.bytes": "20000000"})
    config = {"bootstrap.servers": log.bootstrap, "security.protocol": "SSL", "ssl.ca.location": str(pem / "ca.pem")}
    client = stock.AdminClient(config)
    client.create_topics([stock.NewTopic("t", 1)])["t"].result(PATIENCE_SECONDS)
    sent = [bytes([size % 251]) * size for size in (1, 16_383, 16_384, 70_000, 900_000, 3)] * 8
    writer = confluent_kafka.Producer({**config, "message.max.bytes": 2_000_000, "linger.ms": 5})
    for value in sent:
        writer.produce("t", value)
    assert writer.flush(20) == 0
    reader = confluent_kafka.Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest", "fetch.message.max.bytes": 5_000_000})
    reader.subscribe(["t"])
    found, deadline = [], time.monotonic() + PATIENCE_SECONDS
    while len(found) < len(sent) and time.monotonic() < deadline:
        found += [message.value() for message in reader.consume(100, 0.1)]
    reader.close()
    assert found == sent


def test_a_client_that_speaks_plainly_to_a_tls_listener_is_hung_up_on_and_others_are_served(start, pem):
    log = start("SSL://127.0.0.1:0", settings=keystore(pem))
    with RawClient(log.bootstrap) as plain, pytest.raises((ConnectionError, OSError)):
        plain.send(metadata.ApiVersionsRequest(version=0))
        plain._exactly(100)
    silent = socket.create_connection(log.bootstrap.split(":"))  # half a handshake holds nobody up
    silent.sendall(b"\x16\x03\x01")
    assert reach(log.bootstrap, **trust(pem))
    silent.close()


@pytest.mark.parametrize("auth, shown, let_in", [("none", False, True), ("requested", False, True), ("requested", True, True),
                                                 ("required", False, False), ("required", True, True)])
def test_certificates_of_clients(start, pem, auth, shown, let_in):
    log = start("SSL://127.0.0.1:0", settings=keystore(pem) | truststore(pem) | {"embedded.log.ssl.client.auth": auth})
    identity = {"ssl_keystore_type": "PEM", "ssl_keystore_location": pem / "client.pem"} if shown else {}
    if let_in:
        assert reach(log.bootstrap, **trust(pem), **identity)
    else:
        with pytest.raises(LogFatalError, match="TLS with the broker"):
            reach(log.bootstrap, **trust(pem))


@pytest.mark.parametrize("rules, allowed", [("DEFAULT", "User:CN=client,O=us"), ("RULE:^CN=(.*?),.*$/$1/U,DEFAULT", "User:CLIENT")])
def test_a_certificates_subject_is_who_the_client_is(start, pem, rules, allowed):
    own = {"embedded.log.ssl.client.auth": "required", "embedded.log.super.users": allowed, "embedded.log.ssl.principal.mapping.rules": rules}
    log = start("SSL://127.0.0.1:0", settings=keystore(pem) | truststore(pem) | AUTHORIZER | own)
    identity = {"ssl.certificate.location": str(pem / "client.crt"), "ssl.key.location": str(pem / "client.key")}
    client = stock.AdminClient({"bootstrap.servers": log.bootstrap, "security.protocol": "SSL", "ssl.ca.location": str(pem / "ca.pem"), **identity})
    client.create_topics([stock.NewTopic("t", 1)])["t"].result(PATIENCE_SECONDS)
    assert "t" in client.list_topics(timeout=5).topics


@pytest.mark.parametrize(
    "certificate, subject",
    [
        (((("countryName", "DE"),), (("organizationName", "a, b"),), (("commonName", "x"),)), r"CN=x,O=a\, b,C=DE"),
        (((("commonName", "x"), ("userId", "7")),), "CN=x+UID=7"),
        ((), ""),
    ],
)
def test_subjects_are_written_as_java_writes_them(certificate, subject):
    assert subject_of({"subject": certificate}) == subject


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="ssl.principal.mapping.rules"):
        principal_rules("RULE:x")


# ---- listeners


def test_each_listener_of_several_has_its_protocol_and_address(start, pem):
    names = {
        "embedded.log.listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SSL",
        "embedded.log.advertised.listeners": "OUTSIDE://kafka.example:19093",
    }
    log = start("INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0", settings=keystore(pem) | names)
    with RawClient(log.bootstrap) as client:
        found = client.call(metadata.MetadataRequest(version=9, topics=[]), metadata.MetadataResponse).brokers[0]
        assert f"{found.host}:{found.port}" == log.bootstrap
    outside = Cluster({"bootstrap.servers": log.bootstrap_of("SSL"), "security.protocol": "SSL", "ssl.truststore.type": "PEM",
                       "ssl.truststore.location": str(pem / "ca.pem")}, SYSTEM)
    outside.cluster_id(timeout=5)
    assert [(node.host, node.port) for node in outside.nodes()] == [("kafka.example", 19093)]
    outside.close()


@pytest.mark.parametrize(
    "listener, settings, error",
    [
        param("KAFKA://127.0.0.1:0", {}, "names no protocol", id="a protocol that nobody knows"),
        param("127.0.0.1:0,127.0.0.1:0", {}, "two listeners are called PLAINTEXT", id="two of a name"),
        param("SSL://127.0.0.1:0", {}, "embedded.log.ssl.keystore.location", id="TLS without a key"),
        param("SSL://127.0.0.1:0", {"embedded.log.ssl.keystore.location": "/nowhere"}, "embedded.log.ssl.keystore.location", id="a key that is not there"),
        param("127.0.0.1:0", {"embedded.log.advertised.listeners": "SSL://h:1"}, "belongs to no listener", id="an address of no listener"),
        param("127.0.0.1:0", {"embedded.log.authorizer.class.name": "my.Own"}, "authorizer.class.name", id="another authorizer"),
        param("127.0.0.1:0", {"embedded.log.sasl.enabled.mechanisms": "CRAM-MD5"}, "sasl.enabled.mechanisms", id="a login that is not offered"),
        param("127.0.0.1:0", {"embedded.log.sasl.enabled.mechanisms": "OAUTHBEARER"}, "jwks.endpoint.url", id="tokens without keys"),
        param("127.0.0.1:0", {"embedded.log.sasl.jaas.config": "no module"}, "embedded.log.sasl.jaas.config", id="users that cannot be read"),
    ],
)
def test_wrong_settings_are_refused_by_their_names(tmp_path, listener, settings, error):
    with pytest.raises((ConfigError, StartError), match=error):
        EmbeddedLog(tmp_path, listener, settings)


# ---- logins


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_users_of_the_settings_log_in_by_each_mechanism(start, pem, protocol, mechanism):
    log = start(f"{protocol}://127.0.0.1:0", settings=keystore(pem) | USERS)
    told = {**trust(pem), **login("ann", "ann's secret", mechanism, protocol)}
    assert reach(log.bootstrap, **told)
    for user, password in (("ann", "wrong"), ("nobody", "ann's secret"), ("nobody", "")):
        with pytest.raises(LogFatalError, match="invalid credentials") as refused:
            reach(log.bootstrap, **{**told, **login(user, password, mechanism, protocol)})
        assert password == "" or password not in str(refused.value)


def test_who_has_not_logged_in_gets_nothing_but_the_versions(start):
    log = start("SASL_PLAINTEXT://127.0.0.1:0", settings=USERS)
    with RawClient(log.bootstrap) as client:
        assert client.call(metadata.ApiVersionsRequest(version=0), metadata.ApiVersionsResponse).error_code == 0
        client.send(metadata.MetadataRequest(version=9, topics=None))
        with pytest.raises(ConnectionError):
            client.receive_frame()
    with RawClient(log.bootstrap) as client:
        client.sock.sendall((1 << 20).to_bytes(4, "big"))  # no stranger has a megabyte kept for him
        with pytest.raises(ConnectionError):
            client.receive_frame()


def test_a_token_without_a_request_is_taken_after_the_oldest_handshake(start):
    from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

    log = start("SASL_PLAINTEXT://127.0.0.1:0", settings=USERS)
    with RawClient(log.bootstrap) as client:
        assert client.call(SaslHandshakeRequest(version=0, mechanism="PLAIN"), SaslHandshakeResponse).error_code == 0
        token = b"\0ann\0ann's secret"
        client.sock.sendall(len(token).to_bytes(4, "big") + token)
        assert client.receive_frame() == b""
        assert client.call(metadata.MetadataRequest(version=9, topics=[]), metadata.MetadataResponse).brokers


def test_scram_users_are_made_changed_and_taken_away_by_admin_tools_and_outlive_the_log(start):
    log = start("SASL_PLAINTEXT://127.0.0.1:0", settings=USERS | AUTHORIZER | {"embedded.log.super.users": "User:root"})
    client = stock.AdminClient(librdkafka(log))
    kind = stock.ScramCredentialInfo(stock.ScramMechanism.SCRAM_SHA_512, 4096)
    client.alter_user_scram_credentials([stock.UserScramCredentialUpsertion("bob", kind, b"first")])["bob"].result(PATIENCE_SECONDS)
    assert reach(log.bootstrap, **login("bob", "first", "SCRAM-SHA-512"))
    client.alter_user_scram_credentials([stock.UserScramCredentialUpsertion("bob", kind, b"second")])["bob"].result(PATIENCE_SECONDS)
    log.stop()
    log = start("SASL_PLAINTEXT://127.0.0.1:0", settings=USERS)
    assert reach(log.bootstrap, **login("bob", "second", "SCRAM-SHA-512"))
    for refused in (login("bob", "first", "SCRAM-SHA-512"), login("bob", "second", "SCRAM-SHA-256"), login("bob", "second", "PLAIN")):
        with pytest.raises(LogFatalError, match="invalid credentials"):
            reach(log.bootstrap, **refused)
    client = stock.AdminClient(librdkafka(log))
    deletion = stock.UserScramCredentialDeletion("bob", stock.ScramMechanism.SCRAM_SHA_512)
    client.alter_user_scram_credentials([deletion])["bob"].result(PATIENCE_SECONDS)
    with pytest.raises(LogFatalError, match="invalid credentials"):
        reach(log.bootstrap, **login("bob", "second", "SCRAM-SHA-512"))


def test_a_token_that_its_issuer_signed_is_a_login_until_it_ends(start, tmp_path):
    jwt = pytest.importorskip("jwt")
    from cryptography.hazmat.primitives.asymmetric import ec

    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())) | {"kid": "one", "use": "sig", "alg": "ES256"}
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [public]}))
    now = time.time()

    def token(signed_by=key, algorithm="ES256", **claims):
        claims = {"sub": "ann", "aud": "kafka", "iss": "us", "exp": now + 60, **claims}
        return jwt.encode(claims, signed_by, algorithm, {"kid": "one"})

    log = start("SASL_PLAINTEXT://127.0.0.1:0", settings={
        "embedded.log.sasl.enabled.mechanisms": "OAUTHBEARER",
        "embedded.log.sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
        "embedded.log.sasl.oauthbearer.expected.audience": "kafka",
        "embedded.log.sasl.oauthbearer.expected.issuer": "us",
        "embedded.log.sasl.oauthbearer.clock.skew.seconds": 0,
    })

    def reached_with(text):
        (tmp_path / "token").write_text(text)
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        return reach(log.bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=f"{module} required ;",
                     sasl_oauthbearer_token_endpoint_url=(tmp_path / "token").as_uri())

    assert reached_with(token())
    unsigned = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (
        {"alg": "none", "kid": "one"}, {"sub": "ann", "aud": "kafka", "iss": "us", "exp": now + 60})) + "."
    wrong = [token(other), token(exp=now - 5), token(aud="others"), token(iss="others"), token(sub=""), unsigned]
    for text in wrong:
        with pytest.raises(LogFatalError, match="token"):
            reached_with(text)


# ---- ACLs


def acl(resource=operations.TOPIC, name="t", pattern=acls.LITERAL, principal="User:ann", host="*", operation=operations.READ, permission=acls.ALLOW):
    return acls.Acl(resource, name, pattern, principal, host, operation, permission)


class Kept:
    """A store in memory."""

    def documents(self, kind):
        return {}

    def save_document(self, kind, name, body):
        pass

    delete_document = save_document


@pytest.mark.parametrize(
    "given, asked, allowed",
    [
        param([], ("User:ann", "h", operations.READ, "t"), False, id="without an ACL nothing is allowed"),
        param([acl()], ("User:ann", "h", operations.READ, "t"), True, id="what it names"),
        param([acl()], ("User:bob", "h", operations.READ, "t"), False, id="another user"),
        param([acl()], ("User:ann", "h", operations.WRITE, "t"), False, id="another operation"),
        param([acl()], ("User:ann", "h", operations.READ, "tt"), False, id="another topic"),
        param([acl()], ("User:ann", "h", operations.DESCRIBE, "t"), True, id="who reads may describe"),
        param([acl(operation=operations.ALTER_CONFIGS)], ("User:ann", "h", operations.DESCRIBE_CONFIGS, "t"), True, id="who alters configs may see them"),
        param([acl(operation=operations.ALL)], ("User:ann", "h", operations.DELETE, "t"), True, id="all operations"),
        param([acl(name="*")], ("User:ann", "h", operations.READ, "t"), True, id="all topics"),
        param([acl(pattern=acls.PREFIXED)], ("User:ann", "h", operations.READ, "tt"), True, id="a prefix"),
        param([acl(principal="User:*")], ("User:ann", "h", operations.READ, "t"), True, id="everyone"),
        param([acl(host="h")], ("User:ann", "h", operations.READ, "t"), True, id="its host"),
        param([acl(host="h")], ("User:ann", "i", operations.READ, "t"), False, id="another host"),
        param([acl(), acl(permission=acls.DENY)], ("User:ann", "h", operations.READ, "t"), False, id="a denial outweighs"),
        param([acl(), acl(name="*", permission=acls.DENY, operation=operations.ALL)], ("User:ann", "h", operations.READ, "t"), False, id="a denial of all"),
        param([acl(), acl(permission=acls.DENY)], ("User:ann", "h", operations.DESCRIBE, "t"), True, id="a denial implies nothing"),
        param([], ("User:root", "h", operations.READ, "t"), True, id="a super user"),
        param([acl(permission=acls.DENY)], ("User:root", "h", operations.READ, "t"), True, id="a super user is never denied"),
    ],
)
def test_what_acls_allow(given, asked, allowed):
    kept = acls.Acls(Kept())
    authorizer = acls.Authorizer(kept, True, ["User:root"])
    for each in given:
        kept.add(each)
    principal, host, operation, name = asked
    assert authorizer.allows(principal, host, operation, operations.TOPIC, name) is allowed


def test_what_no_acl_speaks_of_is_open_to_all_where_that_is_set():
    kept = acls.Acls(Kept())
    authorizer = acls.Authorizer(kept, True, open_without_acls=True)
    assert authorizer.allows("User:bob", "h", operations.READ, operations.TOPIC, "t")
    kept.add(acl())
    assert not authorizer.allows("User:bob", "h", operations.READ, operations.TOPIC, "t")
    assert authorizer.allows("User:bob", "h", operations.READ, operations.TOPIC, "other")


@pytest.mark.parametrize("wrong", [acl(resource=9), acl(pattern=1), acl(name=""), acl(operation=77), acl(permission=1), acl(principal="ann"),
                                   acl(resource=operations.CLUSTER)])
def test_an_acl_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(Refusal):
        acls.Acls(Kept()).add(wrong)


@pytest.fixture
def guarded(start):
    """A log where nobody may do anything but its super user; and the worker's own clients."""
    return start("127.0.0.1:0", settings=AUTHORIZER)


def own_client(log):
    settings = log.own_settings
    config = {"bootstrap.servers": settings["bootstrap.servers"], "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
    words = settings["sasl.jaas.config"].split('"')
    return {**config, "sasl.username": words[1], "sasl.password": words[3]}


FILTERED = {"ListGroups", "ListTransactions", "DescribeCluster"}  # they say what the client may know of


@pytest.mark.parametrize("key", sorted(key for key, row in HANDLERS.items() if row.needs), ids=lambda key: MESSAGES[key][0].__name__)
def test_each_request_is_refused_in_every_version_to_who_may_not(guarded, key):
    request_class, response_class = MESSAGES[key]
    name = request_class.__name__.removesuffix("Request")
    owner = stock.AdminClient(own_client(guarded))
    owner.create_topics([stock.NewTopic("t", 1)])["t"].result(PATIENCE_SECONDS)
    before = guarded.sizes()
    with RawClient(guarded.bootstrap) as client:
        row = HANDLERS[key]
        for version in range(row.low, row.high + 1):
            response = client.call(request_class(version=version, **EVERY[name](guarded, version)), response_class)
            found = _error_codes(response)
            assert not found - FORBIDDEN - {0, codes.UnknownTopicIdError.errno}, (version, response)
            says_no = bool(found & FORBIDDEN) or not _things_in(response)
            assert says_no or name in FILTERED, (version, response)
    assert guarded.sizes() == before


def _error_codes(message):
    found = set()

    def look(value):
        if isinstance(value, dict):
            found.update(code for key, code in value.items() if key.endswith("error_code"))
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(message.to_dict(json=False))
    return found


def _things_in(message):
    """What an answer tells of, beside brokers."""
    return [value for key, value in message.to_dict(json=False).items() if isinstance(value, list) and value and key != "brokers"]


def test_a_client_does_what_acls_allow_and_no_more_and_they_outlive_the_log(start):
    settings = USERS | AUTHORIZER | {"embedded.log.super.users": "User:root;User:other"}
    log = start("SASL_PLAINTEXT://127.0.0.1:0", settings=settings)
    owner = stock.AdminClient(librdkafka(log))
    owner.create_topics([stock.NewTopic(name, 1) for name in ("shared", "secret")])["shared"].result(PATIENCE_SECONDS)
    rules = [
        stock.AclBinding(stock.ResourceType.TOPIC, "sha", stock.ResourcePatternType.PREFIXED, "User:ann", "*", stock.AclOperation.ALL,
                         stock.AclPermissionType.ALLOW),
        stock.AclBinding(stock.ResourceType.GROUP, "g", stock.ResourcePatternType.LITERAL, "User:ann", "*", stock.AclOperation.READ,
                         stock.AclPermissionType.ALLOW),
    ]
    for done in owner.create_acls(rules).values():
        done.result(PATIENCE_SECONDS)
    log.stop()
    log = start("SASL_PLAINTEXT://127.0.0.1:0", settings=settings)
    ann = librdkafka(log, "ann", "PLAIN")
    errors = []
    writer = confluent_kafka.Producer({**ann, "enable.idempotence": True})
    for topic in ("shared", "secret"):
        writer.produce(topic, b"v", on_delivery=lambda error, message: errors.append((message.topic(), error and error.code())))
        writer.flush(10)
    assert sorted(errors, key=str) == [("secret", confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED), ("shared", None)]
    reader = confluent_kafka.Consumer({**ann, "group.id": "g", "auto.offset.reset": "earliest"})
    reader.subscribe(["shared"])
    assert wait_for(lambda: reader.poll(0.1)).value() == b"v"
    reader.close()
    stranger = confluent_kafka.Consumer({**ann, "group.id": "h", "auto.offset.reset": "earliest"})
    stranger.subscribe(["shared"])
    assert wait_for(lambda: stranger.poll(0.1)).error().code() == confluent_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED
    stranger.close()
    owner = stock.AdminClient(librdkafka(log))
    everything = stock.AclBindingFilter(stock.ResourceType.ANY, None, stock.ResourcePatternType.ANY, None, None, stock.AclOperation.ANY,
                                        stock.AclPermissionType.ANY)
    assert sorted(binding.name for binding in owner.describe_acls(everything).result(PATIENCE_SECONDS)) == ["g", "sha"]
    assert len(owner.delete_acls([everything])[everything].result(PATIENCE_SECONDS)) == 2
    assert owner.describe_acls(everything).result(PATIENCE_SECONDS) == []
    client = stock.AdminClient(ann)
    assert "shared" not in client.list_topics(timeout=5).topics
    with pytest.raises(confluent_kafka.KafkaException, match="may not do this"):
        client.create_topics([stock.NewTopic("new", 1)])["new"].result(PATIENCE_SECONDS)


def test_clients_of_the_same_process_may_do_everything_whatever_others_need(start, pem):
    log = start("SASL_SSL://127.0.0.1:0", settings=keystore(pem) | AUTHORIZER)
    client = stock.AdminClient(own_client(log))
    client.create_topics([stock.NewTopic("t", 1)])["t"].result(PATIENCE_SECONDS)
    assert reach(**{name.replace(".", "_"): value for name, value in log.own_settings.items() if name != "bootstrap.servers"},
                 bootstrap=log.own_settings["bootstrap.servers"])
    assert "127.0.0.1" in log.own_settings["bootstrap.servers"] and log.own_settings["bootstrap.servers"] != log.bootstrap


def test_without_security_the_processs_own_clients_come_like_all_others(start):
    log = start()
    assert log.own_settings == {"bootstrap.servers": log.bootstrap}
