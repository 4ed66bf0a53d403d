"""The offsets file: what is appended is read again, whatever was killed in between; damage is never read as "no offsets"."""

import json
import logging
import os
import shutil
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standalone.errors import ConnectError, OffsetsError
from standalone.runtime.offsets import journal
from standalone.runtime.offsets.journal import OffsetsFile
from tests.suite.patience import PATIENCE_SECONDS

HERE = os.path.dirname(__file__)
GOLDEN = os.path.join(HERE, "..", "golden")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "connect.offsets")


def reopened(path):
    file = OffsetsFile(path).open()
    file.close()
    return file


def test_what_was_appended_is_there_after_a_restart(path):
    file = OffsetsFile(path).open()
    file.append("a", [({"filename": "x"}, {"position": 1})])
    file.append("a", [({"filename": "x"}, {"position": 2}), ({"filename": "y"}, {"position": 7})])
    file.append("b", [({"filename": "x"}, {"position": 9})])
    again = reopened(path)  # without close or sync: a process that was killed
    assert again.get("a", {"filename": "x"}) == {"position": 2}
    assert sorted(again.all("a"), key=str) == [({"filename": "x"}, {"position": 2}), ({"filename": "y"}, {"position": 7})]
    assert again.get("b", {"filename": "x"}) == {"position": 9}


def test_the_order_of_a_partitions_keys_does_not_matter(path):
    file = OffsetsFile(path).open()
    file.append("a", [({"db": 1, "table": 2}, {"id": 3})])
    assert file.get("a", {"table": 2, "db": 1}) == {"id": 3}


def test_none_forgets_a_partition(path):
    file = OffsetsFile(path).open()
    file.append("a", [({"f": 1}, {"p": 1})])
    file.append("a", [({"f": 1}, None)])
    assert reopened(path).all("a") == []


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_cut_anywhere_in_its_last_line_loses_that_line_alone(tmp_path_factory, data):
    path = str(tmp_path_factory.mktemp("cut") / "offsets")
    file = OffsetsFile(path).open()
    for position in range(3):
        file.append("a", [({"f": "x"}, {"position": position})])
    file.close()
    content = open(path, "rb").read()
    last = content[:-1].rindex(b"\n") + 1
    with open(path, "wb") as out:
        out.write(content[: data.draw(st.integers(last, len(content) - 1))])
    file = OffsetsFile(path).open()
    assert file.get("a", {"f": "x"}) == {"position": 1}
    file.append("a", [({"f": "x"}, {"position": 8})])
    assert reopened(path).get("a", {"f": "x"}) == {"position": 8}


def test_a_torn_last_line_is_said(path, caplog):
    file = OffsetsFile(path).open()
    file.append("a", [({"f": "x"}, {"position": 1})])
    file.close()
    os.truncate(path, os.path.getsize(path) - 4)
    with caplog.at_level(logging.WARNING):
        reopened(path)
    assert "is incomplete" in caplog.text and path in caplog.text


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: b"garbage\n" + content, id="another first line"),
        pytest.param(lambda content: b"\x00\x01\x02", id="arbitrary bytes"),
        pytest.param(lambda content: content.replace(b'"position":0', b'"position":7', 1), id="a changed number in the middle"),
        pytest.param(lambda content: content.replace(b"\n", b"", 2).replace(b"}{", b"}\n{", 1), id="two lines run together"),
        pytest.param(lambda content: b"\xac\xed\x00\x05sr\x00\x05wrong", id="a Java object that is not a map"),
    ],
)
def test_damage_is_refused_with_the_files_name_and_left_alone(path, damage):
    file = OffsetsFile(path).open()
    for position in range(3):
        file.append("a", [({"f": "x"}, {"position": position})])
    file.close()
    content = damage(open(path, "rb").read())
    with open(path, "wb") as out:
        out.write(content)
    with pytest.raises(OffsetsError, match="connect.offsets"):
        OffsetsFile(path).open()
    assert open(path, "rb").read() == content


def test_an_empty_file_starts_from_nothing_with_a_warning(path, caplog):
    open(path, "w").close()
    with caplog.at_level(logging.WARNING):
        assert reopened(path).all("a") == []
    assert "is empty" in caplog.text


def test_the_java_workers_file_is_taken_over_and_kept(path, caplog):
    shutil.copy(os.path.join(GOLDEN, "java-offsets.bin"), path)
    original = open(path, "rb").read()
    with caplog.at_level(logging.INFO):
        file = OffsetsFile(path).open()
    for entry in json.load(open(os.path.join(GOLDEN, "java-offsets.json"))):
        assert file.get(entry["connector"], entry["partition"]) == entry["offset"]
    assert open(path + ".java", "rb").read() == original
    assert "Java worker" in caplog.text
    file.append("src", [({"f": 1}, {"p": 2})])
    file.close()
    assert reopened(path).get("src", {"f": 1}) == {"p": 2}


def test_many_updates_are_compacted_to_the_live_ones(path):
    file = OffsetsFile(path).open()
    for position in range(10_100):
        file.append("a", [({"f": "x"}, {"position": position})])
    long = os.path.getsize(path)
    file.sync()
    assert os.path.getsize(path) < long / 100
    file.append("a", [({"f": "x"}, {"position": 99_999})])
    assert reopened(path).get("a", {"f": "x"}) == {"position": 99_999}


def test_what_the_offsets_vouch_for_is_synced_before_them(path):
    order = []
    file = OffsetsFile(path, before_sync=lambda: order.append("log")).open()
    assert file.sync() is False and order == []
    file.append("a", [({"f": 1}, {"p": 2})])
    assert file.sync() is True and order == ["log"]


def test_a_full_disk_is_an_error_and_the_file_stays_sound(path):
    import resource
    import signal

    file = OffsetsFile(path).open()
    file.append("a", [({"f": 1}, {"p": 1})])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 20, hard))
        with pytest.raises(ConnectError, match="cannot be written"):
            file.append("a", [({"f": 1}, {"p": 2})])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert file.get("a", {"f": 1}) == {"p": 1}
    file.append("a", [({"f": 1}, {"p": 3})])
    assert reopened(path).get("a", {"f": 1}) == {"p": 3}


def test_an_offset_that_json_cannot_hold_names_the_connector(path):
    file = OffsetsFile(path).open()
    with pytest.raises(ConnectError, match="connector 'a'"):
        file.append("a", [({"f": 1}, {"p": object()})])


def test_nothing_is_appended_while_what_the_offsets_vouch_for_is_made_durable(path):
    durable, appended = [], threading.Event()

    def before_sync():
        threading.Thread(target=append_another, daemon=True).start()
        assert not appended.wait(0.2), "its record may not be durable, but its offset would be"
        durable.append("log")

    def append_another():
        file.append("a", [({"f": 1}, {"p": 2})])
        appended.set()

    file = OffsetsFile(path, before_sync).open()
    file.append("a", [({"f": 1}, {"p": 1})])
    file.sync()
    assert appended.wait(PATIENCE_SECONDS) and durable == ["log"]
    assert reopened(path).get("a", {"f": 1}) == {"p": 2}


def test_who_reads_waits_for_no_disk(path):
    syncing, release = threading.Event(), threading.Event()

    def hangs():
        syncing.set()
        release.wait(PATIENCE_SECONDS)

    file = OffsetsFile(path, hangs).open()
    file.append("a", [({"f": 1}, {"p": 1})])
    threading.Thread(target=file.sync, daemon=True).start()
    assert syncing.wait(PATIENCE_SECONDS)
    assert file.get("a", {"f": 1}) == {"p": 1} and file.all("a") and file.connectors() == ["a"]
    release.set()


@pytest.mark.parametrize("fails", ["_sync_folder", "os.replace"])
def test_a_compaction_that_fails_leaves_one_file_that_has_its_name(path, monkeypatch, fails):
    file = OffsetsFile(path).open()
    for position in range(10_050):
        file.append("a", [({"f": "x"}, {"position": position})])

    def refused(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(journal.os if fails == "os.replace" else journal, fails.rpartition(".")[2], refused)
        with pytest.raises(OffsetsError, match="Input/output error"):
            file.sync()
    file.append("a", [({"f": "x"}, {"position": 77})])
    assert file.sync() is True
    assert reopened(path).get("a", {"f": "x"}) == {"position": 77}


def test_after_an_fsync_that_failed_a_new_file_is_written(path, monkeypatch):
    file = OffsetsFile(path).open()
    file.append("a", [({"f": "x"}, {"position": 1})])
    before, fsync = os.stat(path).st_ino, os.fsync

    def refused(descriptor):
        monkeypatch.setattr(os, "fsync", fsync)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError):
        file.sync()
    assert file.sync() is True, "the system may have forgotten what it could not write, and say nothing of it"
    assert os.stat(path).st_ino != before and reopened(path).get("a", {"f": "x"}) == {"position": 1}


def test_what_is_kept_of_the_java_workers_file_is_for_its_owner_alone(path):
    shutil.copy(os.path.join(GOLDEN, "java-offsets.bin"), path)
    OffsetsFile(path).open().close()
    assert os.stat(path + ".java").st_mode & 0o777 == 0o600
