"""ElasticsearchSink's task beside a server that a test plays: what is sent again, what is committed, what is told."""

import base64
import concurrent.futures
import subprocess

import numpy as np
import pytest
from pytest import param

from connectors.elasticsearch.sink import ElasticsearchSinkConnector, ElasticsearchSinkTask
from standalone import ConfigError, ConnectError, DataError, RetriableError, Schema, SinkBatch
from standalone.connector import SinkTaskContext
from standalone.testing import wait_for
from tests.connectors.elasticsearch.fake import FakeSearch, gone, some, taken_and_gone, whole
from tests.suite.patience import PATIENCE_SECONDS

PAIR = ("t", 0)


class Context(SinkTaskContext):
    def __init__(self):
        self.reports = []

    def timeout(self, ms):
        pass

    def errant_record_reporter(self):
        return self

    def report(self, record, error):
        self.reports.append((record.key, str(error)))
        done = concurrent.futures.Future()
        done.set_result(None)
        return done


@pytest.fixture
def server():
    with FakeSearch() as fake:
        yield fake


@pytest.fixture
def started(server):
    """started(**keys): a task that runs, with its Context."""
    tasks = []

    def start(**keys):
        task = ElasticsearchSinkTask()
        task.initialize(Context())
        given = {"connection.url": server.url, "schema.ignore": "true", "retry.backoff.ms": "1", **keys}
        task.start({key.replace("__", "."): value for key, value in given.items()})
        task.open([PAIR])
        tasks.append(task)
        return task

    yield start
    server.hold.set()
    for task in tasks:
        task.stop()


def batch(*keys, at=0, values=None):
    values = [{"n": n} for n in range(len(keys))] if values is None else values
    offsets = np.arange(at, at + len(keys))
    return SinkBatch(len(keys), "t", values, key=list(keys), key_schema=Schema.STRING, partition=0, origin=PAIR, offsets=offsets)


def ids(actions):
    return [about["_id"] for _, about, _ in actions]


def committed(task, end):
    return task.pre_commit({PAIR: end}).get(PAIR)


RETRIED = {"max.retries": "3"}


@pytest.mark.parametrize(
    "answer, sent",
    [
        param(some({"b": (429, "es_rejected_execution_exception")}), ["abc", "b"], id="a full queue: the document concerned alone"),
        param(some({"a": (503, "unavailable_shards_exception"), "c": (429, "x")}), ["abc", "ac"], id="two of them"),
        param(some({"a": (403, "cluster_block_exception")}), ["abc", "a"], id="a read-only index"),
        param(whole(429), ["abc", "abc"], id="the whole request"),
        param(whole(503), ["abc", "abc"], id="a server that starts"),
        param(gone, ["abc", "abc"], id="no answer"),
        param(taken_and_gone, ["abc", "abc"], id="stored, but no answer"),
        param(whole(413, "too_large"), ["abc", "a", "bc"], id="a request that is too large is halved"),
    ],
)  # fmt: skip
def test_what_passes_is_sent_again(server, started, answer, sent):
    server.answers = [answer]
    task = started(**RETRIED)
    task.put([batch("a", "b", "c")])
    assert committed(task, 3) == 3
    assert ["".join(ids(actions)) for actions in server.bulks] == sent
    assert server.documents == {"a": {"n": 0}, "b": {"n": 1}, "c": {"n": 2}}


def test_after_max_retries_the_task_fails_and_commits_up_to_what_is_not_stored(server, started):
    server.answers = [some({"b": (429, "es_rejected_execution_exception")})] * 10
    task = started(**RETRIED)
    task.put([batch("a", "b", "c", at=5)])
    assert committed(task, 8) == 5  # the request begins there
    with pytest.raises(ConnectError, match="1 documents are not stored after 4 tries.*es_rejected_execution_exception"):
        task.put([])
    assert len(server.bulks) == 4


def test_only_what_is_acknowledged_is_committed(server, started):
    task = started(**{"batch.size": "2"})
    server.hold.clear()
    task.put([batch("a", "b", "c", "d")])
    assert committed(task, 4) == 0
    server.hold.set()
    wait_for(lambda: committed(task, 4) == 4)


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_requests_are_under_way_than_may_be(server, started, most):
    task = started(**{"batch.size": "1", "max.in.flight.requests": str(most)})
    server.hold.clear()
    records = [batch(*"abcdefgh")]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        put = pool.submit(task.put, records)
        wait_for(lambda: server.most_at_once == most)
        server.hold.set()
        put.result(PATIENCE_SECONDS)
    assert committed(task, 8) == 8
    assert server.most_at_once == most


def test_a_put_without_room_comes_again_and_sends_nothing_twice(server, started, monkeypatch):
    monkeypatch.setattr("connectors.elasticsearch.sink.ROOM_SECONDS", 0.02)
    task = started(**{"batch.size": "1", "max.in.flight.requests": "2"})
    server.hold.clear()
    records = [batch(*"abcd"), batch(*"ef", at=4)]
    with pytest.raises(RetriableError, match="requests are in flight"):
        task.put(records)
    server.hold.set()
    for _ in range(100):
        try:
            task.put(records)
            break
        except RetriableError:
            continue
    wait_for(lambda: committed(task, 6) == 6)
    assert sorted(id_ for actions in server.bulks for id_ in ids(actions)) == list("abcdef")


def test_a_put_that_finds_no_room_for_too_long_fails(server, started, monkeypatch):
    monkeypatch.setattr("connectors.elasticsearch.sink.ROOM_SECONDS", 0.01)
    task = started(**{"batch.size": "1", "max.in.flight.requests": "1"})
    task._flush_seconds = 0.05
    server.hold.clear()
    records = [batch(*"abcd")]
    with pytest.raises(ConnectError, match="flush.timeout.ms"):
        for _ in range(100):
            try:
                task.put(records)
            except RetriableError:
                continue


def test_upserts_of_a_document_are_never_under_way_at_the_same_time(server, started):
    task = started(**{"write.method": "upsert", "batch.size": "1"})
    values = [{"n": n} for n in range(6)]
    server.hold.clear()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        put = pool.submit(task.put, [batch("a", "a", "b", "a", "b", "a", values=values)])
        wait_for(lambda: server.most_at_once == 1)
        server.hold.set()
        put.result(PATIENCE_SECONDS)
    assert committed(task, 6) == 6
    assert server.documents == {"a": {"n": 5}, "b": {"n": 4}}
    assert server.most_at_once <= 2


def test_an_upsert_that_is_sent_again_takes_the_later_ones_of_its_document_along(server, started):
    def first_only(fake, actions):
        items = [{"update": {"status": 429, "error": {"type": "busy"}}}] + [fake.apply(*each) for each in actions[1:]]
        return 200, {"errors": True, "items": items}

    server.answers = [first_only]
    task = started(**{"write.method": "upsert"})
    task.put([batch("a", "a", "b")])
    assert committed(task, 3) == 3
    assert [ids(actions) for actions in server.bulks] == [["a", "a", "b"], ["a", "a"]]
    assert server.documents == {"a": {"n": 1}, "b": {"n": 2}}


BAD = some({"b": (400, "mapper_parsing_exception")})


@pytest.mark.parametrize(
    "keys, answer, reported",
    [
        param({"behavior.on.malformed.documents": "ignore"}, BAD, 0, id="ignored"),
        param({"behavior.on.malformed.documents": "warn"}, BAD, 0, id="told in the log"),
        param({"behavior.on.malformed.documents": "warn", "errors.tolerance": "all"}, BAD, 1, id="reported where errors are tolerated"),
        param({"behavior.on.malformed.documents": "report", "errors.tolerance": "all", "errors.log.enable": "true"}, BAD, 1, id="reported"),
        param({"behavior.on.malformed.documents": "report", "errors.tolerance": "all", "errors.log.enable": "true"}, some({"b": (406, "any_other")}), 1, id="any 4xx"),
    ],
)  # fmt: skip
def test_a_document_that_is_refused(server, started, keys, answer, reported):
    server.answers = [answer]
    task = started(**keys)
    task.put([batch("a", "b", "c")])
    assert committed(task, 3) == 3
    assert sorted(server.documents) == ["a", "c"]
    assert [key for key, _ in task.context.reports] == ["b"] * reported
    assert all("because of" in error for _, error in task.context.reports)


def test_the_document_that_a_whole_request_is_refused_for_is_found(server, started):
    def refuses_c(fake, actions):
        fake.answers.append(refuses_c)
        return whole(400, "action_request_validation_exception")(fake, actions) if "c" in ids(actions) else fake.take(actions)

    server.answers = [refuses_c]
    task = started(**{"behavior.on.malformed.documents": "report", "errors.tolerance": "all", "errors.log.enable": "true"})
    task.put([batch("a", "b", "c", "d", "e")])
    assert committed(task, 5) == 5
    assert [key for key, _ in task.context.reports] == ["c"]
    assert sorted(server.documents) == ["a", "b", "d", "e"]


@pytest.mark.parametrize("kind", ["security_exception", "index_closed_exception", "index_not_found_exception"])
def test_what_is_no_fault_of_the_document_fails_the_task(server, started, kind):
    server.answers = [some({"a": (403, kind)})]
    task = started(**{"behavior.on.malformed.documents": "ignore"})
    task.put([batch("a")])
    assert committed(task, 1) == 0
    with pytest.raises(ConnectError, match=kind):
        task.put([])


def test_records_that_are_no_documents_are_reported_where_errors_are_tolerated(server, started):
    task = started(**{"errors.tolerance": "all"})
    task.put([batch("a", None, "c")])
    assert committed(task, 3) == 3
    assert sorted(server.documents) == ["a", "c"]
    assert [key for key, _ in task.context.reports] == [None]


def test_a_partition_that_is_given_up_holds_nobody_up(server, started):
    task = started(**{"linger.ms": "10000"})
    task.put([batch("a", "b")])
    task.close([PAIR])
    assert task.pre_commit({("u", 0): 7}) == {("u", 0): 7}
    assert server.bulks == []


def test_requests_that_are_not_full_wait_for_more(server, started):
    task = started(**{"linger.ms": "10000", "batch.size": "3"})
    for at, key in enumerate("abcd"):
        task.put([batch(key, at=at)])
    wait_for(lambda: server.bulks)
    assert [ids(actions) for actions in server.bulks] == [["a", "b", "c"]]
    assert committed(task, 4) == 4
    assert sorted(server.documents) == list("abcd")


# --- Connections ----------------------------------------------------------------------------------------------------

NAMED = "Basic " + base64.b64encode(b"ann:s3cret").decode()


@pytest.mark.parametrize(
    "keys, header",
    [
        param({}, None, id="none"),
        param({"connection.username": "ann", "connection.password": "s3cret"}, NAMED, id="name and password"),
        param({"connection.api.key": "a2V5"}, "ApiKey a2V5", id="an API key"),
    ],
)
def test_logins(server, started, keys, header):
    task = started(**keys)
    task.put([batch("a")])
    assert committed(task, 1) == 1
    assert {each.get("Authorization") for each in server.headers} == {header}


def test_a_login_in_the_address_is_no_part_of_messages(server):
    url = server.url.replace("http://", "http://ann:s3cret@")
    server.about = (401, {"error": {"type": "security_exception", "reason": "unable to authenticate"}})
    said = ElasticsearchSinkConnector().try_out({"connection.url": url, "topics": "t"})
    assert server.headers[0]["Authorization"] == NAMED
    assert "connection.username" in said["connection.url"] and "s3cret" not in str(said)


def test_requests_go_by_way_of_a_proxy(server, started):
    task = started(**{"connection.url": "http://search.test:9200", "proxy.host": "127.0.0.1", "proxy.port": str(server.port),
                      "proxy.username": "p", "proxy.password": "w"})  # fmt: skip
    server.about = {"version": {"number": "8.0.0"}}
    task.put([batch("a")])
    assert committed(task, 1) == 1
    assert all(path.startswith("http://search.test:9200/") for path in server.paths)
    assert {each.get("Proxy-Authorization") for each in server.headers} == {"Basic " + base64.b64encode(b"p:w").decode()}


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    """The path of a key with a certificate for 127.0.0.1 that nobody has signed but itself."""
    folder = tmp_path_factory.mktemp("identity")
    made = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=search -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(made.split(), cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return folder / "both.pem"


TLS = {"elastic.security.protocol": "SSL", "elastic.https.ssl.truststore.type": "PEM"}


@pytest.mark.parametrize(
    "keys, said",
    [
        param({**TLS, "elastic.https.ssl.truststore.location": "{identity}"}, None, id="trusted"),
        param({}, "cannot be reached", id="not trusted"),
        param({**TLS, "elastic.https.ssl.truststore.location": "/nowhere"}, "/nowhere", id="no trust store"),
    ],
)
def test_tls(identity, keys, said):
    with FakeSearch(identity=identity) as server:
        given = {key: value.format(identity=identity) for key, value in keys.items()}
        found = ElasticsearchSinkConnector().try_out({"connection.url": server.url, "topics": "t", **given})
    assert not found if said is None else said in str(found)


@pytest.mark.parametrize(
    "about, said",
    [
        param({"version": {"number": "6.8.0"}}, "7 and later", id="too old"),
        param({"name": "no"}, "neither", id="another server"),
        param((200, b"<html>"), "not in JSON", id="a web page"),
        param((401, {"error": {"type": "security_exception", "reason": "no"}}), "does not know these credentials", id="unknown"),
        param((403, {"error": {"type": "security_exception", "reason": "no"}}), "does not allow it", id="not allowed"),
    ],
)
def test_who_answers_is_looked_at(server, about, said):
    server.about = about
    assert said in ElasticsearchSinkConnector().try_out({"connection.url": server.url, "topics": "t"})["connection.url"]


@pytest.mark.parametrize("number, distribution", [("7.10.2", None), ("8.17.1", None), ("9.0.0", None), ("1.3.0", "opensearch"), ("3.5.0", "opensearch")])
def test_versions_that_are_served(server, number, distribution):
    server.about = {"version": {"number": number, **({"distribution": distribution} if distribution else {})}}
    assert ElasticsearchSinkConnector().try_out({"connection.url": server.url, "topics": "t"}) == {}


def test_rights_that_are_lacking_are_told(server, monkeypatch):
    rights = {"has_all_requested": False, "index": {"t": {"write": False, "create_index": True}}}
    monkeypatch.setattr(server, "answer", lambda method, path, body: (200, rights if "_has_privileges" in path else server.about))
    found = ElasticsearchSinkConnector().try_out({"connection.url": server.url, "topics": "t"})
    assert found == {"connection.username": "this user lacks permissions: write on 't'"}


def test_a_task_whose_configuration_is_wrong_does_not_start(started):
    with pytest.raises(ConfigError, match="linger"):
        started(**{"linger.ms": "2000", "flush.timeout.ms": "1000"})


def test_a_bad_record_fails_a_task_that_tolerates_none(started):
    task = started()
    with pytest.raises(DataError, match="t-0 at offset 0"):
        task.put([batch(None)])
