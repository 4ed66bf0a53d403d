"""The registry's client: what it asks, what it remembers, how it tries again, and the errors that say what to do."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pytest import param

from standalone.errors import ConfigError, DataError, RetriableError
from standalone.schema_registry.client import (
    Reference,
    RegistryConfigError,
    RegistryDataError,
    RegistryRetriableError,
    RegistrySchema,
    SchemaRegistryClient,
)
from standalone.schema_registry.keys import CLIENT

SCHEMA = RegistrySchema('"string"')
PROTO = RegistrySchema('syntax = "proto3";', "PROTOBUF", (Reference("a/b.proto", "a/b.proto", 2),))


class FakeRegistry:
    """Answers from a list of (status, body), the last one forever; `asked` holds (method, path, headers, body)."""

    def __init__(self):
        self.asked, self.answers = [], [(200, {"id": 1})]
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                fake.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(size).decode()))
                status, body = fake.answers.pop(0) if len(fake.answers) > 1 else fake.answers[0]
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *parts):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry():
    fake = FakeRegistry()
    yield fake
    fake.close()


def client_of(registry, **keys):
    url = registry if isinstance(registry, str) else registry.url
    keys = {name.replace("_", "."): value for name, value in keys.items()}
    return SchemaRegistryClient.from_config({"schema.registry.url": url, "retries.wait.ms": "1", **keys})


ANSWER = {"subject": "s", "version": 3, "id": 7, "schema": '"string"'}


@pytest.mark.parametrize(
    "ask, answer, method, path, found",
    [
        param(lambda c: c.register("s", SCHEMA), {"id": 7}, "POST", "/subjects/s/versions", 7, id="register"),
        param(lambda c: c.register("a/b", SCHEMA, normalize=True), {"id": 7}, "POST", "/subjects/a%2Fb/versions?normalize=true", 7, id="normalized"),
        param(lambda c: c.id_of("s", SCHEMA), ANSWER, "POST", "/subjects/s", 7, id="id of a schema"),
        param(lambda c: c.schema_by_id(7), ANSWER, "GET", "/schemas/ids/7?fetchMaxId=false", SCHEMA, id="by id"),
        param(lambda c: c.schema_by_id(7, "s"), ANSWER, "GET", "/schemas/ids/7?fetchMaxId=false&subject=s", SCHEMA, id="by id in a subject's context"),
        param(lambda c: c.schema_by_guid("ab-c"), ANSWER, "GET", "/schemas/guids/ab-c", SCHEMA, id="by guid"),
        param(lambda c: c.latest("s"), ANSWER, "GET", "/subjects/s/versions/latest", (3, 7, SCHEMA), id="newest version"),
        param(lambda c: c.version("s", 3), ANSWER, "GET", "/subjects/s/versions/3?deleted=true", (7, SCHEMA), id="a version"),
    ],
)
def test_each_question_is_asked_once(registry, ask, answer, method, path, found):
    registry.answers = [(200, answer)]
    client = client_of(registry)
    assert ask(client) == ask(client) == found
    assert [(each[0], each[1]) for each in registry.asked] == [(method, path)]


def test_a_body_names_kind_and_references_but_for_avro(registry):
    client = client_of(registry)
    client.register("s", SCHEMA)
    client.register("s", PROTO)
    assert [json.loads(each[3]) for each in registry.asked] == [
        {"schema": '"string"'},
        {"schema": PROTO.text, "schemaType": "PROTOBUF", "references": [{"name": "a/b.proto", "subject": "a/b.proto", "version": 2}]},
    ]


def test_the_newest_version_is_asked_for_again_after_its_time_and_after_a_registration(registry):
    registry.answers = [(200, ANSWER)]
    client = client_of(registry, **{"latest.cache.ttl.sec": "0"})
    client.latest("s"), client.latest("s")
    assert len(registry.asked) == 2
    client = client_of(registry)
    client.latest("s"), client.register("s", SCHEMA), client.latest("s")
    assert len(registry.asked) == 5


def test_what_is_missing_is_remembered_only_if_that_is_wished(registry):
    registry.answers = [(404, {"error_code": 40403, "message": "Schema not found"})]
    for keys, times in ({}, 2), ({"missing.id.cache.ttl.sec": "60"}, 1):
        registry.asked.clear()
        client = client_of(registry, **keys)
        for _ in range(2):
            with pytest.raises(RegistryDataError, match="Schema not found") as raised:
                client.schema_by_id(9)
            assert (raised.value.status, raised.value.code) == (404, 40403)
        assert len(registry.asked) == times


@pytest.mark.parametrize(
    "status, body, kind, also, said",
    [
        param(404, {"error_code": 40401, "message": "Subject 's' not found."}, RegistryDataError, DataError, "404 (40401): Subject 's' not found", id="not found"),
        param(409, {"error_code": 409, "message": "Schema being registered is incompatible: READER_FIELD_MISSING_DEFAULT_VALUE"}, RegistryDataError,
              DataError, "READER_FIELD_MISSING_DEFAULT_VALUE", id="not compatible, with the reason"),
        param(422, {"error_code": 42201, "message": "Invalid schema"}, RegistryDataError, DataError, "422 (42201): Invalid schema", id="not valid"),
        param(401, {"error_code": 401, "message": "Unauthorized"}, RegistryConfigError, ConfigError, "check basic.auth.*", id="credentials"),
        param(403, "", RegistryConfigError, ConfigError, "does not allow it", id="forbidden"),
        param(200, "<html>", RegistryConfigError, ConfigError, "not as a schema registry does", id="no registry"),
        param(302, "", RegistryConfigError, ConfigError, "schema.registry.url", id="redirected"),
        param(500, {"error_code": 50001, "message": "store"}, RegistryRetriableError, RetriableError, "500 (50001): store", id="broken for the moment"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(registry, status, body, kind, also, said):
    registry.answers = [(status, body)]
    with pytest.raises(kind) as raised:
        client_of(registry, **{"max.retries": "0"}).register("s", SCHEMA)
    assert isinstance(raised.value, also) and said in str(raised.value)
    assert "register an Avro schema for the subject 's'" in str(raised.value)


def test_what_fails_for_the_moment_is_tried_again_as_often_as_configured(registry):
    registry.answers = [(503, ""), (429, ""), (200, {"id": 4})]
    assert client_of(registry).register("s", SCHEMA) == 4
    registry.answers = [(503, "")]
    registry.asked.clear()
    with pytest.raises(RegistryRetriableError):
        client_of(registry, **{"max.retries": "2"}).register("s", SCHEMA)
    assert len(registry.asked) == 3


def test_the_next_address_is_asked_and_stays_the_first(registry):
    client = client_of(f"http://127.0.0.1:1,{registry.url}/")
    assert client.register("s", SCHEMA) == 1
    assert client._http._next == 1
    assert registry.asked[0][1] == "/subjects/s/versions"


def test_nobody_there_is_retriable_and_names_the_address_without_the_password():
    with pytest.raises(RegistryRetriableError) as raised:
        client_of("http://ann:hunter22@127.0.0.1:1", **{"max.retries": "0"}).register("s", SCHEMA)
    assert "http://127.0.0.1:1 cannot be reached" in str(raised.value) and "hunter22" not in str(raised.value)


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "user, keys, headers",
    [
        param("ann:p%40w@", {}, {"Authorization": basic("ann:p@w")}, id="basic from the address"),
        param("", {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "ann:pw"}, {"Authorization": basic("ann:pw")}, id="basic"),
        param("", {"basic.auth.credentials.source": "USER_INFO", "schema.registry.basic.auth.user.info": "ann:pw"},
              {"Authorization": basic("ann:pw")}, id="basic by the old name"),
        param("", {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.jaas.config": 'X required username="u" password="p";'},
              {"Authorization": basic("u:p")}, id="basic of the broker's login"),
        param("", {"bearer.auth.token": "tok", "bearer.auth.logical.cluster": "lsrc-1", "bearer.auth.identity.pool.id": "pool"},
              {"Authorization": "Bearer tok", "target-sr-cluster": "lsrc-1", "Confluent-Identity-Pool-Id": "pool"}, id="bearer"),
        param("", {"request.header.X-Team": "blue"}, {"X-Team": "blue"}, id="a header of one's own"),
    ],
)  # fmt: skip
def test_credentials_are_sent(registry, user, keys, headers):
    client_of(registry.url.replace("http://", f"http://{user}"), **keys).register("s", SCHEMA)
    sent = registry.asked[0][2]
    assert {name: sent.get(name) for name in headers} == headers


def test_an_oauth_token_is_kept_and_asked_for_again_once_it_is_refused(registry):
    registry.answers = [(200, {"access_token": "first-token", "expires_in": 3600}), (200, {"id": 1}), (200, {"id": 2}),
                        (401, {}), (200, {"access_token": "second-token"}), (200, {"id": 3})]  # fmt: skip
    keys = {"bearer.auth.credentials.source": "OAUTHBEARER", "bearer.auth.issuer.endpoint.url": f"{registry.url}/token",
            "bearer.auth.client.id": "me", "bearer.auth.client.secret": "hunter2", "bearer.auth.scope": "sr"}  # fmt: skip
    client = client_of(registry, **keys)
    assert [client.register(name, SCHEMA) for name in "abc"] == [1, 2, 3]
    assert [(each[1], each[2].get("Authorization")) for each in registry.asked] == [
        ("/token", basic("me:hunter2")), ("/subjects/a/versions", "Bearer first-token"), ("/subjects/b/versions", "Bearer first-token"),
        ("/subjects/c/versions", "Bearer first-token"), ("/token", basic("me:hunter2")), ("/subjects/c/versions", "Bearer second-token"),
    ]  # fmt: skip
    assert "grant_type=client_credentials&scope=sr" == registry.asked[0][3]


@pytest.mark.parametrize(
    "keys, said",
    [
        param({"schema.registry.url": "registry:8081"}, "not an address", id="no scheme"),
        param({"schema.registry.url": ""}, "schema.registry.url", id="not an address"),
        param({"basic.auth.credentials.source": "USER_INFO"}, "user:password", id="no user info"),
        param({"bearer.auth.credentials.source": "OAUTHBEARER"}, "bearer.auth.client.secret", id="no OAuth client"),
        param({"bearer.auth.token": "t", "basic.auth.credentials.source": "USER_INFO"}, "one of them", id="both"),
        param({"schema.registry.url": "https://h:1", "schema.registry.ssl.truststore.location": "/not/there.jks"},
              "schema.registry.ssl.truststore.location", id="no truststore"),
    ],
)  # fmt: skip
def test_wrong_keys_are_named(keys, said):
    with pytest.raises(ConfigError) as raised:
        SchemaRegistryClient.from_config({"schema.registry.url": "http://h:1", **keys})
    assert said in str(raised.value)


def test_parsed_keys_with_all_their_defaults_mean_the_same(registry):
    parsed = CLIENT.parse({"schema.registry.url": registry.url})
    for config in (parsed, dict(parsed)):
        assert SchemaRegistryClient.from_config(config).register("s", SCHEMA) == 1


def test_references_are_resolved_in_the_order_in_which_they_are_needed(registry):
    inner = {"subject": "i", "version": 1, "id": 1, "schema": "inner", "schemaType": "PROTOBUF"}
    outer = {**inner, "schema": "outer", "references": [{"name": "i.proto", "subject": "i", "version": 1}]}
    registry.answers = [(200, outer), (200, inner)]
    found = client_of(registry).resolve(RegistrySchema("top", "PROTOBUF", (Reference("o.proto", "o", 1),)))
    assert [(name, schema.text) for name, schema in found.items()] == [("i.proto", "inner"), ("o.proto", "outer")]


def test_compatibility_tells_the_reasons_and_a_new_subject_has_none(registry):
    registry.answers = [(200, {"is_compatible": False, "messages": ["one", "two"]}), (200, {"is_compatible": True}),
                        (404, {"error_code": 40401, "message": "no"}), (422, {"error_code": 42201, "message": "bad"})]  # fmt: skip
    client = client_of(registry)
    assert [client.compatible("s", SCHEMA) for _ in range(3)] == [["one", "two"], [], []]
    with pytest.raises(RegistryDataError, match="bad"):
        client.compatible("s", SCHEMA)
