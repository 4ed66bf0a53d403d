"""The embedded log as a part of the process: what is durable when, how it starts and stops, its options."""

import contextlib
import fcntl
import os
import struct
import termios
import threading

import pytest
from kafka.protocol import metadata
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from standalone.errors import ConfigError, StartError
from standalone.log.broker import options
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import (
    RawClient,
    ServerProcess,
    batch,
    commit,
    list_offset,
    make_topic,
    running,
    values_of,
    wait_for,
)
from tests.suite.patience import PATIENCE_SECONDS


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        yield client


# --- Durability


class Recorder:
    """Notes each fsync and each commit of offsets, in order."""

    def __init__(self, monkeypatch):
        from standalone.log.broker.store import Store

        self.events = []
        sync, save = os.fdatasync, Store.save_offsets
        monkeypatch.setattr(os, "fdatasync", lambda fd: (self.events.append("fsync"), sync(fd)))
        monkeypatch.setattr(Store, "save_offsets", lambda *args: (self.events.append("offsets"), save(*args)))


@pytest.fixture
def unhurried(tmp_path):
    """A log that does not fsync of its own accord."""
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.flush.interval.ms": "3600000"})
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client)
        yield log, client
    log.stop()


def test_sync_makes_durable_what_was_acknowledged_and_costs_nothing_when_clean(unhurried, monkeypatch):
    log, client = unhurried
    recorder = Recorder(monkeypatch)
    log.sync()
    assert recorder.events == []
    client.produce("t", batch([b"v"]))
    partition = log._node.topics.get("t").partitions[0]
    assert partition.durable == 0
    log.sync()
    assert partition.durable == 1 and recorder.events == ["fsync"]
    log.sync()
    assert recorder.events == ["fsync"]


def test_records_are_fsynced_before_the_offset_behind_them_is_kept(unhurried, monkeypatch):
    log, client = unhurried
    recorder = Recorder(monkeypatch)
    client.produce("t", batch([b"v"]))
    assert commit(client, 1) == 0
    assert recorder.events == ["fsync", "offsets"]
    client.produce("t", batch([b"w"]))
    assert commit(client, 1) == 0  # nothing new is spoken of
    assert recorder.events == ["fsync", "offsets", "offsets"]


def test_records_are_fsynced_after_the_interval(tmp_path):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.flush.interval.ms": 20})
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client)
        client.produce("t", batch([b"v"]))
        wait_for(lambda: log._node.topics.get("t").partitions[0].durable == 1)
    log.stop()


def test_sync_says_that_the_disk_failed(unhurried, monkeypatch):
    from standalone.errors import LogError

    log, client = unhurried
    client.produce("t", batch([b"v"]))

    def fail(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    for _ in range(2):
        with pytest.raises(LogError, match="Input/output error"):
            log.sync()
    assert commit(client, 1) == codes.CoordinatorNotAvailableError.errno
    assert client.produce("t", batch([b"w"])).error_code == codes.KafkaStorageError.errno
    assert make_topic(client, "other").error_code == 0


def test_a_full_disk_refuses_records_and_the_server_goes_on(tmp_path):
    server = ServerProcess(tmp_path, file_limit=300_000)
    with RawClient(server.bootstrap) as client:
        make_topic(client)
        kept = 0
        while (answer := client.produce("t", batch([b"%d" % kept + b"." * 5000]))).error_code == 0:
            assert answer.base_offset == kept
            kept += 1
        assert answer.error_code == codes.KafkaStorageError.errno and kept > 10
        assert client.produce("t", batch([b"small"])).base_offset == kept
        make_topic(client, "other")
        assert client.produce("other", batch([b"v"])).error_code == 0
        assert len(values_of(client.fetch("t", 0).records)) == kept + 1
    errors = server.stop()
    assert "File too large" in errors and "Traceback" not in errors
    with running(tmp_path) as client:
        assert list_offset(client, -1) == (-1, kept + 1)
        assert len(values_of(client.fetch("t", 0).records)) == kept + 1


# --- Starting and stopping


def test_a_taken_port_is_an_error_that_names_it(log, tmp_path):
    second = EmbeddedLog(tmp_path / "second", log.bootstrap)
    with pytest.raises(StartError, match=f"embedded.log.listener: cannot listen on {log.bootstrap}"):
        second.start()
    second.stop()


def test_a_taken_folder_is_an_error_that_names_it_and_its_holder(tmp_path):
    server = ServerProcess(tmp_path)
    with pytest.raises(StartError, match=f"{tmp_path} is in use by another process .pid {server.process.pid}."):
        EmbeddedLog(tmp_path, "127.0.0.1:0").start()
    server.stop()
    with running(tmp_path):
        pass


@pytest.mark.parametrize("listener", ["", "9092", "host:", ":x", "h:70000"])
def test_a_listener_that_is_none(tmp_path, listener):
    with pytest.raises(StartError, match="embedded.log.listener"):
        EmbeddedLog(tmp_path, listener)


def test_a_damaged_sqlite_file_is_refused_by_name(tmp_path):
    (tmp_path / "log.sqlite").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StartError, match="log.sqlite"):
        EmbeddedLog(tmp_path, "127.0.0.1:0").start()
    (tmp_path / "log.sqlite").unlink()
    with running(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="embedded.log.dir"):
        EmbeddedLog(tmp_path / "file" / "log", "127.0.0.1:0").start()


def test_it_can_be_stopped_twice_and_leaves_no_thread(tmp_path):
    before = set(threading.enumerate())
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    log.stop()
    log.stop()
    assert set(threading.enumerate()) <= before


def test_a_wildcard_listener_names_the_address_that_the_client_used(tmp_path):
    log = EmbeddedLog(tmp_path, "0.0.0.0:0")
    log.start()
    with RawClient(log.bootstrap) as client:
        found = client.call(metadata.MetadataRequest(version=9, topics=[]), metadata.MetadataResponse)
        assert f"{found.brokers[0].host}:{found.brokers[0].port}" == log.bootstrap
    log.stop()


def test_an_idle_server_needs_no_cpu(tmp_path):
    server = ServerProcess(tmp_path)
    with RawClient(server.bootstrap) as client:
        make_topic(client)
        client.fetch("t", 0, max_wait_ms=1)
        server.wait_until_idle()
        before = server.cpu_seconds()
        client.fetch("t", 0, max_wait_ms=1500)
        assert server.cpu_seconds() - before <= 0.03
    server.stop()


# --- Options


def test_every_option_has_a_type_a_default_and_a_doc():
    assert len({option.name for option in options.OPTIONS}) == len(options.OPTIONS)
    for option in options.OPTIONS:
        assert option.name.startswith("embedded.log.") and option.doc.endswith(".")
    assert options.settings({})["embedded.log.retention.ms"] == 7 * 24 * 3600 * 1000


def test_texts_become_values():
    found = options.settings({"embedded.log.num.partitions": " 3 ", "embedded.log.auto.create.topics.enable": "False", "name": "x"})
    assert (found["embedded.log.num.partitions"], found["embedded.log.auto.create.topics.enable"]) == (3, False)


def test_all_wrong_options_are_named_at_once():
    with pytest.raises(ConfigError) as wrong:
        options.settings({"embedded.log.num.partitions": "0", "embedded.log.segment.bytes": "x", "embedded.log.nonsense": "1"})
    assert set(wrong.value.errors) == {"embedded.log.num.partitions", "embedded.log.segment.bytes", "embedded.log.nonsense"}


def test_a_small_request_does_not_wait_for_the_large_ones_of_others(tmp_path, monkeypatch):
    """Three clients are in the middle of sending large requests; the rest of all three is there before a small request of a fourth."""
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    frame = b"\x00\x03\x00\x01" + bytes(150_000)  # a request for metadata that nobody can read: its connection is closed
    with contextlib.ExitStack() as stack:
        small, *large = [stack.enter_context(RawClient(log.bootstrap)) for _ in range(4)]
        for client in large:
            client.sock.sendall(len(frame).to_bytes(4, "big") + frame[:100_000])
        owner, handled, go_on = log._owner, [], threading.Event()
        wait_for(lambda: sum(connection.is_at_a_large_one for connection in list(owner._connections)) == 3)
        handle = owner._handle
        for connection in list(owner._connections):
            monkeypatch.setattr(connection, "on_frame", lambda who, view: (handled.append(len(view)), handle(who, view)))
        stands = threading.Event()
        owner.post(lambda: (stands.set(), go_on.wait(PATIENCE_SECONDS)))
        assert stands.wait(PATIENCE_SECONDS)
        for client in large:
            client.sock.sendall(frame[100_000:])
        small.send(ApiVersionsRequest(version=0))
        wait_for(lambda: all(_has_arrived(client) for client in (*large, small)))
        go_on.set()
        assert small.receive(ApiVersionsResponse, 0).error_code == 0
        wait_for(lambda: len(handled) == 4)
    log.stop()
    assert handled[0] < 100 and handled[1:] == [len(frame)] * 3


def _has_arrived(client):
    """Whether the other end's socket has all that was sent."""
    return struct.unpack("i", fcntl.ioctl(client.sock, termios.TIOCOUTQ, bytes(4)))[0] == 0
