"""Who can reach the REST API, and by which names: loopback unless said otherwise, and no name of a stranger's (DNS rebinding)."""

import http.client
import logging
import socket
import types

import pytest
from pytest import param

from standalone.rest.hosts import host_of, names_of, warn_of_open_doors
from standalone.rest.server import Listener
from tests.rest.conftest import Api
from tests.runtime.local import LocalWorker

EVIL = {"Host": "evil.example:18083", "Origin": "http://evil.example:18083"}


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A worker with its own names."""
    props = {
        "listeners": "http://127.0.0.1:0",
        "admin.listeners": "http://localhost:0",
        "rest.advertised.host.name": "connect.example",
        "rest.allowed.hosts": "Proxy.example, 10.1.2.3",
    }
    with LocalWorker(tmp_path_factory.mktemp("named"), **props) as worker:
        yield worker


@pytest.mark.parametrize("path", ["/", "/connectors", "/health", "/metrics", "/ui", "/ui/app.js", "/openapi.json", "/docs", "/nope", "/admin/loggers"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_no_answer_tells_a_stranger_anything(api, method, path):
    answer = api(method, path, headers=EVIL)
    assert answer.status_code == 403
    if method != "HEAD":
        assert answer.json()["error_code"] == 403
        assert "rest.allowed.hosts" in answer.json()["message"]


def test_a_rebound_name_makes_no_connector(api, config):
    body = {"name": "evil", "config": config}
    assert api("POST", "/connectors", body, headers=EVIL).status_code == 403
    assert api.json("GET", "/connectors") == []


@pytest.mark.parametrize(
    "host, status",
    [
        param("127.0.0.1", 200, id="loopback"),
        param("127.0.0.1:1", 200, id="whatever the port"),
        param("[::1]:8083", 200, id="loopback of IPv6"),
        param("LocalHost:8083", 200, id="its name in any case"),
        param("localhost.", 200, id="with the root's dot"),
        param("ui.localhost", 200, id="a name below it"),
        param("connect.example:8083", 200, id="the advertised name"),
        param("proxy.example", 200, id="an allowed name"),
        param("10.1.2.3:80", 200, id="an allowed address"),
        param("10.1.2.4:80", 403, id="another address"),
        param("0.0.0.0", 403, id="no address at all"),
        param("evil.example", 403, id="another name"),
        param("localhost.evil.example", 403, id="a name that begins as one of ours"),
        param("evil-localhost", 403, id="or ends so"),
        param("proxy.example@evil.example", 403, id="a name after a user"),
        param("127.0.0.1.evil.example", 403, id="an address that continues"),
    ],
)
def test_names(named, host, status):
    assert Api(named)("GET", "/connectors", headers={"Host": host}).status_code == status
    assert Api(named, named.process.rest.admin_address)("GET", "/admin/loggers", headers={"Host": host}).status_code == status


def test_all_names_may_be_let_in(tmp_path):
    with LocalWorker(tmp_path, rest__allowed__hosts="*") as worker:
        assert Api(worker)("GET", "/", headers=EVIL).status_code == 200


def _asked(worker, target, host):
    """The status of a request whose target is sent as it is."""
    connection = http.client.HTTPConnection(*worker.process.rest.address, timeout=10)
    connection.putrequest("GET", target, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.mark.parametrize(
    "target, host, status",
    [
        param("http://127.0.0.1:8083/connectors", "127.0.0.1:8083", 200, id="a whole URL, as to a proxy"),
        param("HTTP://localhost/connectors?expand=info", "localhost", 200, id="with a query"),
        param("http://localhost", "localhost", 200, id="without a path"),
        param("http://evil.example/connectors", "localhost", 403, id="its host counts"),
        param("http://localhost/connectors", "evil.example", 200, id="and not the header's"),
        param("http://localhost/nope", "localhost", 404, id="an address that is not there"),
    ],
)
def test_targets_that_are_whole_urls(shared_worker, target, host, status):
    found, body = _asked(shared_worker, target, host)
    assert found == status, body


@pytest.mark.parametrize("text, host", [("a:1", "a"), ("A", "a"), ("[::1]:5", "::1"), ("::1", "::1"), ("a.:1", "a"), ("", ""), (":8083", "")])
def test_host_of(text, host):
    assert host_of(text) == host


def test_a_listener_of_all_interfaces_knows_the_machine_by_name():
    listener = types.SimpleNamespace(host="0.0.0.0")
    assert socket.gethostname() in names_of([listener], None, [])


@pytest.mark.parametrize("text", ["http://:0", "http://localhost:0", ":0"])
def test_who_names_no_host_is_reached_from_this_machine_alone(text):
    listener = Listener(text if text[0] != ":" else f"http://{text}", "listeners", "")
    listener.bind()
    try:
        assert listener.address[0] in ("127.0.0.1", "::1")
    finally:
        listener.close()


def _listener(url, host="10.0.0.1"):
    return types.SimpleNamespace(scheme=url.partition(":")[0], url=url, address=(host, 1), prefix="")


@pytest.mark.parametrize(
    "listeners, protects, certificate, said",
    [
        param([_listener("http://127.0.0.1:1", "127.0.0.1")], False, False, None, id="loopback"),
        param([_listener("http://[::1]:1", "::1")], False, False, None, id="loopback of IPv6"),
        param([_listener("http://0.0.0.0:1", "0.0.0.0")], False, False, "without TLS and authentication", id="open to all"),
        param([_listener("http://a:1")], True, False, "(without TLS)", id="passwords without TLS"),
        param([_listener("https://a:1")], False, False, "(without authentication)", id="TLS without passwords"),
        param([_listener("https://a:1")], True, False, None, id="both"),
        param([_listener("https://a:1")], False, True, None, id="certificates of clients"),
        param([_listener("https://a:1"), _listener("http://b:1")], True, False, "http://b:1 (without TLS)", id="one of two"),
        param([_listener("http://a:1"), _listener("http://b:1")], False, False, "http://b:1", id="one line for all"),
    ],
)
def test_one_warning_of_listeners_that_others_can_reach(caplog, listeners, protects, certificate, said):
    with caplog.at_level(logging.WARNING):
        warn_of_open_doors(listeners, protects, lambda listener: certificate)
    assert [said in record.message for record in caplog.records] == ([True] if said else [])


@pytest.mark.parametrize("host, warnings", [("0.0.0.0", 1), ("127.0.0.1", 0)])
def test_the_warning_comes_at_start(tmp_path, caplog, host, warnings):
    with LocalWorker(tmp_path, listeners=f"http://{host}:0"):
        pass
    assert len([record for record in caplog.records if "Other machines can reach" in record.message]) == warnings
