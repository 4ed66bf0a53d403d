"""A worker with its own registry: connectctl schemas, produce and consume by schema, and what the web page is told."""

import json

import httpx
import pytest
from pytest import param

from standalone.testing import LocalWorker
from tests.cli.conftest import Ctl

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"], "default": None}]})
NEWER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}]})
PROTO = 'syntax = "proto3"; message Order { int32 id = 1; string note = 2; }'
JSON_SCHEMA = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with LocalWorker(tmp_path_factory.mktemp("worker"), embedded__registry__enable="true") as worker:
        yield worker


@pytest.fixture
def url(worker):
    return "http://{}:{}".format(*worker.process.rest.address)


@pytest.fixture
def ctl(url):
    return Ctl(url)


def got(url, path, status=200, **query):
    answer = httpx.get(url + path, params=query)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_schemas_are_registered_shown_compared_and_deleted(ctl, tmp_path):
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    assert ctl("schemas", "register", "ctl-value", file) == "registered ctl-value\n"
    assert ctl("schemas", "register", "ctl-value", "--dry-run", input=NEWER) == "compatible\n"
    ctl("schemas", "register", "ctl-value", input=NEWER)
    assert {"subject": "ctl-value", "versions": 2, "latest": 2, "kind": "AVRO"}.items() <= ctl.json("schemas", "list", "--prefix", "ctl-")[0].items()
    assert json.loads(ctl.json("schemas", "show", "ctl-value", "1")["schema"]) == json.loads(ORDER)
    assert '"name": "Order"' in ctl("schemas", "show", "ctl-value")
    assert '-      "type": "int"\n+      "type": "long"\n' in ctl("schemas", "diff", "ctl-value")
    assert ctl("schemas", "compatibility", "ctl-value") == "BACKWARD\n"
    assert ctl("schemas", "compatibility", "ctl-value", "full") == "FULL\n"
    refused = ctl("schemas", "register", "ctl-value", code=1, input=ORDER.replace('"int"', '"string"'))
    assert "TYPE_MISMATCH" in refused and "Change the schema" in refused
    assert "TYPE_MISMATCH" in ctl("schemas", "register", "ctl-value", "--dry-run", code=1, input=ORDER.replace('"int"', '"string"'))
    assert ctl("schemas", "delete", "ctl-value", "1") == "deleted ctl-value\n"
    assert ctl.json("schemas", "delete", "ctl-value")["versions"] == [2]
    assert "not found" in ctl("schemas", "show", "ctl-value", code=1)


@pytest.mark.parametrize(
    "kind, schema, typed, shown",
    [
        param("avro", ORDER, '{"id":7,"note":"x"}', '{"id":7,"note":{"string":"x"}}', id="Avro"),
        param("avro", ORDER, '{"id":7}', '{"id":7,"note":null}', id="Avro with a default"),
        param("protobuf", PROTO, '{"id":7,"note":"x"}', '{"id":7,"note":"x"}', id="Protobuf"),
        param("json-schema", JSON_SCHEMA, '{"id":7}', '{"id":7}', id="JSON Schema"),
    ],
)
def test_lines_are_written_and_read_by_a_schema(ctl, request, kind, schema, typed, shown):
    topic = "t-" + "".join(filter(str.isalnum, request.node.callspec.id))
    ctl("topics", "create", topic)
    ctl("produce", topic, "--value", kind, "--property", f"value.schema={schema}", input=typed + "\n")
    assert ctl("consume", topic, "--from-beginning", "--exit", "--value", kind) == shown + "\n"
    assert ctl.lines("consume", topic, "--from-beginning", "--exit", "--value", kind)[0]["value"] == json.loads(shown)


def test_keys_have_a_schema_of_their_own(ctl):
    ctl("topics", "create", "keyed")
    keys = ("--key", "avro", "--property", 'key.schema="long"')
    ctl("produce", "keyed", "-K", "\t", *keys, "--value", "avro", "--property", f"value.schema={ORDER}", input='5\t{"id":1}\n')
    assert ctl("consume", "keyed", "--from-beginning", "--exit", "--show", "key", "--key", "avro", "--value", "avro") == '5\t{"id":1,"note":null}\n'
    assert {each["subject"] for each in ctl.json("schemas", "list", "--prefix", "keyed-")} == {"keyed-key", "keyed-value"}


@pytest.mark.parametrize(
    "kind, schema, line, said",
    [
        param("avro", ORDER, '{"id":{}}', "The field 'id' must be an int, and is an object: {}", id="an object for an int"),
        param("avro", ORDER, '{"id":"7"}', "The field 'id' must be an int, and is a text: \"7\"", id="a text for an int"),
        param("avro", ORDER, "{}", "The field 'id' is missing", id="a field missing"),
        param("avro", ORDER, '{"id":7,"x":1}', "no field 'x' in the record Order", id="a field too many"),
        param("avro", '"int"', '{"a":1}', "The value must be an int, and is an object", id="an object for a number alone"),
        param("avro", '["null","int","string"]', "1.5", "one of null, int, string", id="none of a union"),
        param("avro", '{"type":"enum","name":"E","symbols":["a","b"]}', '"c"', "one of a, b", id="no symbol"),
        param("avro", '{"type":"fixed","name":"F","size":2}', '"abc"', "must have 2 bytes, and has 3", id="another size"),
        param("avro", '"int"', "2147483648", "must be an int", id="too large"),
        param("avro", ORDER, "{", "is not JSON", id="no JSON"),
        param("protobuf", PROTO, '{"id":{}}', "does not fit the message Order", id="Protobuf"),
        param("protobuf", PROTO, '{"nope":1}', 'no field named "nope"', id="an unknown field of Protobuf"),
        param("json-schema", JSON_SCHEMA, '{"id":"x"}', "The field 'id' does not fit the schema", id="JSON Schema"),
    ],
)
def test_a_value_that_does_not_fit_says_where_and_why(ctl, kind, schema, line, said):
    answer = ctl("produce", "misfits", "--value", kind, "--property", f"value.schema={schema}", "--property", "value.subject=misfit", code=1, input=line + "\n")
    assert "value of line 1" in answer and said in answer
    ctl("schemas", "delete", "misfit")


@pytest.mark.parametrize(
    "options, said",
    [
        param(("--value", "avro"), "value.schema", id="no schema"),
        param(("--value", "avro", "--property", "x"), "KEY=VALUE", id="not a property"),
        param(("--value", "avro", "--registry", "http://127.0.0.1:1", "--property", 'value.schema="int"'), "cannot be reached", id="no registry"),
    ],
)
def test_what_is_missing_is_named(ctl, options, said):
    result = ctl.run("produce", "missing", *options, input="1\n")
    assert result.exit_code in (1, 2) and said in result.output


def test_bytes_of_no_schema_are_named_where_a_schema_is_asked_for(ctl):
    ctl("topics", "create", "plain")
    ctl("produce", "plain", input="hello\n")
    assert "Unknown magic byte" in ctl("consume", "plain", "--from-beginning", "--exit", "--value", "avro", code=1)


def test_the_page_is_told_subjects_versions_and_differences(ctl, url):
    for text in (ORDER, NEWER):
        ctl("schemas", "register", "page/value", input=text)
    assert {"subject": "page/value", "latest": 2, "kind": "AVRO"}.items() <= next(each for each in got(url, "/ui/api/schemas") if each["subject"] == "page/value").items()
    found = got(url, "/ui/api/schemas/versions", subject="page/value")
    assert found["compatibility"] == "BACKWARD" and [each["version"] for each in found["versions"]] == [1, 2]
    lines = got(url, "/ui/api/schemas/diff", subject="page/value", older=1, newer=2)["lines"]
    assert {"mark": "-", "text": '      "type": "int"'} in lines and {"mark": "+", "text": '      "type": "long"'} in lines
    assert "not found" in got(url, "/ui/api/schemas/versions", 404, subject="nobody")["message"]
    assert "number of a version" in got(url, "/ui/api/schemas/diff", 400, subject="page/value", older="x", newer=1)["message"]
    assert "missing" in got(url, "/ui/api/schemas/versions", 400)["message"]


def test_records_are_shown_decoded(ctl, url):
    ctl("topics", "create", "decoded")
    ctl("produce", "decoded", "--value", "avro", "--property", f"value.schema={ORDER}", input='{"id":7,"note":"x"}\n')
    ctl("produce", "decoded", "--from-json", input=json.dumps({"value": {"base64": "AAAAAAAA"}}) + "\n")
    foreign, value = (each["value"] for each in got(url, "/ui/api/topics/decoded/records")["records"])
    assert json.loads(value["text"]) == {"id": 7, "note": {"string": "x"}} and value["schema"] > 0
    assert foreign["text"] == "\0" * 6


def test_a_worker_without_a_registry_says_so(tmp_path):
    with LocalWorker(tmp_path) as worker:
        ctl = Ctl("http://{}:{}".format(*worker.process.rest.address))
        assert "embedded.registry.enable=true" in ctl("schemas", "list", code=1)
