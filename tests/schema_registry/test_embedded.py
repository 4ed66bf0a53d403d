"""The worker's own registry: what the table of requests does not ask, clients of others, what is kept."""

import base64
import json

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry import SchemaRegistryClient as StockClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from pytest import param

from standalone.errors import RegistryDataError, StartError
from standalone.schema_registry.client import (
    Reference,
    RegistrySchema,
    SchemaRegistryClient,
)
from standalone.schema_registry.server.listener import EmbeddedRegistry
from tests.suite.patience import PATIENCE_SECONDS

INT, LONG = '"int"', '"long"'


def asked(url, method, path, body=None, status=200, **headers):
    answer = httpx.request(method, url + path, json=body, headers={"Content-Type": "application/json", **headers})
    assert answer.status_code == status, answer.text
    return answer.json()


def register(url, subject, text, kind="AVRO", status=200, **more):
    return asked(url, "POST", f"/subjects/{subject}/versions", {"schema": text, "schemaType": kind, **more}, status)


def record(*names, name="R"):
    return json.dumps({"type": "record", "name": name, "fields": [{"name": each, "type": "int", "default": 0} for each in names]})


# ---- clients of others


def test_confluents_client_registers_finds_and_deletes(registry_url):
    stock = StockClient({"url": registry_url})
    one = stock.register_schema("stock-value", Schema(record("a")))
    two = stock.register_schema("stock-value", Schema(record("a", "b")))
    assert stock.get_versions("stock-value") == [1, 2]
    assert stock.get_schema(one).schema_str == json.dumps(json.loads(record("a")), separators=(",", ":"))
    assert stock.get_latest_version("stock-value").schema_id == two
    assert stock.lookup_schema("stock-value", Schema(record("a"))).version == 1
    assert "stock-value" in stock.get_subjects()
    assert stock.test_compatibility("stock-value", Schema(record("a", "c"))) is True
    assert stock.set_compatibility("stock-value", level="FULL")["compatibility"] == "FULL"
    assert stock.get_compatibility("stock-value") == "FULL"
    with pytest.raises(SchemaRegistryError) as refused:
        stock.register_schema("stock-value", Schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]})))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)
    assert stock.delete_version("stock-value", 1) == 1
    assert stock.delete_subject("stock-value") == [2]
    assert stock.delete_subject("stock-value", permanent=True) == [1, 2]


def test_confluents_client_refers_to_other_schemas(registry_url):
    stock = StockClient({"url": registry_url})
    stock.register_schema("inner", Schema(json.dumps({"type": "record", "name": "x.In", "fields": []})))
    outer = json.dumps({"type": "record", "name": "x.Out", "fields": [{"name": "i", "type": "x.In"}]})
    found = stock.get_schema(stock.register_schema("outer", Schema(outer, "AVRO", [SchemaReference("x.In", "inner", 1)])))
    assert [(each.name, each.subject, each.version) for each in found.references] == [("x.In", "inner", 1)]


def test_a_compiled_protobuf_file_is_taken_shown_as_text_and_given_back_compiled(registry_url):
    file = FileDescriptorProto(name="x/y.proto", package="x", syntax="proto3")
    field = file.message_type.add(name="M").field.add(name="a", number=1, type=5, label=1, json_name="a")
    id = register(registry_url, "compiled", base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")["id"]
    assert "message M {\n  int32 a = 1;\n}" in asked(registry_url, "GET", f"/schemas/ids/{id}")["schema"]
    found = FileDescriptorProto.FromString(base64.b64decode(asked(registry_url, "GET", f"/schemas/ids/{id}?format=serialized")["schema"]))
    assert found.message_type[0].field[0].name == field.name
    assert register(registry_url, "compiled", asked(registry_url, "GET", f"/schemas/ids/{id}")["schema"], "PROTOBUF")["id"] == id


def test_our_client_asks_all_it_can(registry_url, client):
    inner = RegistrySchema('syntax = "proto3"; package q; message I { int32 a = 1; }', "PROTOBUF")
    client.register("p/inner.proto", inner)
    outer = RegistrySchema('syntax = "proto3"; import "p/inner.proto"; message O { q.I i = 1; }', "PROTOBUF", (Reference("p/inner.proto", "p/inner.proto", 1),))
    id = client.register("outer-p", outer)
    assert client.id_of("outer-p", outer) == id and client.schema_by_id(id) == outer and client.latest("outer-p") == (1, id, outer)
    assert client.resolve(outer) == {"p/inner.proto": inner}
    assert client.schema_by_guid(client.registered("outer-p", outer)["guid"]) == outer
    assert client.compatible("outer-p", outer) == []
    changed = RegistrySchema('syntax = "proto3"; import "p/inner.proto"; message O { string i = 1; }', "PROTOBUF", outer.references)
    assert "FIELD_KIND_CHANGED" in client.compatible("outer-p", changed)[0]
    with pytest.raises(RegistryDataError, match="FIELD_KIND_CHANGED"):
        client.register("outer-p", changed)
    assert client.set_compatibility("NONE", "outer-p") == client.compatibility("outer-p") == "NONE"
    assert client.register("outer-p", changed) > id and client.versions("outer-p") == [1, 2]
    assert client.delete("outer-p", 1) == [1] and client.versions("outer-p") == [2]


# ---- contexts, modes, settings


def test_a_context_has_ids_and_subjects_of_its_own(registry_url):
    first = register(registry_url, ":.dev:orders", INT)["id"]
    assert asked(registry_url, "GET", f"/schemas/ids/{first}?subject=:.dev:orders")["schema"] == INT
    assert asked(registry_url, "GET", "/contexts/.dev/subjects") == [":.dev:orders"]
    assert asked(registry_url, "GET", "/subjects?subjectPrefix=:.dev:") == [":.dev:orders"]
    assert ":.dev:orders" not in asked(registry_url, "GET", "/subjects") and ":.dev:orders" in asked(registry_url, "GET", "/subjects?subjectPrefix=:*:")
    assert ".dev" in asked(registry_url, "GET", "/contexts")
    asked(registry_url, "PUT", "/config/:.dev:", {"compatibility": "NONE"})
    assert register(registry_url, ":.dev:orders", '"string"')["version"] == 2


def test_an_imported_schema_keeps_its_id_and_version(registry_url):
    register(registry_url, "imported", INT, status=422, id=1000, version=5)
    asked(registry_url, "PUT", "/mode/imported", {"mode": "IMPORT"})
    assert {**register(registry_url, "imported", INT.replace("int", "double"), id=1000, version=5)}.items() >= {"id": 1000, "version": 5}.items()
    assert register(registry_url, "imported", LONG, status=422, id=1000)["error_code"] == 42205
    asked(registry_url, "DELETE", "/mode/imported")
    asked(registry_url, "PUT", "/mode/imported", {"mode": "IMPORT"}, status=422)
    asked(registry_url, "PUT", "/mode/imported?force=true", {"mode": "IMPORT"})


def test_a_read_only_subject_is_not_changed(registry_url):
    register(registry_url, "fixed", INT)
    asked(registry_url, "PUT", "/mode/fixed", {"mode": "READONLY"})
    assert register(registry_url, "fixed", LONG, status=422)["error_code"] == 42205
    assert asked(registry_url, "DELETE", "/subjects/fixed", status=422)["error_code"] == 42205
    assert asked(registry_url, "GET", "/mode/fixed") == {"mode": "READONLY"}


def test_an_alias_is_another_name_of_a_subject(registry_url):
    register(registry_url, "real", INT)
    asked(registry_url, "PUT", "/config/other", {"alias": "real"})
    assert asked(registry_url, "GET", "/subjects/other/versions/latest")["subject"] == "real"


def test_versions_of_another_compatibility_group_do_not_count(registry_url):
    asked(registry_url, "PUT", "/config/grouped", {"compatibilityGroup": "major"})
    for major, text in ("1", INT), ("2", '"string"'):
        register(registry_url, "grouped", text, metadata={"properties": {"major": major}})
    assert register(registry_url, "grouped", '"boolean"', status=409, metadata={"properties": {"major": "2"}})["error_code"] == 40901
    assert asked(registry_url, "GET", "/subjects/grouped/metadata?key=major&value=1")["version"] == 1


@pytest.mark.parametrize(
    "kind, one, other",
    [
        param("AVRO", '{"type":"string","b":1,"a":2}', '{"a":2,"type":"string","b":1}', id="Avro"),
        param("JSON", '{"title":"t","type":"string"}', '{"type":"string","title":"t"}', id="JSON Schema"),
        param("PROTOBUF", 'syntax = "proto3"; message A {}', 'syntax = "proto3";\n// nothing\nmessage A {\n}\n', id="Protobuf"),
    ],
)
def test_normalized_schemas_that_mean_the_same_are_one(registry_url, kind, one, other):
    subject = f"normal-{kind}"
    ids = [asked(registry_url, "POST", f"/subjects/{subject}/versions?normalize=true", {"schema": text, "schemaType": kind})["id"] for text in (one, other)]
    assert ids[0] == ids[1]
    assert asked(registry_url, "POST", f"/subjects/{subject}?normalize=true", {"schema": other, "schemaType": kind})["id"] == ids[0]


def test_a_reference_to_the_newest_version_stays_with_it(registry_url):
    register(registry_url, "moving", json.dumps({"type": "record", "name": "Mo", "fields": []}))
    text = json.dumps({"type": "record", "name": "Top", "fields": [{"name": "m", "type": "Mo"}]})
    found = register(registry_url, "to-moving", text, references=[{"name": "Mo", "subject": "moving", "version": -1}])
    assert found["references"][0]["version"] == 1


def test_lists_come_in_pages(registry_url):
    for number in range(4):
        register(registry_url, f"page-{number}", INT)
    assert asked(registry_url, "GET", "/subjects?subjectPrefix=page-&offset=1&limit=2") == ["page-1", "page-2"]
    assert [each["subject"] for each in asked(registry_url, "GET", "/schemas?subjectPrefix=page-&latestOnly=true&limit=1")] == ["page-0"]


def test_compatibility_tells_its_reasons_if_asked(registry_url):
    register(registry_url, "told", INT)
    body = {"schema": '"string"'}
    assert asked(registry_url, "POST", "/compatibility/subjects/told/versions/1", body) == {"is_compatible": False}
    told = asked(registry_url, "POST", "/compatibility/subjects/told/versions/1?verbose=true", body)
    assert "TYPE_MISMATCH" in told["messages"][0] and "{compatibility: 'BACKWARD'}" in told["messages"]


# ---- doors


@pytest.mark.parametrize(
    "headers, said",
    [param({"Host": "evil.example"}, "rest.allowed.hosts", id="another host's name"), param({"Origin": "http://evil.example"}, "may not change", id="another page")],
)
def test_a_strangers_page_is_refused(registry_url, headers, said):
    answer = httpx.post(registry_url + "/subjects/x/versions", json={"schema": INT}, headers=headers)
    assert answer.status_code == 403 and said in answer.text


def test_a_body_of_another_kind_and_one_too_large_are_refused(registry_url):
    assert httpx.post(registry_url + "/subjects/x/versions", content="x", headers={"Content-Type": "text/xml"}).status_code == 415
    assert httpx.post(registry_url + "/subjects/x/versions", json={"schema": INT, "stray": 1}).json()["message"] == "Unrecognized field: stray"


# ---- what is kept


def test_all_is_there_after_a_restart_and_no_id_is_given_twice(tmp_path):
    path = str(tmp_path / "schemas.db")
    for expected in (1, 2):
        registry = EmbeddedRegistry(path, "127.0.0.1:0").start()
        try:
            url = registry.url
            assert register(url, "kept", record("a"))["id"] == 1
            assert register(url, f"more-{expected}", f'{{"type":"fixed","name":"F","size":{expected}}}')["id"] == expected + 1
            asked(url, "PUT", "/config/kept", {"compatibility": "FULL"})
        finally:
            registry.stop()
    registry = EmbeddedRegistry(path, "127.0.0.1:0").start()
    try:
        url = registry.url
        asked(url, "DELETE", "/subjects/more-2"), asked(url, "DELETE", "/subjects/more-2?permanent=true")
        assert asked(url, "GET", "/config/kept") == {"compatibilityLevel": "FULL"}
        assert register(url, "last", '{"type":"fixed","name":"F","size":9}')["id"] == 4
    finally:
        registry.stop()


def test_a_taken_port_and_a_file_that_is_no_database_are_named(tmp_path, registry_url):
    taken = registry_url.removeprefix("http://")
    with pytest.raises(StartError, match="embedded.registry.listener"):
        EmbeddedRegistry(str(tmp_path / "s.db"), taken).start()
    (tmp_path / "bad.db").write_text("no database at all, whatever it is called" * 100)
    with pytest.raises(StartError, match="embedded.registry.file"):
        EmbeddedRegistry(str(tmp_path / "bad.db"), "127.0.0.1:0").start()


def test_a_registry_that_is_gone_is_an_error_to_try_again(tmp_path):
    registry = EmbeddedRegistry(str(tmp_path / "s.db"), "127.0.0.1:0").start()
    client = SchemaRegistryClient.from_config({"schema.registry.url": registry.url, "max.retries": "200", "retries.wait.ms": "5", "retries.max.wait.ms": "20"})
    client.register("a", RegistrySchema(INT))
    port = registry.url.rpartition(":")[2]
    registry.stop()
    import threading

    found = []
    asking = threading.Thread(target=lambda: found.append(client.register("a", RegistrySchema(LONG))))
    asking.start()
    again = EmbeddedRegistry(str(tmp_path / "s.db"), f"127.0.0.1:{port}").start()
    try:
        asking.join(PATIENCE_SECONDS)
        assert found == [2]
    finally:
        again.stop()
