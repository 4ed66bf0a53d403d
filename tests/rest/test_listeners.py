"""Multiple listeners, one for /admin, headers and CORS as the worker's configuration says; levels of loggers."""

import logging
import socket
import sys

import pytest
from pytest import param

from standalone.errors import StartError
from standalone.rest.front import parse_rules
from tests.rest.conftest import Api
from tests.runtime.local import LocalWorker

UI, OTHER = "http://ui.example", "http://other.example"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A worker with CORS, added headers and an admin listener."""
    props = {
        "listeners": "http://127.0.0.1:0,http://127.0.0.1:0",
        "admin.listeners": "http://127.0.0.1:0",
        "access.control.allow.origin": UI,
        "access.control.allow.methods": "GET,POST,PUT,DELETE",
        "response.http.headers.config": "add X-XSS-Protection: 1; mode=block, set X-Powered-By: trace, setDate Expires: 1000",
    }
    with LocalWorker(tmp_path_factory.mktemp("guarded"), **props) as worker:
        yield worker


def test_every_listener_serves_the_same(guarded):
    addresses = [listener.address for listener in guarded.process.rest._listeners]
    assert len(set(addresses)) == 2
    for address in addresses:
        assert Api(guarded, address).json("GET", "/connectors") == []


def test_a_package_that_is_missing_is_known_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(StartError, match="'uvicorn', which is not installed"), LocalWorker(tmp_path):
        pass


def test_answers_are_sent_at_once(guarded):
    """Else the body of each answer on a kept connection waits 40 ms for the acknowledgement of its head."""
    for listener in guarded.process.rest._all():
        assert listener.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_admin_is_served_by_its_own_listener_alone(guarded):
    assert Api(guarded)("GET", "/admin/loggers").status_code == 404
    admin = Api(guarded, guarded.process.rest.admin_address)
    assert "root" in admin.json("GET", "/admin/loggers")
    assert admin("GET", "/connectors").status_code == 404


def test_an_empty_admin_listeners_serves_admin_nowhere(tmp_path):
    with LocalWorker(tmp_path, admin__listeners="") as worker:
        assert Api(worker)("GET", "/admin/loggers").status_code == 404


@pytest.mark.parametrize("path, status", [("/", 200), ("/nope", 404)])
def test_headers_are_added_to_every_answer(guarded, path, status):
    answer = Api(guarded)("GET", path)
    assert answer.status_code == status
    assert answer.headers["x-xss-protection"] == "1; mode=block"
    assert answer.headers["x-powered-by"] == "trace"
    assert answer.headers["expires"].endswith("GMT")


@pytest.mark.parametrize(
    "method, headers, origin, methods",
    [
        param("GET", {"Origin": UI}, UI, None, id="a page that may"),
        param("GET", {"Origin": OTHER}, None, None, id="a page that may not"),
        param("GET", {}, None, None, id="no page"),
        param("OPTIONS", {"Origin": UI, "Access-Control-Request-Method": "POST"}, UI, {"GET", "POST", "PUT", "DELETE"}, id="asked before"),
        param("OPTIONS", {"Origin": OTHER, "Access-Control-Request-Method": "POST"}, None, None, id="asked without success"),
    ],
)
def test_cors(guarded, method, headers, origin, methods):
    answer = Api(guarded)(method, "/connectors", headers=headers)
    assert answer.status_code == 200
    assert answer.headers.get("access-control-allow-origin") == origin
    found = answer.headers.get("access-control-allow-methods")
    assert (found and set(found.split(","))) == methods


def test_without_cors_nobody_is_let_in(api):
    assert "access-control-allow-origin" not in api("GET", "/", headers={"Origin": UI}).headers


def test_header_rules_take_commas_in_values():
    rules = parse_rules('add Cache-Control: no-cache, no-store, set X-A: b, "add X-C: d"')
    assert [(replaces, name, value()) for replaces, name, value in rules] == [
        (False, b"cache-control", b"no-cache, no-store"),
        (True, b"x-a", b"b"),
        (False, b"x-c", b"d"),
    ]


def test_levels_of_loggers_reach_those_below_and_outlive_a_restart(tmp_path):
    with LocalWorker(tmp_path) as worker:
        api = Api(worker)
        assert api.json("GET", "/admin/loggers/root")["last_modified"] is None
        assert api.json("GET", "/admin/loggers/ROOT") == api.json("GET", "/admin/loggers/root")
        api.json("GET", "/admin/loggers/rest.test.none", status=404)
        assert api.json("PUT", "/admin/loggers/rest.test.own.logger", {"level": "DEBUG"}) == ["rest.test.own.logger"]
        assert api.json("PUT", "/admin/loggers/rest.test.own", {"level": "error"}) == ["rest.test.own", "rest.test.own.logger"]
        assert logging.getLogger("rest.test.own.logger").level == logging.ERROR
        for body, status in (({"level": "LOUD"}, 404), ({"level": 5}, 404), ({}, 400), ({"level": None}, 400)):
            api.json("PUT", "/admin/loggers/rest.test.own", body, status)
        assert api("PUT", "/admin/loggers/rest.test.own?scope=cluster", {"level": "FATAL"}).status_code == 204
        assert api.json("PUT", "/admin/loggers/rest.test.own?scope=galaxy", {"level": "FATAL"}) == [], "they had it already"
        assert api.json("PUT", "/admin/loggers/rest.test.own.logger?scope=galaxy", {"level": "INFO"}) == ["rest.test.own.logger"]
        assert api.json("PUT", "/admin/loggers/rest.test.own", {"level": "ERROR"}) == ["rest.test.own", "rest.test.own.logger"]
        shown = api.json("GET", "/admin/loggers/rest.test.own")
        assert shown["level"] == "ERROR" and shown["last_modified"] > 0
    logging.getLogger("rest.test.own").setLevel(logging.NOTSET)
    with LocalWorker(tmp_path) as worker:
        assert Api(worker).json("GET", "/admin/loggers/rest.test.own") == shown
        assert logging.getLogger("rest.test.own").level == logging.ERROR
