"""What is answered to requests as such: methods, headers, bodies that will not do, addresses that mean nothing."""

import pytest
from pytest import param

OBJECT = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "method, path, more, status",
    [
        param("GET", "/nope", {}, 404, id="no such path"),
        param("GET", "/connectors/x/nope", {}, 404, id="no such part of a connector"),
        param("PUT", "/connectors", {"json": {}}, 405, id="a method that is not there"),
        param("DELETE", "/health", {}, 405, id="health is only read"),
        param("GET", "/connectors/x/pause", {}, 405, id="pause is not a page"),
        param("GET", "/", {"headers": {"Accept": "text/plain"}}, 406, id="an answer that is not JSON"),
        param("GET", "/", {"headers": {"Accept": "text/html, application/json;q=0"}}, 406, id="JSON is refused by its weight"),
        param("GET", "/", {"headers": {"Accept": "text/html, */*;q=0.1"}}, 200, id="a browser takes anything"),
        param("POST", "/connectors", {"content": "{}", "headers": {"Content-Type": "text/plain"}}, 415, id="a body that is not JSON"),
        param("POST", "/connectors", {"content": "{}"}, 415, id="a body without a type"),
        param("POST", "/connectors", {"json": {}, "headers": {"Content-Type": "application/json; charset=utf-8"}}, 400, id="a charset is fine"),
        param("POST", "/connectors", {"content": "{not json", "headers": OBJECT}, 400, id="JSON that cannot be read"),
        param("POST", "/connectors", {"content": "", "headers": OBJECT}, 400, id="an empty body"),
        param("POST", "/connectors", {"content": "[1]", "headers": OBJECT}, 400, id="a list"),
        param("PATCH", "/connectors/x/config", {"content": "null", "headers": OBJECT}, 400, id="null"),
        param("GET", "/connectors/a%2Fb", {}, 400, id="an encoded slash"),
        param("DELETE", "/connectors/a%2fb", {}, 400, id="an encoded slash in small letters"),
        param("GET", "/connectors/a%25", {}, 400, id="an encoded percent sign"),
        param("GET", "/connectors/", {}, 200, id="a slash at the end"),
        param("GET", "/connectors/x/tasks/y/status", {}, 404, id="a task without a number"),
    ],
)
def test_status_and_body(api, method, path, more, status):
    answer = api(method, path, **more)
    assert answer.status_code == status, answer.text
    if status >= 400 and "%" not in path:
        assert answer.json()["error_code"] == status
        assert answer.json()["message"]


def test_a_body_may_not_be_endless(api):
    assert api("POST", "/connectors", content=b" " * (17 << 20), headers=OBJECT).status_code == 413


@pytest.mark.parametrize(
    "path, allowed",
    [("/", "GET HEAD OPTIONS"), ("/connectors", "GET HEAD POST OPTIONS"), ("/connectors/x/offsets", "GET HEAD PATCH DELETE OPTIONS")],
)
def test_options_tell_the_methods(api, path, allowed):
    answer = api("OPTIONS", path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert set(answer.headers["allow"].split(",")) == set(allowed.split())
    refused = api("TRACE", path)
    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(",")) == set(allowed.split())


def test_head_has_the_headers_of_get_and_no_body(api):
    answer = api("HEAD", "/connectors")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "application/json", b"")


@pytest.mark.parametrize("path", ["", "/config", "/status", "/tasks", "/tasks/0/status", "/offsets"])
def test_a_connector_that_is_not_there(api, path):
    assert api("GET", f"/connectors/no{path}").json()["error_code"] == 404


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("DELETE", "", None),
        ("PUT", "/pause", None),
        ("PUT", "/resume", None),
        ("PUT", "/stop", None),
        ("POST", "/restart", None),
        ("POST", "/tasks/0/restart", None),
        ("PATCH", "/config", {"a": "b"}),
        ("DELETE", "/offsets", None),
        ("PATCH", "/offsets", {"offsets": [{"partition": {}, "offset": {}}]}),
    ],
)
def test_a_connector_that_is_not_there_cannot_be_changed(api, method, path, body):
    assert api(method, f"/connectors/no{path}", body).status_code == 404


def test_the_worker_tells_what_it_is(api):
    assert set(api.json("GET", "/")) == {"version", "commit", "kafka_cluster_id"}
    assert api.json("GET", "/health")["status"] == "healthy"
